/**
 * Capability of the machine: the limits to compare the other figures with.
 *
 * Called first by `main.ts`. RSA-2048 bounds signed mail, durable commits bound what is accepted one by one.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import BetterSqlite from 'better-sqlite3'
import { run, startNode } from './server/children.js'
import { median } from './numbers.js'

export interface Machine {
  readonly facts: readonly (readonly [string, string])[]
  /** RSA-2048 signatures per second with all cores. */
  readonly signaturesPerSecond: number
}

const MEASURE_MS = 1_500

export async function measureMachine(folder: string): Promise<Machine> {
  const [load = 0] = loadavg()
  const signatures = await measureSignatures()
  const commits = measureCommits(folder)
  const cores = availableParallelism()
  return {
    signaturesPerSecond: signatures.pooled,
    facts: [
      ['cpu', cpus()[0]?.model.trim() ?? 'unknown'],
      ['cores', `${cores}`],
      ['memory', `${Math.round(totalmem() / 2 ** 30)} GB`],
      ['node', process.version],
      ['kernel', release()],
      ['file system', fileSystemOf(folder)],
      ['load before', `${load.toFixed(1)} (figures compare only where this is near 0)`],
      ['node, empty program', `${Math.round(await measureNodeStart())} ms from spawn to exit`],
      ['RSA-2048 signatures', `${signatures.alone}/s on one thread, ${signatures.pooled}/s on ${cores}`],
      ['durable commits', `${commits}/s (SQLite, WAL, synchronous=FULL, one row each, one after the other)`],
    ],
  }
}

/** In a process of its own, since the pool's size is fixed when a process first uses it. */
async function measureSignatures(): Promise<{ alone: number; pooled: number }> {
  const program = fileURLToPath(new URL('signatures.js', import.meta.url))
  const env = { UV_THREADPOOL_SIZE: String(availableParallelism()) }
  return JSON.parse(await run(startNode([program, String(MEASURE_MS)], { env }))) as {
    alone: number
    pooled: number
  }
}

function measureCommits(folder: string): number {
  const handle = new BetterSqlite(join(mkdtempSync(join(folder, 'commits-')), 'commits.db'))
  handle.pragma('journal_mode = WAL')
  handle.pragma('synchronous = FULL')
  handle.exec('create table entries (id integer primary key, text text not null)')
  const insert = handle.prepare('insert into entries (text) values (?)')
  const text = 'x'.repeat(100)
  const startedAt = performance.now()
  let commits = 0
  for (; performance.now() - startedAt < MEASURE_MS; commits += 1) insert.run(text)
  const seconds = (performance.now() - startedAt) / 1_000
  handle.close()
  return Math.round(commits / seconds)
}

/** The floor under every start. */
async function measureNodeStart(): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < 3; round += 1) {
    const startedAt = performance.now()
    await run(startNode(['--eval', '0']))
    times.push(performance.now() - startedAt)
  }
  return median(times)
}

function fileSystemOf(folder: string): string {
  const [, line = ''] = execFileSync('df', ['--output=fstype,source', folder], { encoding: 'utf8' }).split(
    '\n',
  )
  return line.trim().replace(/\s+/, ' on ')
}
