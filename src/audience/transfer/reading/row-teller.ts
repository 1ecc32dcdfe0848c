/**
 * Sends the rows of each run in batches, limited by what the importer has acknowledged, while the next run is read.
 *
 * Called by the reader thread. Never fails.
 */
import type { ReaderAnswer, RowsRead } from './import-reader-protocol.js'
import type { RowTexts } from './row-texts.js'

/** Rows per message. */
const ROWS_AT_ONCE = 500
/** Rows sent but not acknowledged: more than one transaction takes, so that the next is ready. */
const ROWS_AHEAD = 4_000

export interface Run {
  readonly rows: RowTexts
  /** File position after the run. */
  readonly octets: number
}

export class RowTeller {
  private readonly say: (answer: ReaderAnswer, handedOver?: readonly ArrayBuffer[]) => void
  /** Rows still to skip. */
  private left: number
  /** Rows sent but not acknowledged. */
  private ahead = 0
  /** File position after the last run sent. */
  private octets = 0
  private telling: Promise<void> = Promise.resolve()
  private onTaken: () => void = () => {}

  constructor(skip: number, say: RowTeller['say']) {
    this.left = skip
    this.say = say
  }

  /** Resolves once the previous run is sent. */
  async tell(run: Run): Promise<void> {
    await this.telling
    this.telling = this.tellAll(run)
  }

  /** Resolves once all runs are sent. */
  async end(): Promise<void> {
    await this.telling
  }

  /** The importer acknowledged rows. */
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
