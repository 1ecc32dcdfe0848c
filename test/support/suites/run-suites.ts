/**
 * Runs suites of tests, some side by side, and prints what each of them and the slowest files took.
 *
 * `node run-suites.js [--busy] [--rounds N] LANE...`: a lane is one or more make targets, e.g. `"check test-files"`, which run one
 * after the other; lanes run at the same time. `make` has to have built everything they share before.
 *
 * Everything runs to its end, whatever fails. One or two failed files of a suite run again alone, since a busy machine can be slower than a
 * browser waits: if they pass then, the run passes and lists them under a heading of their own. A busy run (`--busy`, `make test-busy`)
 * repeats nothing and lists what failed in any round.
 *
 * Exits 1 if anything failed. The last line is `N passed, M failed`, in assertions.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { keepBusy } from './busy.js'
import { readReport, type FileResult, type SuiteReport } from './suite-report.js'

const FOLDER = 'build/reports'
/** More failures than these are no accident. */
const RUN_AGAIN = 2
const SLOWEST = 20
/** Of the failures of one suite. */
const MOST_LINES = 300
/** Times as long as on a quiet machine. */
const BUSY_TIMEOUT_S = 3_600

interface SuiteRun extends SuiteReport {
  readonly suite: string
  readonly isOk: boolean
  readonly wallMs: number
  readonly cpuMs: number
  /** Files that failed at first and passed alone. */
  readonly passedAlone: readonly string[]
}

const { values, positionals: lanes } = parseArgs({
  options: { busy: { type: 'boolean', default: false }, rounds: { type: 'string', default: '1' } },
  allowPositionals: true,
})
if (lanes.length === 0) throw new Error('usage: run-suites [--busy] [--rounds N] LANE...')
const started = performance.now()
using busyness = values.busy ? keepBusy() : undefined
const rounds: SuiteRun[][] = []
for (let round = 0; round < Number(values.rounds); round += 1) {
  if (round > 0) print(`round ${round + 1} of ${values.rounds}`)
  rounds.push((await Promise.all(lanes.map(runLane))).flat())
}
process.exitCode = values.busy ? reportRounds(rounds) : report(rounds.flat())

async function runLane(lane: string): Promise<SuiteRun[]> {
  const runs: SuiteRun[] = []
  for (const suite of lane.split(' ')) runs.push(await runSuite(suite))
  return runs
}

async function runSuite(suite: string): Promise<SuiteRun> {
  const first = await runOnce(suite, suite)
  print(`${suite}: ${first.isOk ? 'passed' : 'FAILED'} after ${seconds(first.wallMs)} s`)
  if (first.isOk) return first
  printFailures(first, suite)
  const failed = failedFiles(first)
  if (values.busy || failed.length === 0 || failed.length > RUN_AGAIN) return first
  print(`${suite}: running again alone: ${failed.join(' ')}`)
  const again = await runOnce(suite, `${suite}-again`, failed)
  if (!again.isOk) printFailures(again, `${suite}-again`)
  return {
    ...first,
    isOk: again.isOk,
    passedAlone: again.isOk ? failed : [],
    wallMs: first.wallMs + again.wallMs,
    cpuMs: first.cpuMs + again.cpuMs,
  }
}

/** @param name of the files in `build/reports` @param files instead of all of the suite's */
async function runOnce(suite: string, name: string, files?: readonly string[]): Promise<SuiteRun> {
  const path = (extension: string) => join(FOLDER, `${name}.${extension}`)
  mkdirSync(FOLDER, { recursive: true })
  for (const extension of ['tap', 'times', 'cpu']) rmSync(path(extension), { force: true })
  const timeout = values.busy ? ` --timeout=${BUSY_TIMEOUT_S}` : ''
  const make = [
    'make',
    '--no-print-directory',
    suite,
    `TAP_FLAGS=--reporter=min --output-file=${path('tap')}${timeout}`,
    ...(files ? [`ONLY=${files.join(' ')}`] : []),
  ]
  // bash measures what a command took with all its descendants.
  const timed = ['bash', '-c', `TIMEFORMAT='%U %S'; { time "$@" 2>&1; } 2>${path('cpu')}`, 'bash', ...make]
  const [command = '', ...args] = [...(busyness?.through ?? []), ...timed]
  const output = openSync(outputOf(name), 'w')
  const begun = performance.now()
  const child = spawn(command, args, {
    stdio: ['ignore', output, output],
    env: { ...process.env, TEST_TIMES: path('times'), MAKEFLAGS: '' },
  })
  const [status] = (await once(child, 'close')) as [number | null]
  const cpu = textOf(path('cpu')).trim().split(' ').map(Number)
  const found = readReport(textOf(path('tap')), textOf(path('times')))
  return {
    ...found,
    suite,
    isOk: status === 0,
    wallMs: performance.now() - begun,
    cpuMs: found.postgresCpuMs + 1_000 * cpu.reduce((sum, one) => sum + one, 0),
    passedAlone: [],
  }
}

