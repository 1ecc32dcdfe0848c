/**
 * SQL of what events say that were read without it: looked up when the first of their kind is asked for it, for all that were read together.
 *
 * Of SQLite alone, which answers at once; there the payloads of an import's events are most of what reading them would cost. An event stays
 * in the log until all consumers have passed it. Fails: as the database does; Error where the event is not there any more.
 */
import { sql } from 'kysely'
import type { Queries } from '../db/database.js'
import type { LoggedRow, Payloads } from './logged-event.js'

export class LatePayloads implements Payloads {
  private readonly db: Queries
  private readonly first: number
  private readonly last: number
  private readonly texts = new Map<string, ReadonlyMap<number, string>>()

  /** @param rows that were read together, in the order of the log */
  constructor(db: Queries, rows: readonly Pick<LoggedRow, 'seq'>[]) {
    this.db = db
    this.first = rows[0]?.seq ?? 0
    this.last = rows.at(-1)?.seq ?? 0
  }

  textOf({ seq, kind }: { readonly seq: number; readonly kind: string }): string {
    const texts = this.texts.get(kind) ?? this.read(kind)
    this.texts.set(kind, texts)
    const text = texts.get(seq)
    if (text === undefined) throw new Error(`event ${seq} is not in the log any more`)
    return text
  }

  private read(kind: string): ReadonlyMap<number, string> {
    const { db, first, last } = this
    if (!db.run) throw new Error('the transaction is over in which the event was read')
    const { rows } = db.run<{ seq: number; payload: string }>(
      sql`
        select seq, payload from events
        where seq between ${first} and ${last} and kind = ${kind} and message_id is null`.compile(db),
    )
    return new Map(rows.map(({ seq, payload }) => [seq, payload]))
  }
}
