/**
 * SQL: up to where the event log is settled, so that no event at a lower position can still appear.
 *
 * On PostgreSQL positions are given before their transaction commits, and others commit in between. So each look notes the last position given, and
 * then takes a transaction id: every transaction that has a position up to there has a lower id, since those of the stores get theirs when they
 * begin. The position is settled once every transaction with a lower id has ended (`pg_snapshot_xmin`). `pg_snapshot_xmax` would not do in
 * place of an id of our own: it is one more than the highest id that has ended, so transactions that run may have it and higher ones.
 * On SQLite there is one writer at a time.
 *
 * A transaction of somebody else that stays open (an import, another database of the same server) would hold up consumers. So after a few looks
 * only those count that have written events, which keep a lock on the table until they have ended. Those delay consumers, and make them miss
 * nothing.
 */
import { sql } from 'kysely'
import { dialectOf, type Queries } from '../db/database.js'

interface Tick {
  readonly seq: number
  /** Who has a position up to `seq` has a lower transaction id. */
  readonly before: bigint
}

/** Ticks kept while a transaction stays open; the last one is replaced then. */
const MAX_TICKS = 64
/** Looks at the same first tick before the locks are read, which costs the server more than a snapshot. */
const PATIENT_LOOKS = 5

export class SettledEvents {
  private readonly reader: Queries
  private readonly ticks: Tick[] = []
  private settled = 0
  private looks = 0
  private lastGiven = Infinity
  private looking: Promise<number> | undefined

  constructor(reader: Queries) {
    this.reader = reader
  }

  /** The last position given to any transaction, as of the last look; Infinity where that is not known. */
  get given(): number {
    return this.lastGiven
  }

  /**
   * Calls at the same time share a look, so that the locks are never read before a position is noted that they are to settle.
   *
   * @returns the last settled position; Infinity where all are
   */
  last(): Promise<number> {
    if (dialectOf(this.reader) === 'sqlite') return Promise.resolve(Infinity)
    return (this.looking ??= this.look().finally(() => (this.looking = undefined)))
  }

  private async look(): Promise<number> {
    // Two statements: an id taken before the position is read may be lower than that of who took it.
    const given = await sql<{ seq: number }>`
      select case when is_called then last_value else 0 end as seq from events_seq_seq`.execute(this.reader)
    const seq = (this.lastGiven = given.rows[0]?.seq ?? 0)
    // While nothing happens no id is used up.
    if (seq === this.settled) return this.settled
    const taken = await sql<{ id: string; xmin: string }>`
      select pg_current_xact_id()::text as id, pg_snapshot_xmin(pg_current_snapshot())::text as xmin`.execute(
      this.reader,
    )
    const { id = '0', xmin = '0' } = taken.rows[0] ?? {}
    if (this.ticks.length >= MAX_TICKS) this.ticks.pop()
    this.ticks.push({ seq, before: BigInt(id) })
    if (!this.settleBefore(BigInt(xmin)) && ++this.looks > PATIENT_LOOKS)
      this.settleBefore(await this.oldestWriter())
    return this.settled
  }

  /** @param oldest every transaction with a lower id has ended, or writes no events @returns whether that settled anything */
  private settleBefore(oldest: bigint): boolean {
    const before = this.settled
    while (this.ticks[0] && this.ticks[0].before <= oldest) this.settled = this.ticks.shift()?.seq ?? 0
    if (this.settled === before && this.ticks.length > 0) return false
    this.looks = 0
    return true
  }

  /**
   * Of the transactions that run now, those count that hold a lock on the table: who takes it later takes positions after all ticks. The lock is
   * freed after the commit can be seen. Tables of other databases may have the same number.
   */
  private async oldestWriter(): Promise<bigint> {
    const { rows } = await sql<{ oldest: string }>`
      with running as (select pg_current_snapshot() as seen)
      select coalesce(
        (select min(id::text::bigint)
          from running, pg_snapshot_xip(seen) as id
          where id::xid in (
            select own.transactionid
            from pg_locks as own
              join pg_locks as table_lock on table_lock.virtualtransaction = own.virtualtransaction
            where own.locktype = 'transactionid' and own.granted
              and table_lock.database = (select oid from pg_database where datname = current_database())
              and table_lock.relation = 'events'::regclass and table_lock.mode = 'RowExclusiveLock'
          )),
        (select pg_snapshot_xmax(seen)::text::bigint from running)
      )::text as oldest`.execute(this.reader)
    return BigInt(rows[0]?.oldest ?? '0')
  }
}
