/**
 * SQL of the event log: append, read on from a cursor, move the cursor.
 *
 * The log is append-only. On SQLite sequence order is commit order, since there is one writer at a time. What events about contacts
 * say is read only when somebody asks for it, where that can be done at once: an import appends three for each of its rows, and most
 * often nobody does (`late-payload-store.ts`).
 */
import { sql, type Generated } from 'kysely'
import type { Queries, Tx } from '../db/database.js'
import { rowsInsert } from '../db/insert-rows.js'
import { statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { AnyEvent, Event, EventKind } from './event.js'
import { LatePayloads } from './late-payload-store.js'
import { LoggedEvent, type LoggedRow } from './logged-event.js'

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

/** With its place in the log; where no kinds are named, one about a message. */
export type StoredEvent<Kind extends EventKind = Event['kind']> = Extract<
  AnyEvent,
  { readonly kind: Kind }
> & { readonly seq: number }

const APPENDED = ['kind', 'workspace_id', 'message_id', 'is_sandbox', 'occurred_at', 'payload']

const insertRows = rowsInsert({ table: 'events', columns: () => APPENDED })

/** Appends in the order given. */
export async function appendEvents(tx: Tx, events: readonly AnyEvent[]): Promise<void> {
  // prettier-ignore
  const rows = events.map(({ kind, workspaceId, messageId, isSandbox, occurredAt, payload }) => [
    kind, workspaceId, messageId, flag(isSandbox), occurredAt, JSON.stringify(payload),
  ])
  for (const run of runsOfOneKind(rows)) await insertRows(tx.db, run)
}

/** Rows that are worth a statement of their own. */
const FEW = 32

/** Those of one kind have most in common; where kinds change often all are one run. */
function runsOfOneKind<Row extends readonly unknown[]>(rows: readonly Row[]): readonly (readonly Row[])[] {
  if (rows.length === 0) return []
  const starts = [...rows.keys()].filter(at => at === 0 || rows[at]?.[0] !== rows[at - 1]?.[0])
  if (rows.length < FEW * starts.length) return [rows]
  return starts.map((start, at) => rows.slice(start, starts[at + 1]))
}

/** Without what events about no message say, where that is read later. */
function selectEvents(db: Queries) {
  const payload = db.run ? sql<string | null>`iif(message_id is null, null, payload)` : sql<string>`payload`
  return db
    .selectFrom('events')
    .select(['seq', 'kind', 'workspace_id', 'message_id', 'is_sandbox', 'occurred_at', payload.as('payload')])
    .orderBy('seq')
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
  return fromRows<Kind>(db, rows)
}

const selectTail = statement((db, { seq, limit }: { readonly seq: number; readonly limit: number }) =>
  selectEvents(db).where('seq', '>', seq).limit(limit),
)

/** The next events of whatever kind after a position, oldest first. */
export async function readTail(db: Queries, seq: number, limit: number): Promise<StoredEvent<EventKind>[]> {
  return fromRows(db, (await selectTail(db, { seq, limit })).rows)
}

function fromRows<Kind extends EventKind>(db: Queries, rows: readonly LoggedRow[]): StoredEvent<Kind>[] {
  const late = new LatePayloads(db, rows)
  return rows.map(row => new LoggedEvent(row, late) as unknown as StoredEvent<Kind>)
}

const selectNewest = statement(db => db.selectFrom('events').select(e => e.fn.max('seq').as('seq')))

/** The position of the newest event; 0 for an empty log. */
export async function newestSeq(db: Queries): Promise<number> {
  const { rows } = await selectNewest(db, {})
  return rows[0]?.seq ?? 0
}

/** The position up to which a consumer has reacted; undefined for one that never had anything to react to. */
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

/**
 * The oldest events, up to a position that all consumers have passed.
 *
 * @param through position of the last one that may go
 * @param limit rows looked at
 * @returns how many were deleted; 0 when those that are left are young
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

/** When the newest event was appended, ms since epoch UTC; undefined in an empty log. */
export async function lastEventAt(db: Queries): Promise<number | undefined> {
  const row = await db
    .selectFrom('events')
    .select('occurred_at')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.occurred_at
}
