/**
 * Tells the rows of one run after the other, some at a time and never more than the writer soon takes, while the next run is read.
 *
 * Called by the thread that reads a file. Fails: never.
 */
import type { ReaderAnswer, RowsRead } from './import-reader-protocol.js'
import type { RowTexts } from './row-texts.js'

/** Told in one go. */
const ROWS_AT_ONCE = 500
/** Told and not in hand yet: more than one transaction takes while as many are made. */
const ROWS_AHEAD = 4_000

export interface Run {
  readonly rows: RowTexts
  /** How much of the file was read up to its end. */
  readonly octets: number
}

export class RowTeller {
  private readonly say: (answer: ReaderAnswer, handedOver?: readonly ArrayBuffer[]) => void
  /** Rows that are done already. */
  private left: number
  /** Told, and not in hand yet. */
  private ahead = 0
  /** Of the file, up to the end of the last run that was told. */
  private octets = 0
  private telling: Promise<void> = Promise.resolve()
  private onTaken: () => void = () => {}

  constructor(skip: number, say: RowTeller['say']) {
    this.left = skip
    this.say = say
  }

  /** Resolves once the run before this one is told. */
  async tell(run: Run): Promise<void> {
    await this.telling
    this.telling = this.tellAll(run)
  }

  /** Resolves once everything is told. */
  async end(): Promise<void> {
    await this.telling
  }

  /** The writer has them in hand. */
  taken(rows: number): void {
    this.ahead -= rows
    this.onTaken()
  }

  private async tellAll({ rows, octets }: Run): Promise<void> {
    const skipped = Math.min(this.left, rows.count)
    this.left -= skipped
    for (let at = skipped; at < rows.count; at += ROWS_AT_ONCE) {
      while (this.ahead >= ROWS_AHEAD) await new Promise<void>(resolve => (this.onTaken = resolve))
      const end = Math.min(at + ROWS_AT_ONCE, rows.count)
      const piece = rows.piece(at, end)
      const done = this.octets + (end / rows.count) * (octets - this.octets)
      const told: RowsRead = { kind: 'rows', rows: piece, count: end - at, octets: Math.floor(done) }
      this.say(told, [piece.buffer])
      this.ahead += told.count
    }
    this.octets = octets
  }
}
