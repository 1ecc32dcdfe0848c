/**
 * The program under test: an installation made through its own command line, and the server as a process of its own.
 *
 * Called by the scenarios. Durability is the program's default (WAL, synchronous=FULL) and mail is signed: the sending
 * domain is vouched for and has its RSA-2048 keys. Fails: rejects with what the program wrote.
 */
import type { ChildProcess } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { systemClock } from '../../src/world/time/clock.js'
import { run, start, startNode, stop } from './children.js'

/** The bundle: what operators run. */
export const PROGRAM = resolve('dist/main.js')
const LOOP_DELAY = new URL('loop-delay.js', import.meta.url).href
const THREAD_PROFILES = new URL('thread-profiles.js', import.meta.url).href
/** As the unit sets it. */
const AS_SERVICE = { MALLOC_ARENA_MAX: '2', NODE_OPTIONS: '--max-semi-space-size=8' }
/** For each thread to write its profile down. */
const PROFILES_MS = 3_000
const START_LIMIT_MS = 30_000
const STOP_LIMIT_MS = 30_000

/** The sender of every mail here. */
export const SENDER = 'news@bench.example'

/** A data folder that is set up, with a key that has no limits. */
export interface Installation {
  readonly dataDir: string
  readonly workspaceId: string
  readonly key: string
  readonly keyId: string
  /** Of PostgreSQL; SQLite in `dataDir` where absent. */
  readonly databaseUrl?: string
  /** Leaves its domain with the RSA key alone; before a server runs on it. */
  dropEd25519(): Promise<void>
}

/** Where mail goes and with how many connections. */
export interface Outgoing {
  /** Of the host on loopback that takes all mail. */
  readonly port: number
  readonly connections: number
  readonly connectionsPerDestination: number
  /** Delivery threads; one per core where absent. */
  readonly workers?: number
  /** Whether the server measures how late its event loop is, to be asked after `stop`. */
  readonly reportsDelays?: boolean
  /** `0s` where absent. */
  readonly shutdownGrace?: string
  /** TOML that says where mail goes, in place of the one host. */
  readonly destinations?: string
}

export interface LoopDelays {
  readonly p99Ms: number
  readonly mostMs: number
  readonly mostCpuMs: number
  /** Runs of more than 10 ms of CPU time. */
  readonly longRuns: number
}

export interface ServerProcess {
  /** Of the REST API on loopback. */
  readonly port: number
  /** Of SMTP submission on loopback, which needs no login from there. */
  readonly submissionPort: number
  readonly inboundPort: number
  readonly pid: number
  /** From the start of the process to its saying that it serves. */
  readonly startMs: number
  /** CPU time used so far by all threads, user and system, seconds. */
  cpuSeconds(): number
  /** The most memory it has held, bytes. */
  peakMemory(): number
  /** The memory it holds now, bytes: all that is resident, the program's own pages as well. */
  memory(): number
  /** How late its event loop was, 99th percentile and most, and the CPU time of its longest run; known once it has stopped. */
  delays(): LoopDelays | undefined
  stop(): Promise<void>
}

const NO_MAIL: Outgoing = { port: 9, connections: 1, connectionsPerDestination: 1 }

export async function install(folder: string, databaseUrl?: string): Promise<Installation> {
  const dataDir = join(folder, databaseUrl === undefined ? 'installation' : 'node-1')
  const config = await writeConfig({ dataDir, databaseUrl }, NO_MAIL)
  const { workspace } = (await command(config, 'init')) as { workspace: { id: string } }
  const key = await prepareWorkspace(config, workspace.id, SENDER)
  return installationAt({
    dataDir,
    workspaceId: workspace.id,
    ...key,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  })
}

/** Another workspace without limits; before a server runs on it. @returns its key */
export async function addWorkspace(installation: Installation, sender: string): Promise<string> {
  const config = await writeConfig(installation, NO_MAIL)
  const { id } = (await command(config, 'workspace', 'create', 'other')) as { id: string }
  const { key } = await prepareWorkspace(config, id, sender)
  return key
}

async function prepareWorkspace(
  config: string,
  id: string,
  sender: string,
): Promise<Pick<Installation, 'key' | 'keyId'>> {
  await command(config, 'workspace', 'set', id, 'hourly_limit=0', 'daily_limit=0')
  const domain = sender.slice(sender.indexOf('@') + 1)
  await command(config, 'domain', 'add', domain, '--workspace', id, '--vouch')
  const limits = ['--rate-limit', '0', '--email-rate-limit', '0']
  const created = await command(config, 'key', 'create', '--workspace', id, '--name', 'bench', ...limits)
  const { id: keyId, key } = created as { id: string; key: string }
  return { key, keyId }
}

async function command(config: string, ...args: string[]): Promise<unknown> {
  return JSON.parse(await run(startNode([PROGRAM, ...args, '--json', '--config', config])))
}

function installationAt(facts: Omit<Installation, 'dropEd25519'>): Installation {
  return {
    ...facts,
    async dropEd25519() {
      const file = join(facts.dataDir, 'postroad.db')
      const database = await openSqlite({ file, clock: systemClock, mayMigrate: false })
      await database.write(tx => tx.db.deleteFrom('dkim_keys').where('algorithm', '=', 'ed25519').execute())
      await database[Symbol.asyncDispose]()
    },
  }
}

