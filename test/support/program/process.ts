/**
 * The real program in tests: its server as a child process on a separate data folder, and its commands beside it.
 *
 * Spawns the bundle in `dist/`, which is what operators run (`make test` builds it first); commands run inside the test's
 * process, which spares each of them its loading. Every process is killed and the folder removed when the test ends, however it
 * ends.
 */
import BetterSqlite from 'better-sqlite3'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runCli } from '../../../src/cli/program.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemWorld } from '../../../src/world/world.js'
import { endWithTest } from './children.js'
import { migratedSqlite } from '../db/database.js'
import {
  createDatabase,
  dropDatabase,
  migratedUrl,
  newDatabase,
  POSTGRES_SERVER,
  reusedDatabase,
  reusing,
} from '../db/real-postgres.js'
import type { ReusedDatabases } from '../db/reused-databases.js'
import type { Scope } from '../scope.js'
import { rowsInPlace } from '../db/statements-in-place.js'
import { clientOf, type Client } from '../api/client.js'
import { until } from '../until.js'

const THIS_PROGRAM = resolve('dist/main.js')

/** Settings that make tests quick and keep everything on loopback; `toml` and `env` of a test come on top. */
const USUAL_ENVIRONMENT = {
  POSTROAD_HTTP_LISTEN: '127.0.0.1:0',
  POSTROAD_SUBMISSION_LISTEN: '127.0.0.1:0',
  POSTROAD_SUBMISSION_LISTEN_TLS: '127.0.0.1:0',
  POSTROAD_INBOUND_LISTEN: '127.0.0.1:0',
  // The disk of the test machine may be full.
  POSTROAD_LIMITS_DISK_RESERVE: '0B',
  POSTROAD_MTA_CAPTURE_NETWORKS: '127.0.0.0/8,::1/128',
  POSTROAD_METRICS_NETWORKS: '127.0.0.0/8,::1/128',
  POSTROAD_MTA_RETRY_FIRST: '1s',
  POSTROAD_MTA_WORKERS: '1',
  POSTROAD_MTA_SHARED_ADDRESS: 'notify@mail.postroad.test',
  // Nobody answers there: what has no route must not ask the machine's name servers.
  POSTROAD_DNS_SERVERS: '127.0.0.1:9',
}

