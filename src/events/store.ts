/**
 * SQL of the event log: append, read from a cursor, move the cursor.
 *
 * The log is append-only. On SQLite, sequence order is commit order because there is one writer at a time.
 */
import { sql, type Generated, type Selectable } from 'kysely'
import type { Queries, Tx } from '../db/database.js'
import { rowsInsert } from '../db/insert-rows.js'
import { statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { AnyEvent, Event, EventKind } from './event.js'

interface EventRow {
  seq: Generated<number>
  kind: string
  workspace_id: string
  message_id: string | null
  is_sandbox: Flag
  occurred_at: number
  payload: string
}

interface EventCursorRow {
  consumer: string
  seq: number
}

declare module '../db/tables.js' {
  interface Tables {
    events: EventRow
    event_cursors: EventCursorRow
  }
}

/** An event with its position in the log; by default one about a message. */
export type StoredEvent<Kind extends EventKind = Event['kind']> = Extract<
  AnyEvent,
  { readonly kind: Kind }
> & { readonly seq: number }

const COLUMNS = ['kind', 'workspace_id', 'message_id', 'is_sandbox', 'occurred_at', 'payload']

const insertRows = rowsInsert({ table: 'events', columns: () => COLUMNS })

/** Appends in the order given. */
export async function appendEvents(tx: Tx, events: readonly AnyEvent[]): Promise<void> {
  // prettier-ignore
  const rows = events.map(({ kind, workspaceId, messageId, isSandbox, occurredAt, payload }) => [
    kind, workspaceId, messageId, flag(isSandbox), occurredAt, JSON.stringify(payload),
  ])
  await insertRows(tx.db, rows)
}

function selectEvents(db: Queries) {
  return db.selectFrom('events').selectAll().orderBy('seq')
}

interface After {
  readonly [name: string]: unknown
  readonly seq: number
  readonly kinds: readonly string[]
  readonly limit: number
}

const selectAfter = statement((db, { seq, kinds, limit }: After) =>
  selectEvents(db).where('seq', '>', seq).where('kind', 'in', kinds).limit(limit),
)

/** The next events of these kinds after the cursor, oldest first. */
export async function readEventsAfter<Kind extends EventKind>(
  db: Queries,
  seq: number,
  kinds: readonly Kind[],
  limit: number,
): Promise<StoredEvent<Kind>[]> {
  const { rows } = await selectAfter(db, { seq, kinds, limit })
  return rows.map(row => new LoggedEvent(row) as unknown as StoredEvent<Kind>)
}

const selectTail = statement((db, { seq, limit }: { readonly seq: number; readonly limit: number }) =>
  selectEvents(db).where('seq', '>', seq).limit(limit),
)

/** The next events of any kind after a position, oldest first. */
export async function readTail(db: Queries, seq: number, limit: number): Promise<StoredEvent<EventKind>[]> {
  const { rows } = await selectTail(db, { seq, limit })
  return rows.map(row => new LoggedEvent(row) as unknown as StoredEvent<EventKind>)
}

/** Kinds of events about one owner. */
export interface EventGroup {
  readonly kind: string
  readonly workspaceId: string
}

/** @param limit events examined @returns the kinds among the next events, and the position of the last one */
export async function summarizeTail(
  db: Queries,
  seq: number,
  limit: number,
): Promise<{ readonly groups: EventGroup[]; readonly end: number; readonly isCut: boolean }> {
  const { rows } = await sql<{ kind: string; workspace_id: string; events: number; last: number }>`
    select kind, workspace_id, count(*) as events, max(seq) as last
    from (select kind, workspace_id, seq from events where seq > ${seq} order by seq limit ${limit}) as next
    group by kind, workspace_id`.execute(db)
  return {
    groups: rows.map(({ kind, workspace_id: workspaceId }) => ({ kind, workspaceId })),
    end: rows.reduce((end, { last }) => Math.max(end, last), seq),
    isCut: rows.reduce((sum, { events }) => sum + events, 0) >= limit,
  }
}

const selectNewest = statement(db => db.selectFrom('events').select(e => e.fn.max('seq').as('seq')))

/** The position of the newest event; 0 for an empty log. */
export async function newestSeq(db: Queries): Promise<number> {
  const { rows } = await selectNewest(db, {})
  return rows[0]?.seq ?? 0
}

/** @returns undefined if the consumer has no cursor yet */
export async function findCursor(db: Queries, consumer: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('event_cursors')
    .select('seq')
    .where('consumer', '=', consumer)
    .executeTakeFirst()
  return row?.seq
}

const upsertCursor = statement((db, { consumer, seq }: { readonly consumer: string; readonly seq: number }) =>
  db
    .insertInto('event_cursors')
    .values({ consumer, seq })
    .onConflict(conflict => conflict.column('consumer').doUpdateSet({ seq })),
)

export async function moveCursor(tx: Tx, consumer: string, seq: number): Promise<void> {
  await upsertCursor(tx.db, { consumer, seq })
}

interface CursorMove extends Readonly<Record<string, unknown>> {
  readonly consumer: string
  readonly from: number
  readonly to: number
}

const advance = statement((db, { consumer, from, to }: CursorMove) =>
  db
    .insertInto('event_cursors')
    .values({ consumer, seq: to })
    .onConflict(conflict =>
      conflict.column('consumer').doUpdateSet({ seq: to }).where('event_cursors.seq', '=', from),
    )
    .returning('seq'),
)

/** @returns false if the cursor is not at `from`: what follows it was processed already */
export async function advanceCursor(tx: Tx, consumer: string, from: number, to: number): Promise<boolean> {
  return (await advance(tx.db, { consumer, from, to })).rows.length > 0
}

/**
 * Deletes the oldest events that all consumers have passed.
 *
 * @param through last position that may be deleted
 * @param limit maximum number of rows examined
 * @returns how many were deleted; 0 if the remaining ones are too young
 */
export async function deleteEventsBefore(
  db: Queries,
  before: number,
  through: number,
  limit: number,
): Promise<number> {
  const result = await sql`
    delete from events where seq in (
      select seq from (
        select seq, occurred_at from events where seq <= ${through} order by seq limit ${limit}
      ) as oldest
      where occurred_at < ${before}
    )`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

export async function lastEventAt(db: Queries): Promise<number | undefined> {
  const row = await db
    .selectFrom('events')
    .select('occurred_at')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.occurred_at
}

/** An event as read from the log. Parses its payload on first access, because most consumers skip most events. */
export class LoggedEvent {
  readonly seq: number
  readonly kind: string
  readonly workspaceId: string
  readonly messageId: string | null
  readonly isSandbox: boolean
  /** Ms since epoch UTC. */
  readonly occurredAt: number
  #text: string
  #parsed: unknown

  constructor(row: Selectable<EventRow>) {
    this.seq = row.seq
    this.kind = row.kind
    this.workspaceId = row.workspace_id
    this.messageId = row.message_id
    this.isSandbox = row.is_sandbox === 1
    this.occurredAt = row.occurred_at
    this.#text = row.payload
  }

  /** @throws Error if the payload is damaged */
  get payload(): unknown {
    if (this.#parsed === undefined) {
      this.#parsed = JSON.parse(this.#text) as unknown
      this.#text = ''
    }
    return this.#parsed
  }

  toJSON(): unknown {
    const { seq, kind, workspaceId, messageId, isSandbox, occurredAt, payload } = this
    return { seq, kind, workspaceId, messageId, isSandbox, occurredAt, payload }
  }
}