/** A copy that a scenario may fill. No server runs on the original. */
export async function copyInstallation(original: Installation, name: string): Promise<Installation> {
  const dataDir = join(original.dataDir, '..', name)
  await cp(original.dataDir, dataDir, { recursive: true })
  return installationAt({ ...original, dataDir })
}

/**
 * @param profileName where given, a folder of this name with a CPU profile of each thread is left in the working folder
 * @param executable where given, what is started in place of Node with the program
 */
export async function serve(
  installation: Installation,
  outgoing: Outgoing = NO_MAIL,
  profileName?: string,
  executable?: string,
): Promise<ServerProcess> {
  const { dataDir, keyId } = installation
  const config = await writeConfig(installation, outgoing, keyId)
  const delays = `${dataDir}.delays.json`
  const watching = outgoing.reportsDelays === true ? ['--import', LOOP_DELAY] : []
  // By the environment, which threads share: what is named on the command line they do not load.
  const profiling =
    profileName === undefined
      ? {}
      : {
          NODE_OPTIONS: `${AS_SERVICE.NODE_OPTIONS} --import ${THREAD_PROFILES}`,
          BENCH_PROFILES: resolve(`${profileName}.profiles`),
        }
  const startedAt = performance.now()
  const serving = ['serve', '--config', config]
  const child =
    executable === undefined
      ? startNode([...watching, PROGRAM, ...serving], {
          env: { ...AS_SERVICE, BENCH_LOOP_DELAYS: delays, ...profiling },
        })
      : start(executable, serving, { env: AS_SERVICE })
  const { port, submissionPort, inboundPort } = await untilItServes(child)
  const startMs = performance.now() - startedAt
  const pid = child.pid!
  return {
    port,
    submissionPort,
    inboundPort,
    pid,
    startMs,
    cpuSeconds: () => cpuSecondsOf(pid),
    peakMemory: () => memoryOf(pid, 'VmHWM'),
    memory: () => memoryOf(pid, 'VmRSS'),
    delays: () => (existsSync(delays) ? (JSON.parse(readFileSync(delays, 'utf8')) as LoopDelays) : undefined),
    async stop() {
      if (profileName !== undefined && child.kill('SIGUSR2')) await sleep(PROFILES_MS)
      await stop(child, STOP_LIMIT_MS)
    },
  }
}

async function writeConfig(
  { dataDir, databaseUrl }: { readonly dataDir: string; readonly databaseUrl?: string | undefined },
  outgoing: Outgoing,
  keyId?: string,
): Promise<string> {
  const file = `${dataDir}.toml`
  await writeFile(
    file,
    `
hostname = "mail.bench.example"
data_dir = ${JSON.stringify(dataDir)}
shutdown_grace = "${outgoing.shutdownGrace ?? '0s'}"
${databaseUrl === undefined ? '' : `[database]\nurl = ${JSON.stringify(databaseUrl)}`}
[http]
listen = ["127.0.0.1:0"]
[submission]
listen = ["127.0.0.1:0"]
listen_tls = []
require_tls = false
${keyId === undefined ? '' : `[[submission.trusted_networks]]\nnetwork = "127.0.0.1"\nkey = "${keyId}"`}
[webhooks]
allow_networks = ["127.0.0.0/8"]
[inbound]
listen = ["127.0.0.1:0"]
greeting_delay = "0"
[mta]
connections = ${outgoing.connections}
connections_per_destination = ${outgoing.connectionsPerDestination}
workers = ${outgoing.workers ?? 0}
${outgoing.destinations ?? oneHost(outgoing.port)}
`,
  )
  return file
}

/** Takes all mail. */
function oneHost(port: number): string {
  return `[[mta.routes]]
domain = "*"
host = "127.0.0.1"
port = ${port}
tls = "none"`
}

interface Ports {
  readonly port: number
  readonly submissionPort: number
  readonly inboundPort: number
}

/** @returns its ports, from its own log */
async function untilItServes(child: ChildProcess): Promise<Ports> {
  let complaint = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (complaint += text))
  const limit = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS)
  const lines = createInterface({ input: child.stdout! })
  return new Promise<Ports>((resolve, reject) => {
    // Goes on reading after that: a log that nobody reads would block the server.
    lines.on('line', line => {
      const { event, http, submission, inbound } = JSON.parse(line) as Record<string, string | undefined>
      const portOf = (address = '') => Number(address.split(':').at(-1))
      if (event === 'server started')
        resolve({
          port: portOf(http),
          submissionPort: portOf(submission),
          inboundPort: portOf(inbound),
        })
    })
    child.once('close', () => reject(new Error(`the server ended before it served: ${complaint}`)))
    child.once('error', reject)
  }).finally(() => clearTimeout(limit))
}

/** USER_HZ, the unit of times in /proc/PID/stat: 100 on every Linux that Node runs on (proc(5), sysconf(3)). */
const TICKS_PER_SECOND = 100

function cpuSecondsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second field is the command in parentheses and may hold spaces; utime and stime are fields 14 and 15.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** @param field of proc(5) */
function memoryOf(pid: number, field: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1_024
}