export interface Ended {
  /** Exit status; null when a signal ended it. */
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

export type LogLine = Readonly<Record<string, unknown>> & { readonly level: string; readonly event: string }

export interface InstallOptions {
  /** Tables of the configuration file. */
  readonly toml?: string
  /** Overrides, `POSTROAD_SECTION_KEY`. */
  readonly env?: Readonly<Record<string, string>>
  /** Called with the data folder before anything is put there. */
  readonly onFolder?: (dataDir: string) => void
  /** URL of the PostgreSQL database to use, instead of an empty one of its own. */
  readonly database?: string
  /** Flags of Node. */
  readonly flags?: readonly string[]
  /** What runs the server, e.g. `ip netns exec NAME`. */
  readonly through?: readonly string[]
  /** False: of its log nothing is kept but its start, for a server that runs for long. */
  readonly keepsLog?: boolean
  /** `dist/main.js` of another version; its commands run in processes of their own. */
  readonly program?: string
}

/** A data folder with its configuration file. */
export interface Installation {
  readonly dataDir: string
  readonly configFile: string
  /** As the program sees it. */
  readonly environment: Readonly<Record<string, string>>
  writeConfig(toml: string): void
  /** Runs a command to its end, in this process. */
  run(...args: string[]): Promise<Ended>
  /** The same in a separate process. */
  spawn(...args: string[]): Promise<Ended>
  /** Runs a command with `--json`, which has to succeed, and reads what it prints. */
  json<T = unknown>(...args: string[]): Promise<T>
  /** Runs a statement on its database, whichever it is. @returns the rows of a query */
  readonly sql: <Row = Record<string, unknown>>(statement: string) => Row[]
  /** How many rows each table holds now. */
  rowCounts(): Record<string, number>
  /** Starts the server and resolves once it serves. */
  serve(): Promise<Serving>
  /** Starts the server and waits for nothing. */
  start(): Running
}

/** An installation after `init`. */
export interface Initialised extends Installation {
  readonly workspaceId: string
  /** A live key without limits: tests ask more often than a client would. */
  readonly key: string
}

export interface Serving extends Client {
  readonly pid: number
  /** Lines written so far. */
  readonly log: readonly LogLine[]
  /** Written so far, kept or not. */
  readonly logOctets: number
  /** Resolves with the first line of this event from the given position on. */
  logged(event: string, from?: number): Promise<LogLine>
  signal(signal: NodeJS.Signals): void
  /** Sends the signal and resolves once the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ended>
  readonly ended: Promise<Ended>
}

/** Not set up yet: `init` is the test's business. */
export function install(
  t: Scope,
  {
    toml = '',
    env = {},
    onFolder,
    database,
    flags = [],
    through = [],
    keepsLog = true,
    program,
  }: InstallOptions = {},
): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-test-'))
  const dataDir = join(folder, 'state')
  const configFile = join(folder, 'postroad.toml')
  const writeConfig = (text: string) =>
    writeFileSync(configFile, `hostname = "mx.postroad.test"\ndata_dir = "${dataDir}"\n${text}\n`)
  writeConfig(toml)
  const postgres = database ?? (POSTGRES_SERVER === undefined ? undefined : newDatabase(t))
  const environment = {
    POSTROAD_CONFIG: configFile,
    ...USUAL_ENVIRONMENT,
    ...(postgres === undefined ? {} : { POSTROAD_DATABASE_URL: postgres }),
    ...env,
  }
  // Undone in reverse order: the processes end before their folder goes.
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  onFolder?.(dataDir)
  const start = (args: readonly string[]): Running => {
    // tap would have each process and each of its threads load its hooks, which is three times what the program itself takes to load.
    const [command = '', ...words] = [
      ...through,
      'env',
      '-u',
      'NODE_OPTIONS',
      process.execPath,
      ...flags,
      program ?? THIS_PROGRAM,
      ...args,
    ]
    const child = spawn(command, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], ...environment },
    })
    endWithTest(t, child)
    return running(child, keepsLog)
  }

  const run = (...args: string[]) => (program === undefined ? runHere(args, environment) : start(args).ended)
  return {
    dataDir,
    configFile,
    environment,
    writeConfig,
    run,
    spawn: (...args) => start(args).ended,
    async json<T>(...args: string[]) {
      const { status, out, err } = await run(...args, '--json')
      if (status !== 0) throw new Error(`postroad ${args.join(' ')} ended with ${String(status)}: ${err}`)
      return JSON.parse(out) as T
    },
    sql: <Row>(statement: string) =>
      (postgres === undefined
        ? sqliteRows(join(dataDir, 'postroad.db'), statement)
        : postgresRows(postgres, statement)) as Row[],
    start: () => start(['serve']),
    rowCounts: () =>
      postgres === undefined ? countRows(join(dataDir, 'postroad.db')) : countPostgresRows(postgres),
    async serve() {
      const server = start(['serve'])
      const line = await Promise.race([server.logged('server started'), server.ended])
      if (!('event' in line)) throw new Error(`the server did not start: ${line.err}${line.out}`)
      const baseUrl = `http://${String(line['http']).split(', ')[0] ?? ''}`
      return Object.assign(server, clientOf(baseUrl))
    },
  }
}

/** Set up and ready to serve. */
export async function initialise(t: Scope, options: InstallOptions = {}): Promise<Initialised> {
  const { dataDir, workspaceId, key, databases } = await (template ??= makeTemplate())
  const installation = install(t, {
    ...(databases ? { database: await reusedDatabase(t, databases) } : {}),
    ...options,
  })
  cpSync(dataDir, installation.dataDir, { recursive: true })
  chmodSync(installation.dataDir, 0o700)
  return { ...installation, workspaceId, key }
}

/** What `init` made, once per test file: copying it is quicker than making keys again. */
let template: Promise<Template> | undefined

interface Template {
  readonly dataDir: string
  readonly workspaceId: string
  readonly key: string
  /** Where tests have a PostgreSQL server. */
  readonly databases: ReusedDatabases | undefined
}

