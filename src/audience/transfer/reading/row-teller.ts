/**
 * Tells the rows of one run after the other, some at a time and never more than the writer soon takes, while the next run is read.
 *
 * Called by the thread that reads a file. Fails: never.
 */
import type { ReaderAnswer } from './import-reader-protocol.js'

/** Told in one go. */
const ROWS_AT_ONCE = 500
/** Told and not in hand yet: more than one transaction takes while as many are made. */
const ROWS_AHEAD = 4_000

export interface Run {
  /** As `rowText` writes them. */
  readonly rows: readonly string[]
  /** How much of the file was read up to its end. */
  readonly octets: number
}

export class RowTeller {
  private readonly say: (answer: ReaderAnswer) => void
  /** Rows that are done already. */
  private left: number
  /** Told, and not in hand yet. */
  private ahead = 0
  /** Of the file, up to the end of the last run that was told. */
  private octets = 0
  private telling: Promise<void> = Promise.resolve()
  private onTaken: () => void = () => {}

  constructor(skip: number, say: (answer: ReaderAnswer) => void) {
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
    const skipped = Math.min(this.left, rows.length)
    this.left -= skipped
    for (let at = skipped; at < rows.length; at += ROWS_AT_ONCE) {
      while (this.ahead >= ROWS_AHEAD) await new Promise<void>(resolve => (this.onTaken = resolve))
      const some = rows.slice(at, at + ROWS_AT_ONCE)
      const share = (at + some.length) / rows.length
      this.say({
        ...{ kind: 'rows', rows: `[${some.join(',')}]`, count: some.length },
        octets: Math.floor(this.octets + share * (octets - this.octets)),
      })
      this.ahead += some.length
    }
    this.octets = octets
  }
}
