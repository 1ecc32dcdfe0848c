/**
 * Processing order of a large file's rows: sorted by address in runs.
 *
 * Contacts are indexed by address. Rows in file order would update that index at random, which takes half the time of a million-row
 * import; sorted rows update neighbouring entries. The first run keeps the file's order, so that small files need no sorting and appear in
 * the order they were written.
 *
 * Must be deterministic: a resumed import skips as many rows as are done. Any change here needs a new `ImportOptions.order`.
 * Called by the reader thread. Pure.
 */
import type { Rejection } from '../import.js'
import type { SaidRow } from './read-row.js'
import { RowTexts } from './row-texts.js'

/** Rows of the first run. Each run is four times as long, up to the maximum, so that writing starts soon. */
const FIRST_ROWS = 4_096
const GROWTH = 4
const MAX_ROWS = 65_536
/** Octets per run. Two runs are in memory: one being filled, one being written. */
const MAX_OCTETS = 33_554_432

export class AddressRuns {
  private readonly isSorted: boolean
  private rows = new RowTexts()
  private addresses: string[] = []
  private most = FIRST_ROWS
  private isFirst = true

  constructor(isSorted: boolean) {
    this.isSorted = isSorted
  }

  add(row: SaidRow | Rejection): void {
    this.rows.add(row)
    // Rejections sort first, in file order.
    this.addresses.push('reason' in row ? '' : row.email)
  }

  /** If true, `take` must be called before adding. */
  get isFull(): boolean {
    return this.rows.count >= this.most || this.rows.octets >= MAX_OCTETS
  }

  /** Returns the current run and starts the next. */
  take(): RowTexts {
    const { rows } = this
    if (this.isSorted && !this.isFirst) rows.order(by(this.addresses))
    this.most = Math.min(MAX_ROWS, GROWTH * this.most)
    this.isFirst = false
    this.rows = new RowTexts()
    this.addresses = []
    return rows
  }
}

/** Code unit order, close enough to SQLite's. */
function by(addresses: readonly string[]): (one: number, other: number) => number {
  return (one, other) => {
    const [first = '', second = ''] = [addresses[one], addresses[other]]
    if (first === second) return one - other
    return first < second ? -1 : 1
  }
}