async function makeTemplate(): Promise<Template> {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-test-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'state')
  const configFile = join(folder, 'postroad.toml')
  writeFileSync(configFile, `hostname = "mx.postroad.test"\ndata_dir = "${dataDir}"\n`)
  mkdirSync(dataDir, { mode: 0o700 })
  const postgres = POSTGRES_SERVER === undefined ? undefined : createDatabase(migratedUrl())
  if (postgres === undefined)
    writeFileSync(join(dataDir, 'postroad.db'), await migratedSqlite(), { mode: 0o600 })
  const place = postgres === undefined ? {} : { POSTROAD_DATABASE_URL: postgres }
  const json = async (...args: string[]) => {
    const { out } = await runHere([...args, '--json'], {
      POSTROAD_CONFIG: configFile,
      ...USUAL_ENVIRONMENT,
      ...place,
    })
    return JSON.parse(out) as unknown
  }
  const { workspace } = (await json('init')) as { workspace: { id: string } }
  const unlimited = ['--rate-limit', '0', '--email-rate-limit', '0']
  const options = ['--workspace', workspace.id, '--name', 'of the tests', ...unlimited]
  const { key } = (await json('key', 'create', ...options)) as { key: string }
  const databases = postgres === undefined ? undefined : reusing(postgres)
  if (postgres !== undefined) process.once('exit', () => dropDatabase(postgres))
  return { dataDir, workspaceId: workspace.id, key, databases }
}

/** A route that takes all mail to a port of this machine. */
export function routeTo(port: number): Record<string, string> {
  return { POSTROAD_MTA_ROUTES: JSON.stringify([{ domain: '*', host: '127.0.0.1', port }]) }
}

function countRows(file: string): Record<string, number> {
  const handle = new BetterSqlite(file, { readonly: true })
  try {
    const tables = handle
      .prepare(`select name from sqlite_master where type = 'table'`)
      .pluck()
      .all() as string[]
    return Object.fromEntries(
      tables.map(name => [name, handle.prepare(`select count(*) from "${name}"`).pluck().get() as number]),
    )
  } finally {
    handle.close()
  }
}

function sqliteRows(file: string, statement: string): unknown[] {
  const handle = new BetterSqlite(file)
  try {
    const prepared = handle.prepare(statement)
    if (prepared.reader) return prepared.all()
    prepared.run()
    return []
  } finally {
    handle.close()
  }
}

function postgresRows(url: string, statement: string): unknown[] {
  if (!/^select\b/i.test(statement)) {
    rowsInPlace(url, statement)
    return []
  }
  // As text, so that no type depends on the driver.
  const rows = rowsInPlace(url, `select row_to_json(one)::text from (${statement}) as one`)
  return rows.map(([row]) => JSON.parse(String(row)) as unknown)
}

function countPostgresRows(url: string): Record<string, number> {
  const rows = rowsInPlace(
    url,
    `select table_name, (xpath('/row/c/text()', query_to_xml(format('select count(*) as c from %I', table_name), false, true, '')))[1]::text
      from information_schema.tables where table_schema = 'public'`,
  )
  return Object.fromEntries(rows.map(([name, count]) => [String(name), Number(count)]))
}

async function runHere(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  let out = ''
  let err = ''
  const status = await runCli(args, {
    env,
    world: { ...systemWorld(), log: new FakeLog() },
    print: text => (out += `${text}\n`),
    complain: text => (err += `${text}\n`),
  })
  return { status, signal: null, out, err }
}

/** A process of the server, whether it serves yet or not. */
export type Running = Pick<Serving, 'pid' | 'log' | 'logOctets' | 'logged' | 'signal' | 'end' | 'ended'>

function running(child: ChildProcess, keepsLog: boolean): Running {
  const log: LogLine[] = []
  let out = ''
  let err = ''
  let unfinished = ''
  let logOctets = 0
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    logOctets += text.length
    if (!keepsLog && log.some(({ event }) => event === 'server started')) return
    out += text
    const lines = (unfinished + text).split('\n')
    unfinished = lines.pop() ?? ''
    log.push(...lines.filter(line => line.startsWith('{"level"')).map(line => JSON.parse(line) as LogLine))
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const ended = once(child, 'close').then((end): Ended => {
    const [status, signal] = end as [number | null, NodeJS.Signals | null]
    return { status, signal, out, err }
  })
  return {
    pid: child.pid ?? 0,
    log,
    get logOctets() {
      return logOctets
    },
    logged: (event, from = 0) =>
      until(`the log line "${event}"`, () => log.slice(from).find(line => line.event === event)),
    signal: signal => void child.kill(signal),
    async end(signal) {
      child.kill(signal)
      return ended
    },
    ended,
  }
}
