/**
 * The processes and the folder that a benchmark makes, and their end.
 *
 * Called by everything here that starts a process. However this process ends (done, failed, SIGINT, out of time), its
 * exit kills what is still running and removes the temporary folder; nothing outlives it.
 */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const running = new Set<ChildProcess>()
const folders = new Set<string>()

/** Call it once, first of all. @param timeLimitMs after which the whole run is given up */
export function endWithEverything(timeLimitMs: number): void {
  process.on('exit', () => {
    for (const child of running) child.kill('SIGKILL')
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  // 128 + the signal's number, as shells report it.
  process.on('SIGINT', () => process.exit(130)).on('SIGTERM', () => process.exit(143))
  const limit = setTimeout(() => {
    process.stderr.write(`bench: given up after ${timeLimitMs / 1_000} s\n`)
    process.exit(1)
  }, timeLimitMs)
  limit.unref()
}

/** @returns path of a new folder that is removed at the end */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-bench-'))
  folders.add(folder)
  return folder
}

/**
 * Starts a process with only the environment given: POSTROAD_ variables of whoever measures must not change what is
 * measured.
 */
export function start(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: {}, ...options })
  running.add(child)
  child.once('close', () => running.delete(child))
  return child
}

/** The same for a program of ours, compiled. */
export function startNode(args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  return start(process.execPath, args, options)
}

/** Runs it to its end. @returns standard output @throws Error with what it wrote to standard error */
export async function run(child: ChildProcess): Promise<string> {
  const [output, complaint] = [collect(child.stdout), collect(child.stderr)]
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${status}: ${complaint()}`)
  return output()
}

/** Tells it to end and waits; what does not listen within `graceMs` is killed. */
export async function stop(child: ChildProcess, graceMs = 10_000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  const kill = setTimeout(() => child.kill('SIGKILL'), graceMs)
  await closed
  clearTimeout(kill)
}

/** @returns a function giving the text that has come so far */
function collect(stream: ChildProcess['stdout']): () => string {
  let text = ''
  stream?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return () => text
}
