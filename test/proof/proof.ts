/**
 * The frame of each program in `test/proof/`: what it made is undone however it ends, each promise is noted as kept or broken, and the table
 * at the end gives the exit status.
 */
import { printTable } from '../../bench/table.js'
import type { Scope } from '../support/scope.js'

export interface Promised {
  /** A statement, true if the promise was kept. */
  readonly what: string
  readonly isKept: boolean
  /** Figures, or of a broken promise the first cases. */
  readonly seen: string
}

export class Proof implements Scope {
  readonly promises: Promised[] = []
  private readonly ends: (() => unknown)[] = []

  teardown(end: () => unknown): void {
    this.ends.push(end)
  }

  check(what: string, isKept: boolean, seen: string | number = ''): void {
    this.promises.push({ what, isKept, seen: String(seen) })
  }

  /** Kept if there is none. */
  checkNone(what: string, cases: readonly string[]): void {
    const shown = cases.slice(0, SHOWN_CASES).join(', ')
    this.check(what, cases.length === 0, cases.length === 0 ? '' : `${cases.length}: ${shown}`)
  }

  get broken(): readonly Promised[] {
    return this.promises.filter(({ isKept }) => !isKept)
  }

  async end(): Promise<void> {
    for (const end of this.ends.splice(0).reverse()) await end()
  }
}

const SHOWN_CASES = 5

/** Characters of a cell; of a broken promise the rest is on standard error. */
const CELL = 60

function promiseRows(promises: readonly Promised[]): string[][] {
  return promises.map(({ what, isKept, seen }) => [
    what,
    isKept ? 'kept' : 'BROKEN',
    seen.length > CELL ? `${seen.slice(0, CELL - 3)}...` : seen,
  ])
}

/**
 * Runs a program of `make`: prints the promises and ends the process, with status 1 if one was broken or the program failed.
 *
 * @param run returns lines to print below the title
 */
export async function runProof(
  title: string,
  run: (proof: Proof) => Promise<readonly string[]>,
): Promise<never> {
  const proof = new Proof()
  const stop = (status: number) => void proof.end().finally(() => process.exit(status))
  process.once('SIGINT', () => stop(130)).once('SIGTERM', () => stop(143))
  let status = 1
  try {
    const notes = await run(proof)
    printTable(title, [['promise', '', 'seen'], ...promiseRows(proof.promises)], notes)
    for (const { what, seen } of proof.broken) process.stderr.write(`BROKEN: ${what}: ${seen}\n`)
    status = proof.broken.length > 0 ? 1 : 0
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  }
  await proof.end()
  process.exit(status)
}

/** A number that `make` was given, e.g. `make crash KILLS=10`. @throws Error where it is none, or out of bounds */
export function givenNumber(name: string, usual: number, least = 1, most = 1_000_000): number {
  const text = process.env[name] ?? ''
  if (text === '') return usual
  const value = Number(text)
  if (!Number.isFinite(value) || value < least || value > most)
    throw new Error(`${name}=${text}: give a number from ${least} to ${most}`)
  return value
}

/** Written over itself where a person watches, else not at all. */
export function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}
