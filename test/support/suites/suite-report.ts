/**
 * What a run of a suite left behind: its TAP report, and the times noted by `note-times.ts`.
 *
 * Read once, line by line. A report cut off in the middle reads as far as it goes.
 */
import { POSTGRES_NOTE, type Times } from './note-times.js'

export interface FileResult {
  /** As in `Times`. */
  readonly file: string
  readonly isOk: boolean
  readonly assertions: number
  /** Ms; undefined if the process left no note. */
  readonly wallMs: number | undefined
  readonly cpuMs: number | undefined
}

export interface SuiteReport {
  readonly files: readonly FileResult[]
  readonly assertions: number
  /** Failed assertions with their diagnostics, and the names of the tests they are in, as TAP. */
  readonly failures: readonly string[]
  /** CPU time of the suite's PostgreSQL server, ms; 0 without one. */
  readonly postgresCpuMs: number
}

const RESULT = /^( *)(not )?ok\b(?: \d+)?(?: - )?(.*)$/

/**
 * @param tap report of tap over many files (TAP 14: a subtest is indented, its result follows it)
 * @param notes lines of JSON
 */
export function readReport(tap: string, notes: string): SuiteReport {
  const times = readTimes(notes)
  const files: FileResult[] = []
  const failures: string[] = []
  let ofFile = 0
  let total = 0
  let indentBefore = 0
  let isDiagnostic = false
  let isOfFailure = false
  for (const line of tap.split('\n')) {
    if (isDiagnostic) {
      if (isOfFailure) failures.push(line)
      isDiagnostic = !/^ *\.\.\.$/.test(line)
      continue
    }
    if (/^ *---$/.test(line)) {
      isDiagnostic = true
      if (isOfFailure) failures.push(line)
      continue
    }
    if (line.trim() === '') continue
    const indent = line.length - line.trimStart().length
    const result = RESULT.exec(line)
    isOfFailure = line.startsWith('Bail out') || result?.[2] !== undefined
    if (isOfFailure) failures.push(line)
    // The result of a subtest stands behind its deeper lines; that of an assertion does not.
    const isAssertion = result !== null && indentBefore <= indent
    if (isAssertion) ofFile += 1
    if (result && indent === 0) {
      const name = (result[3] ?? '').replace(/ # .*$/, '')
      const { wallMs, cpuMs } = times.get(name) ?? {}
      files.push({ file: name, isOk: result[2] === undefined, assertions: ofFile, wallMs, cpuMs })
      total += ofFile
      ofFile = 0
    }
    indentBefore = indent
  }
  return { files, assertions: total, failures, postgresCpuMs: times.get(POSTGRES_NOTE)?.cpuMs ?? 0 }
}

/** A file may start copies of itself; the one that ran longest is the test. */
function readTimes(notes: string): ReadonlyMap<string, Times> {
  const found = new Map<string, Times>()
  for (const line of notes.split('\n').filter(Boolean)) {
    const times = JSON.parse(line) as Times
    if (times.wallMs >= (found.get(times.file)?.wallMs ?? 0)) found.set(times.file, times)
  }
  return found
}
