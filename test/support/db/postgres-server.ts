/**
 * A PostgreSQL server of a test's own, which it may kill, stop, fill the disk of, or give a standby.
 *
 * Needs Debian's postgresql package. Started by root, the server runs as the user `postgres`, since it refuses to run as root. It listens on
 * a socket in a temporary folder, and on TCP only where asked. The folder is in memory where there is room: a database is some nine hundred files,
 * and a copy of one takes ten times as long on a disk that others use.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { freemem, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { cpuMsOf } from '../suites/note-times.js'
import { serverProgram } from './server-programs.js'

const SETTINGS = [
  // Tests kill the server's processes, never the machine.
  'fsync=off',
  'full_page_writes=off',
  'max_wal_size=128MB',
  'max_connections=300',
  'shared_buffers=64MB',
]
/** A file system in memory. */
const MEMORY = '/dev/shm'
/** Octets: for the databases of all tests that run at a time, and for the tests. */
const MEMORY_WANTED = 4 * 1024 ** 3
const isRoot = userInfo().uid === 0

/** How `pg_ctl` ends a server: `fast` cuts connections and writes a checkpoint, `immediate` leaves recovery to the next start. */
export type StopMode = 'fast' | 'immediate'

export interface ServerOptions {
  /** Makes the folder that is to hold the data: e.g. mounts a small disk there. */
  readonly onDataFolder?: (folder: string) => void
  /** False: the write-ahead log has a folder of its own, elsewhere. */
  readonly isLogWithData?: boolean
  /** `name=value` lines of postgresql.conf. */
  readonly settings?: readonly string[]
  /** An address of this machine, besides the socket. */
  readonly address?: string
}

export class PostgresServer {
  /** Of the socket. Short: a socket's path has at most 107 octets. */
  readonly folder: string
  readonly data: string
  private readonly options: ServerOptions

  private constructor(options: ServerOptions) {
    this.options = options
    this.folder = ownedFolder()
    this.data = join(this.folder, 'disk', 'data')
    const { onDataFolder = makeFolder } = options
    onDataFolder(dirname(this.data))
    giveToServer(dirname(this.data))
  }

  /** Started and empty. */
  static async create(options: ServerOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(options)
    const { isLogWithData = true } = options
    const log = isLogWithData ? [] : ['--waldir', join(server.folder, 'wal')]
    // prettier-ignore
    await run('initdb', '-D', server.data, '-U', 'postroad', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--wal-segsize=4', ...log)
    server.configure([...SETTINGS, `unix_socket_directories='${server.folder}'`, ...(options.settings ?? [])])
    server.configure([`listen_addresses='${options.address ?? ''}'`])
    if (options.address !== undefined)
      appendFileSync(join(server.data, 'pg_hba.conf'), 'host all all all trust\n')
    await server.start()
    return server
  }

  /** A standby that has everything the server has, started; commits of the server wait for it from now on. */
  async standby(): Promise<PostgresServer> {
    const standby = new PostgresServer({})
    await run(
      'pg_basebackup',
      '-d',
      this.url(),
      '-D',
      standby.data,
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      '--no-sync',
    )
    standby.configure([`unix_socket_directories='${standby.folder}'`])
    await standby.start()
    this.configure(["synchronous_standby_names='*'"])
    await this.control('reload')
    return standby
  }

  url(database = 'postgres'): string {
    const { address } = this.options
    return address === undefined
      ? `postgres://postroad@localhost/${database}?host=${this.folder}`
      : `postgres://postroad@${address}/${database}`
  }

  start(): Promise<void> {
    return this.control('start')
  }

  stop(mode: StopMode = 'fast'): Promise<void> {
    return this.control('stop', '-m', mode)
  }

  restart(mode: StopMode = 'fast'): Promise<void> {
    return this.control('restart', '-m', mode)
  }

  /** A standby becomes the server that takes writes. */
  promote(): Promise<void> {
    return this.control('promote')
  }

  /** `kill -9` of each of its processes. */
  kill(): void {
    const postmaster = this.pid
    if (postmaster === undefined || !isRunning(postmaster)) return
    const all = [postmaster, ...childrenOf(postmaster)]
    for (const pid of all) signal(pid)
    while (all.some(isRunning)) execFileSync('sleep', ['0.01'])
    // Where nobody waits for the dead process, its number stays taken, and the next server would believe it alive.
    for (const file of [join(this.data, 'postmaster.pid'), join(this.folder, '.s.PGSQL.5432.lock')])
      rmSync(file, { force: true })
  }

  /** Of the server and of all backends that have ended. */
  get cpuMs(): number {
    const { pid } = this
    return pid === undefined ? 0 : cpuMsOf(pid)
  }

  get isRunning(): boolean {
    const { pid } = this
    return pid !== undefined && isRunning(pid)
  }

  /** What it wrote to its log. */
  get log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8')
  }

  /** Ends it, if it runs, and removes what it had. */
  remove(): void {
    this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  configure(lines: readonly string[]): void {
    appendFileSync(join(this.data, 'postgresql.conf'), `\n${lines.join('\n')}\n`)
  }

  private async control(action: string, ...more: string[]): Promise<void> {
    try {
      await run('pg_ctl', '-D', this.data, '-w', '-l', join(this.folder, 'log'), action, ...more)
    } catch (error) {
      throw new Error(
        `${(error as Error).message}; the server's log ends with: ${this.log.split('\n').slice(-10).join('\n')}`,
        { cause: error },
      )
    }
  }

  private get pid(): number | undefined {
    const file = join(this.data, 'postmaster.pid')
    return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : undefined
  }
}

/** One that ends with the test. */
export async function ownServer(t: Test, options: ServerOptions = {}): Promise<PostgresServer> {
  const { onDataFolder = makeFolder } = options
  const server = await PostgresServer.create({
    ...options,
    onDataFolder(folder) {
      // Undone in reverse order: a disk that is mounted there is gone before the folder is.
      t.teardown(() => rmSync(dirname(folder), { recursive: true, force: true }))
      onDataFolder(folder)
    },
  })
  t.teardown(() => server.kill())
  return server
}

function makeFolder(folder: string): void {
  mkdirSync(folder)
}

function ownedFolder(): string {
  const folder = mkdtempSync(join(hasRoomInMemory() ? MEMORY : '/tmp', 'postroad-pg-'))
  giveToServer(folder)
  return folder
}

function hasRoomInMemory(): boolean {
  if (!existsSync(MEMORY)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  return Math.min(bavail * bsize, freemem()) > MEMORY_WANTED
}

function giveToServer(folder: string): void {
  if (!isRoot) return
  const [uid, gid] = ['-u', '-g'].map(what =>
    Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' })),
  )
  chownSync(folder, uid ?? 0, gid ?? 0)
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** A zombie has ended: its parent may be nobody who waits for it. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Runs one of the server's programs as its user. @throws Error with what it said */
async function run(program: string, ...args: string[]): Promise<void> {
  const path = serverProgram(program)
  const [command, words] = isRoot ? ['runuser', ['-u', 'postgres', '--', path, ...args]] : [path, args]
  // The server keeps what it inherits: with a pipe, there would be no end of it.
  const child = spawn(command, words, {
    cwd: '/',
    stdio: ['ignore', 'ignore', program === 'pg_ctl' ? 'ignore' : 'pipe'],
  })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text))
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${said}`)
}