/** What failed, or what `make` said if no test did. */
function printFailures({ failures }: SuiteRun, name: string): void {
  const lines = failures.length > 0 ? failures : textOf(outputOf(name)).split('\n').slice(-MOST_LINES)
  print(lines.slice(0, MOST_LINES).join('\n'))
  if (lines.length > MOST_LINES) print(`... ${lines.length - MOST_LINES} more lines in ${FOLDER}/${name}.tap`)
}

function outputOf(name: string): string {
  return join(FOLDER, `${name}.out`)
}

function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

function failedFiles({ files }: SuiteReport): string[] {
  return files.filter(({ isOk, file }) => !isOk && file.startsWith('build/')).map(({ file }) => file)
}

/** @returns the exit status */
function report(runs: readonly SuiteRun[]): number {
  const wholeMs = performance.now() - started
  const total = (of: (run: SuiteRun) => number) => runs.reduce((sum, run) => sum + of(run), 0)
  const row = (name: string, files: number, assertions: number, wallMs: number, cpuMs: number) => [
    name,
    count(files),
    count(assertions),
    seconds(wallMs),
    seconds(cpuMs),
  ]
  printTable(
    ['suite', 'files', 'assertions', 'wall s', 'CPU s'],
    [
      ...runs.map(run => row(run.suite, run.files.length, run.assertions, run.wallMs, run.cpuMs)),
      row(
        'in all',
        total(({ files }) => files.length),
        total(({ assertions }) => assertions),
        wholeMs,
        total(({ cpuMs }) => cpuMs),
      ),
    ],
  )
  const files = runs.flatMap(run => run.files).sort((a, b) => (b.wallMs ?? 0) - (a.wallMs ?? 0))
  printTable(['slowest files', 'assertions', 'wall s', 'CPU s'], files.slice(0, SLOWEST).map(fileRow))
  const lucky = runs.flatMap(({ passedAlone }) => passedAlone)
  if (lucky.length > 0) print(`\nPassed only the second time:\n${lucky.map(file => `  ${file}`).join('\n')}`)
  const failed = runs.filter(({ isOk }) => !isOk)
  if (failed.length > 0) print(`\nFAILED: ${failed.map(({ suite }) => suite).join(', ')}`)
  const failures = failed.reduce((sum, run) => sum + Math.max(1, failedFiles(run).length), 0)
  print(`\n${total(({ assertions }) => assertions) - failures} passed, ${failures} failed`)
  return failed.length === 0 ? 0 : 1
}

function fileRow({ file, assertions, wallMs, cpuMs }: FileResult): string[] {
  return [file.replace(/^build\//, ''), count(assertions), seconds(wallMs ?? 0), seconds(cpuMs ?? 0)]
}

/** @returns the exit status */
function reportRounds(all: readonly (readonly SuiteRun[])[]): number {
  const times = new Map<string, number>()
  for (const run of all.flat().filter(({ isOk }) => !isOk)) {
    const files = failedFiles(run)
    for (const name of files.length > 0 ? files : [run.suite]) times.set(name, (times.get(name) ?? 0) + 1)
  }
  if (times.size === 0) print(`\nnothing failed in ${all.length} rounds on a busy machine`)
  else
    printTable(
      ['failed on a busy machine', 'rounds'],
      [...times].map(([name, failed]) => [name, `${failed} of ${all.length}`]),
    )
  return times.size === 0 ? 0 : 1
}

/** The first column is text, the others are numbers. */
function printTable(heads: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [heads, ...rows]
  const widths = heads.map((_, at) => Math.max(...all.map(row => (row[at] ?? '').length)))
  print('')
  for (const row of all)
    print(
      row
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
        .join('  '),
    )
}

function count(number: number): string {
  return number.toLocaleString('en')
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1)
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
