/**
 * Notes what each test file took, in the file named by TEST_TIMES: one JSON line per process that tap starts. Loaded by `light-tap.ts`.
 *
 * A process that is killed leaves no line.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { isMainThread } from 'node:worker_threads'

export interface Times {
  /** Relative to the project, e.g. `build/test/core/ids.test.js`. */
  readonly file: string
  readonly wallMs: number
  /** User and system time, with that of every child process that has ended. */
  readonly cpuMs: number
}

/** Stands in place of a file for the PostgreSQL server of a suite, which is no child of any test. */
export const POSTGRES_NOTE = 'PostgreSQL'

/** Linux reports in ticks of 10 ms (USER_HZ) on every architecture Node.js runs on. */
const TICK_MS = 10

/** CPU time of a process and of the children it has waited for. Source: proc(5), `/proc/pid/stat`, fields 14 to 17. */
export function cpuMsOf(pid: number | 'self'): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command in parentheses and may contain blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS
}

export function noteTimes(times: Times): void {
  const notes = process.env['TEST_TIMES']
  if (notes !== undefined) appendFileSync(notes, `${JSON.stringify(times)}\n`)
}

/** In the main thread of a process that runs a test. */
export function noteOnExit(): void {
  if (!isMainThread || process.env['TAP'] !== '1') return
  process.on('exit', () => {
    noteTimes({
      file: relative(process.cwd(), process.argv[1] ?? ''),
      wallMs: Math.round(performance.now()),
      cpuMs: cpuMsOf('self'),
    })
  })
}
