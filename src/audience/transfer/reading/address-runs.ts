/**
 * The order in which the rows of a large file are done: by address, run by run.
 *
 * The database finds contacts by their address. Rows in the order of a file meet that index at random, and writing one anew each time is
 * half of what an import costs where there are a million; neighbours are written together. The first run stays as the file has it: a
 * small file is no dearer that way, and is shown in the order in which somebody wrote it.
 *
 * The same file makes the same runs each time, since an import that goes on passes over as many rows as are done. So what is
 * decided here may only change together with a new `ImportOptions.order`. Called by the thread that reads a file. Pure.
 */
import type { Rejection } from '../import.js'
import type { SaidRow } from './read-row.js'
import { RowTexts } from './row-texts.js'

/** Rows of the first run; each has four times as many as the one before, up to the most, so that writing begins at once. */
const FIRST_ROWS = 4_096
const GROWTH = 4
const MOST_ROWS = 65_536
/** Octets of a run: they lie in memory, those of the run that is being written as well. */
const MOST_OCTETS = 33_554_432

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
    // Rejections come first, in the order of the file.
    this.addresses.push('reason' in row ? '' : row.email)
  }

  /** The run is to be taken before anything is added. */
  get isFull(): boolean {
    return this.rows.count >= this.most || this.rows.octets >= MOST_OCTETS
  }

  /** What was added since the last one. */
  take(): RowTexts {
    const { rows } = this
    if (this.isSorted && !this.isFirst) rows.order(by(this.addresses))
    this.most = Math.min(MOST_ROWS, GROWTH * this.most)
    this.isFirst = false
    this.rows = new RowTexts()
    this.addresses = []
    return rows
  }
}

/** As SQLite compares them, as far as it matters: by code. */
function by(addresses: readonly string[]): (one: number, other: number) => number {
  return (one, other) => {
    const [first = '', second = ''] = [addresses[one], addresses[other]]
    if (first === second) return one - other
    return first < second ? -1 : 1
  }
}
