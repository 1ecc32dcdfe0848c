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
import { rowText } from './row-text.js'

/** Rows of the first run; each has four times as many as the one before, up to the most, so that writing begins at once. */
const FIRST_ROWS = 4_096
const GROWTH = 4
const MOST_ROWS = 65_536
/** Characters of a run: they lie in memory, those of the run that is being written as well. */
const MOST_LENGTH = 16_777_216

/** What a row says, in as little memory as it takes. */
interface KeptRow {
  /** Nothing of a rejection: they come first, in the order of the file. */
  readonly email: string
  readonly text: string
}

export class AddressRuns {
  private readonly isSorted: boolean
  private rows: KeptRow[] = []
  private length = 0
  private most = FIRST_ROWS
  private isFirst = true

  constructor(isSorted: boolean) {
    this.isSorted = isSorted
  }

  add(row: SaidRow | Rejection): void {
    const text = rowText(row)
    this.rows.push({ email: 'reason' in row ? '' : row.email, text })
    this.length += text.length
  }

  /** The run is to be taken before anything is added. */
  get isFull(): boolean {
    return this.rows.length >= this.most || this.length >= MOST_LENGTH
  }

  /** What was added since the last one, as `rowText` writes it. */
  take(): readonly string[] {
    const { rows } = this
    if (this.isSorted && !this.isFirst) rows.sort(byAddress)
    this.most = Math.min(MOST_ROWS, GROWTH * this.most)
    this.isFirst = false
    this.rows = []
    this.length = 0
    return rows.map(({ text }) => text)
  }
}

/** As SQLite compares them, as far as it matters: by code. */
function byAddress(one: KeptRow, other: KeptRow): number {
  if (one.email === other.email) return 0
  return one.email < other.email ? -1 : 1
}
