/**
 * SQL of the event log: append, read from a cursor, move the cursor.
 *
 * The log is append-only. On SQLite, sequence order is commit order because there is one writer at a time. There, payloads of events
 * without a message are read only on demand: an import appends three events per row, and mostly nobody needs their payloads.
 */
import { sql, type Generated } from 'kysely'
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
  for (const run of splitByKind(rows)) await insertRows(tx.db, run)
}

/** Average run length from which separate statements pay off. */
const MIN_RUN_LENGTH = 32

/** Splits rows where the kind changes, because inserts of one kind share more constants. Short runs stay together. */
function splitByKind<Row extends readonly unknown[]>(rows: readonly Row[]): readonly (readonly Row[])[] {
  if (rows.length === 0) return []
  const starts = [...rows.keys()].filter(at => at === 0 || rows[at]?.[0] !== rows[at - 1]?.[0])
  if (rows.length < MIN_RUN_LENGTH * starts.length) return [rows]
  return starts.map((start, at) => rows.slice(start, starts[at + 1]))
}

/** Leaves out payloads that are read on demand. */
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

/** The next events of any kind after a position, oldest first. */
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

interface LoggedRow {
  readonly seq: number
  readonly kind: string
  readonly workspace_id: string
  readonly message_id: string | null
  readonly is_sandbox: number
  readonly occurred_at: number
  /** JSON; null if it is read on demand. */
  readonly payload: string | null
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
  #text: string | undefined
  #parsed: unknown
  readonly #late: LatePayloads

  constructor(row: LoggedRow, late: LatePayloads) {
    this.seq = row.seq
    this.kind = row.kind
    this.workspaceId = row.workspace_id
    this.messageId = row.message_id
    this.isSandbox = row.is_sandbox === 1
    this.occurredAt = row.occurred_at
    this.#text = row.payload ?? undefined
    this.#late = late
  }

  /** @throws Error if the payload is damaged or can no longer be read */
  get payload(): unknown {
    if (this.#parsed === undefined) {
      this.#parsed = JSON.parse(this.#text ?? this.#late.textOf(this)) as unknown
      this.#text = undefined
    }
    return this.#parsed
  }

  toJSON(): unknown {
    const { seq, kind, workspaceId, messageId, isSandbox, occurredAt, payload } = this
    return { seq, kind, workspaceId, messageId, isSandbox, occurredAt, payload }
  }
}

/**
 * Reads payloads on demand, for all events of a kind that were read together. SQLite only: it needs synchronous reads.
 *
 * Safe because an event stays in the log until all consumers have passed it.
 */
class LatePayloads {
  private readonly db: Queries
  private readonly first: number
  private readonly last: number
  private readonly texts = new Map<string, ReadonlyMap<number, string>>()

  /** @param rows read together, in log order */
  constructor(db: Queries, rows: readonly Pick<LoggedRow, 'seq'>[]) {
    this.db = db
    this.first = rows[0]?.seq ?? 0
    this.last = rows.at(-1)?.seq ?? 0
  }

  textOf({ seq, kind }: { readonly seq: number; readonly kind: string }): string {
    const texts = this.texts.get(kind) ?? this.read(kind)
    this.texts.set(kind, texts)
    const text = texts.get(seq)
    if (text === undefined) throw new Error(`event ${seq} is no longer in the log`)
    return text
  }

  private read(kind: string): ReadonlyMap<number, string> {
    const { db, first, last } = this
    if (!db.run) throw new Error('the transaction in which the event was read has ended')
    const { rows } = db.run<{ seq: number; payload: string }>(
      sql`
        select seq, payload from events
        where seq between ${first} and ${last} and kind = ${kind} and message_id is null`.compile(db),
    )
    return new Map(rows.map(({ seq, payload }) => [seq, payload]))
  }
}
