/**
 * SQL: up to where the event log is settled, so that no event at a lower position can still appear.
 *
 * On PostgreSQL positions are given before their transaction commits, and others commit in between. So a position is noted together with the
 * id that the next transaction will get (`pg_snapshot_xmax`); it is settled once every transaction with a lower id has ended
 * (`pg_snapshot_xmin`). Transactions of the stores get their id when they begin, before any position. A transaction that stays open delays
 * consumers, and makes them miss nothing. On SQLite there is one writer at a time.
 */
import { sql } from 'kysely'
import { dialectOf, type Queries } from '../db/database.js'

interface Tick {
  readonly seq: number
  /** Ids of transactions from this one on were given later. */
  readonly before: bigint
}

/** Ticks kept while a transaction stays open; the last one is replaced then. */
const MAX_TICKS = 64

export class SettledEvents {
  private readonly reader: Queries
  private readonly ticks: Tick[] = []
  private settled = 0

  constructor(reader: Queries) {
    this.reader = reader
  }

  /** @returns the last settled position; Infinity where all are */
  async last(): Promise<number> {
    if (dialectOf(this.reader) === 'sqlite') return Infinity
    // Two statements: a snapshot taken before the position is read would not cover who took it.
    const given = await sql<{ seq: number }>`
      select case when is_called then last_value else 0 end as seq from events_seq_seq`.execute(this.reader)
    const snapshot = await sql<{ xmin: string; xmax: string }>`
      select pg_snapshot_xmin(now_seen)::text as xmin, pg_snapshot_xmax(now_seen)::text as xmax
      from pg_current_snapshot() as now_seen`.execute(this.reader)
    const { xmin = '0', xmax = '0' } = snapshot.rows[0] ?? {}
    if (this.ticks.length >= MAX_TICKS) this.ticks.pop()
    this.ticks.push({ seq: given.rows[0]?.seq ?? 0, before: BigInt(xmax) })
    while (this.ticks[0] && this.ticks[0].before <= BigInt(xmin)) this.settled = this.ticks.shift()?.seq ?? 0
    return this.settled
  }
}
