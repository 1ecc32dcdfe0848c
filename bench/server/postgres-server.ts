/**
 * A PostgreSQL server of its own on a socket in a temporary folder, as durable as it is by default; it counts its statements.
 *
 * Needs Debian's postgresql package. Started by root, the server runs as the user `postgres`, since it refuses to run as root.
 */
import { execFileSync } from 'node:child_process'
import { chownSync, readdirSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { start, stop, temporaryFolder } from './children.js'

/** Where Debian installs servers, a folder for each version. */
export const VERSIONS = '/usr/lib/postgresql'
const SETTINGS = [
  'listen_addresses=',
  'shared_preload_libraries=pg_stat_statements',
  'shared_buffers=512MB',
  'max_wal_size=4GB',
  'max_connections=300',
]
const START_LIMIT_MS = 20_000
const POLL_MS = 100

export interface PostgresServer {
  /** Creates an empty database. @returns its URL */
  database(name: string): string
  /** Runs statements as the administrator. @returns the rows, values separated by | */
  psql(url: string, statements: string): string[]
  /** Asks again and again, on one connection: each new one costs the server as much as several mails. @param question a statement with one boolean */
  until(url: string, question: string, limitMs: number): Promise<void>
  /** Keeps a snapshot open, as a backup or a long report does. @returns what ends it */
  holdSnapshot(url: string): () => void
  /** CPU time used so far by all its processes, seconds. */
  cpuSeconds(): number
  stop(): Promise<void>
}

export async function startPostgres(): Promise<PostgresServer> {
  const folder = temporaryFolder()
  const programs = programsFolder()
  const owner = userInfo().uid === 0 ? idsOf('postgres') : undefined
  if (owner) chownSync(folder, owner.uid, owner.gid)
  const data = join(folder, 'data')
  const init = ['-D', data, '-U', 'postroad', '-A', 'trust', '-E', 'UTF8', '--locale=C']
  execFileSync(join(programs, 'initdb'), init, { cwd: folder, stdio: 'ignore', ...owner })
  const settings = [...SETTINGS, `unix_socket_directories=${folder}`].flatMap(one => ['-c', one])
  const child = start(join(programs, 'postgres'), ['-D', data, ...settings], {
    cwd: folder,
    stdio: 'ignore',
    ...owner,
  })
  const urlOf = (name: string) => `postgres://postroad@localhost/${name}?host=${folder}`
  const psql = (url: string, statements: string) =>
    execFileSync('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', statements, url], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .split('\n')
      .filter(line => line !== '')
  for (const limit = performance.now() + START_LIMIT_MS; ;) {
    try {
      psql(urlOf('postgres'), 'select 1')
      break
    } catch (error) {
      if (performance.now() > limit) throw error
      await sleep(100)
    }
  }
  return {
    database(name) {
      psql(urlOf('postgres'), `create database ${name}`)
      psql(urlOf(name), 'create extension pg_stat_statements')
      return urlOf(name)
    },
    psql,
    async until(url, question, limitMs) {
      const client = new pg.Client({
        host: folder,
        user: 'postroad',
        database: new URL(url).pathname.slice(1),
      })
      await client.connect()
      try {
        const limit = performance.now() + limitMs
        while (!Object.values((await client.query<Record<string, boolean>>(question)).rows[0] ?? {})[0]) {
          if (performance.now() > limit) throw new Error(`never true: ${question}`)
          await sleep(POLL_MS)
        }
      } finally {
        await client.end()
      }
    },
    holdSnapshot(url) {
      const statements = 'begin isolation level repeatable read; select txid_current(); select pg_sleep(3600)'
      const session = start('psql', ['-XqAt', '-c', statements, url], { stdio: 'ignore', env: process.env })
      // The server does not notice that its client has gone while it sleeps.
      const end =
        "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep%' and pid <> pg_backend_pid()"
      return () => {
        psql(url, end)
        session.kill()
      }
    },
    cpuSeconds: () => cpuSecondsWithChildren(child.pid!),
    stop: () => stop(child),
  }
}

function programsFolder(): string {
  const newest = Math.max(...readdirSync(VERSIONS).map(Number).filter(Number.isFinite))
  return join(VERSIONS, String(newest), 'bin')
}

function idsOf(user: string): { readonly uid: number; readonly gid: number } {
  const [uid, gid] = ['-u', '-g'].map(what => Number(execFileSync('id', [what, user], { encoding: 'utf8' })))
  return { uid: uid!, gid: gid! }
}

/** USER_HZ, as in server-process.ts. */
const TICKS_PER_SECOND = 100

/** Those that have ended count with the parent (cutime, cstime). */
function cpuSecondsWithChildren(pid: number): number {
  let ticks = 0
  for (const one of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    let text: string
    try {
      text = readFileSync(`/proc/${one}/stat`, 'latin1')
    } catch {
      continue
    }
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11)
    if (Number(one) === pid) ticks += utime + stime + cutime + cstime
    else if (fields[1] === pid) ticks += utime + stime
  }
  return ticks / TICKS_PER_SECOND
}
