/**
 * The real program in tests: its commands and its server as child processes on a data folder of their own.
 *
 * Spawns the compiled `src/main.js` of the same build as the test. Every process is killed and the folder removed when
 * the test ends, however it ends.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { apiOf, type Api } from './api.js'
import { until } from './until.js'

const program = fileURLToPath(new URL('../../src/main.js', import.meta.url))

/** Settings that make tests quick and keep everything on loopback; `toml` and `env` of a test come on top. */
const USUAL_ENVIRONMENT = {
  POSTROAD_HTTP_LISTEN: '127.0.0.1:0',
  POSTROAD_MTA_RETRY_FIRST: '1s',
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
}

/** A data folder with its configuration file. */
export interface Installation {
  readonly dataDir: string
  readonly configFile: string
  writeConfig(toml: string): void
  /** Runs a command to its end. */
  run(...args: string[]): Promise<Ended>
  /** Runs a command with `--json`, which has to succeed, and reads what it prints. */
  json<T = unknown>(...args: string[]): Promise<T>
  /** Starts the server and resolves once it serves. */
  serve(): Promise<Serving>
  /** Starts the server and resolves once it has ended by itself. */
  serveInVain(): Promise<Ended>
}

/** An installation after `init`. */
export interface Initialised extends Installation {
  readonly workspaceId: string
  readonly key: string
}

export interface Serving extends Api {
  readonly pid: number
  /** Lines written so far. */
  readonly log: readonly LogLine[]
  /** Resolves with the first line of this event from the given position on. */
  logged(event: string, from?: number): Promise<LogLine>
  signal(signal: NodeJS.Signals): void
  /** Sends the signal and resolves once the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ended>
  readonly ended: Promise<Ended>
}

/** Not set up yet: `init` is the test's business. */
export function install(t: Test, { toml = '', env = {} }: InstallOptions = {}): Installation {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-test-'))
  const dataDir = join(folder, 'state')
  const configFile = join(folder, 'postroad.toml')
  const children = new Set<ChildProcess>()
  const writeConfig = (text: string) =>
    writeFileSync(configFile, `hostname = "mx.postroad.test"\ndata_dir = "${dataDir}"\n${text}\n`)
  writeConfig(toml)

  function start(args: readonly string[]): Running {
    const child = spawn(process.execPath, ['--enable-source-maps', program, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        POSTROAD_CONFIG: configFile,
        ...USUAL_ENVIRONMENT,
        ...env,
      },
    })
    children.add(child)
    return running(child, () => children.delete(child))
  }

  const killAll = () => {
    for (const child of children) child.kill('SIGKILL')
  }
  process.once('exit', killAll)
  t.teardown(async () => {
    process.off('exit', killAll)
    const ends = [...children].map(child => once(child, 'close'))
    killAll()
    await Promise.all(ends)
    rmSync(folder, { recursive: true, force: true })
  })

  const installation: Installation = {
    dataDir,
    configFile,
    writeConfig,
    run: (...args) => start(args).ended,
    async json<T>(...args: string[]) {
      const { status, out, err } = await start([...args, '--json']).ended
      if (status !== 0) throw new Error(`postroad ${args.join(' ')} ended with ${String(status)}: ${err}`)
      return JSON.parse(out) as T
    },
    async serve() {
      const server = start(['serve'])
      const line = await Promise.race([server.logged('postroad serves'), server.ended])
      if ('status' in line) throw new Error(`the server did not start: ${line.err}${line.out}`)
      const baseUrl = `http://${String(line['http']).split(', ')[0] ?? ''}`
      return { ...server, ...apiOf(baseUrl) }
    },
    serveInVain: () => start(['serve']).ended,
  }
  return installation
}

/** Set up and ready to serve. */
export async function initialise(t: Test, options: InstallOptions = {}): Promise<Initialised> {
  const installation = install(t, options)
  const { workspace, key } = await installation.json<{ workspace: { id: string }; key: { key: string } }>(
    'init',
  )
  return { ...installation, workspaceId: workspace.id, key: key.key }
}

/** A route that takes all mail to a port of this machine. */
export function routeTo(port: number): Record<string, string> {
  return { POSTROAD_MTA_ROUTES: JSON.stringify([{ domain: '*', host: '127.0.0.1', port }]) }
}

type Running = Pick<Serving, 'pid' | 'log' | 'logged' | 'signal' | 'end' | 'ended'>

function running(child: ChildProcess, onEnd: () => void): Running {
  const log: LogLine[] = []
  let out = ''
  let err = ''
  let unfinished = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text
    const lines = (unfinished + text).split('\n')
    unfinished = lines.pop() ?? ''
    log.push(...lines.filter(line => line.startsWith('{"level"')).map(line => JSON.parse(line) as LogLine))
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const ended = once(child, 'close').then((end): Ended => {
    onEnd()
    const [status, signal] = end as [number | null, NodeJS.Signals | null]
    return { status, signal, out, err }
  })
  return {
    pid: child.pid ?? 0,
    log,
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
