/**
 * SQL of the queue: one row per message that is still to be delivered.
 *
 * Every statement touches a bounded number of rows through the index `queue_due (lane, next_attempt_at)`, or
 * the primary key; none scans the queue, however long it is.
 */
import { sql } from 'kysely'
import type { Queries } from '../db/database.js'
import { inLists, inPieces, statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import { laneKey } from './lane.js'
import type { Priority } from '../messages/mail-origin.js'

interface QueueRow {
  message_id: string
  workspace_id: string
  destination: string
  priority: Priority
  lane: string
  attempts: number
  next_attempt_at: number
  expires_at: number
  is_held: Flag
  was_handed_over: Flag
  enqueued_at: number
  content_id: string
  recipient: string
  dsn_notify: string | null
  is_withdrawn: Flag
  /** The run of a server process that has it in hand. */
  claimed_by: string | null
  /** Processes in a row that ended with it in hand. */
  crashes: number
}

declare module '../db/tables.js' {
  interface Tables {
    queue: QueueRow
  }
}

export interface QueueEntry {
  readonly messageId: string
  readonly workspaceId: string
  /** The recipient's domain as A-labels. */
  readonly destination: string
  readonly priority: Priority
  /** Attempts begun so far. */
  readonly attempts: number
  readonly nextAttemptAt: number
  /** From here on a further deferral is final. */
  readonly expiresAt: number
  /** Held back by the operator. */
  readonly isHeld: boolean
  /** Whether a remote server was ever offered it (email.sent is told once). */
  readonly wasOffered: boolean
  readonly enqueuedAt: number
  readonly contentId: string
  /** Envelope recipient; domain as A-labels. */
  readonly recipient: string
  /** What its submitter asked to be told, as in NOTIFY (RFC 3461 §4.1). */
  readonly notify?: string
  /** Deleted by the operator while it was being delivered: it is not tried again. */
  readonly isWithdrawn: boolean
  /** Of one that was just claimed: when the attempt that begins fell due. */
  readonly dueAt?: number
}

export type NewQueueEntry = Pick<
  QueueEntry,
  | 'messageId'
  | 'workspaceId'
  | 'destination'
  | 'priority'
  | 'nextAttemptAt'
  | 'expiresAt'
  | 'enqueuedAt'
  | 'contentId'
  | 'recipient'
  | 'notify'
> & {
  /** Its content is large (`isLargeContent`). */
  readonly isLarge?: boolean
  readonly campaignId?: string | undefined
}

const insertRows = statement((db, { rows }: { rows: readonly QueueRow[] }) =>
  db.insertInto('queue').values(rows),
)

export async function insertQueueEntries(db: Queries, entries: readonly NewQueueEntry[]): Promise<void> {
  const rows = entries.map(entry => ({
    message_id: entry.messageId,
    workspace_id: entry.workspaceId,
    destination: entry.destination,
    priority: entry.priority,
    lane: laneKey(entry.destination, entry.priority, entry.workspaceId, entry.isLarge, entry.campaignId),
    attempts: 0,
    next_attempt_at: entry.nextAttemptAt,
    expires_at: entry.expiresAt,
    is_held: flag(false),
    was_handed_over: flag(false),
    enqueued_at: entry.enqueuedAt,
    content_id: entry.contentId,
    recipient: entry.recipient,
    dsn_notify: entry.notify ?? null,
    is_withdrawn: flag(false),
    claimed_by: null,
    crashes: 0,
  }))
  for (const piece of inPieces(rows)) await insertRows(db, { rows: piece })
}

/**
 * The lanes that have anything unheld that is not in hand, each with its earliest due time, in steps from one index entry to
 * the next lane: its cost is the number of lanes, not of messages.
 */
export async function listLanes(db: Queries): Promise<{ lane: string; dueAt: number }[]> {
  const { rows } = await sql<{ lane: string; due_at: number | null }>`
    with recursive step(lane) as (
      select min(lane) from queue where is_held = 0
      union all
      select (select min(lane) from queue where is_held = 0 and lane > step.lane)
      from step where step.lane is not null
    )
    select lane,
      (select min(next_attempt_at) from queue
        where is_held = 0 and claimed_by is null and queue.lane = step.lane) as due_at
    from step where lane is not null`.execute(db)
  return rows.flatMap(row => (row.due_at === null ? [] : [{ lane: row.lane, dueAt: row.due_at }]))
}

const selectLane = statement((db, { lane, now, limit }: { lane: string; now: number; limit: number }) =>
  db
    .selectFrom('queue')
    .selectAll()
    .where('lane', '=', lane)
    .where('is_held', '=', 0)
    .where('claimed_by', 'is', null)
    .where('next_attempt_at', '<=', now)
    .orderBy('next_attempt_at')
    .orderBy('message_id')
    .limit(limit),
)

/** The lane's entries that are due, neither held nor in hand, longest due first. */
export async function selectDue(
  db: Queries,
  lane: string,
  now: number,
  limit: number,
): Promise<QueueEntry[]> {
  const { rows } = await selectLane(db, { lane, now, limit })
  return rows.map(entryFromRow)
}

const selectNextDue = statement((db, { lane, after }: { lane: string; after: number }) =>
  db
    .selectFrom('queue')
    .select('next_attempt_at')
    .where('lane', '=', lane)
    .where('is_held', '=', 0)
    .where('claimed_by', 'is', null)
    .where('next_attempt_at', '>', after)
    .orderBy('next_attempt_at')
    .limit(1),
)

/** When, after that moment, the lane's next entry falls due that is neither held nor in hand; undefined when there is none. */
export async function nextDueAt(db: Queries, lane: string, after: number): Promise<number | undefined> {
  const { rows } = await selectNextDue(db, { lane, after })
  return rows[0]?.next_attempt_at
}

/** No longer in hand: its outcome is known. */
export async function deferEntry(
  db: Queries,
  id: string,
  nextAttemptAt: number,
  wasHandedOver: boolean,
): Promise<void> {
  await db
    .updateTable('queue')
    .set({
      next_attempt_at: nextAttemptAt,
      claimed_by: null,
      crashes: 0,
      ...(wasHandedOver ? { was_handed_over: flag(true) } : {}),
    })
    .where('message_id', '=', id)
    .execute()
}

const deleteRows = statement((db, { ids }: { ids: readonly string[] }) =>
  db.deleteFrom('queue').where('message_id', 'in', ids).returningAll(),
)

/** @returns as they were; those that an operator deleted meanwhile are missing */
export async function removeEntries(db: Queries, ids: readonly string[]): Promise<QueueEntry[]> {
  const entries: QueueEntry[] = []
  for (const list of inLists(ids))
    for (const row of (await deleteRows(db, { ids: list })).rows) entries.push(entryFromRow(row))
  return entries
}

const selectRows = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('queue').selectAll().where('message_id', 'in', ids),
)

/** Which of these are still queued: an operator may have deleted some meanwhile. */
export async function findEntries(db: Queries, ids: readonly string[]): Promise<QueueEntry[]> {
  const entries: QueueEntry[] = []
  for (const list of inLists(ids))
    for (const row of (await selectRows(db, { ids: list })).rows) entries.push(entryFromRow(row))
  return entries
}

export function entryFromRow(row: QueueRow): QueueEntry {
  return {
    messageId: row.message_id,
    workspaceId: row.workspace_id,
    destination: row.destination,
    priority: row.priority,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    expiresAt: row.expires_at,
    isHeld: row.is_held === 1,
    wasOffered: row.was_handed_over === 1,
    enqueuedAt: row.enqueued_at,
    contentId: row.content_id,
    recipient: row.recipient,
    ...(row.dsn_notify === null ? {} : { notify: row.dsn_notify }),
    isWithdrawn: row.is_withdrawn === 1,
  }
}

interface Beginning extends Readonly<Record<string, unknown>> {
  readonly ids: readonly string[]
  readonly retryAt: number
  readonly incarnation: string
}

const countAttempt = statement((db, { ids, retryAt, incarnation }: Beginning) =>
  db
    .updateTable('queue')
    .set(row => ({
      attempts: row('attempts', '+', 1),
      next_attempt_at: retryAt,
      claimed_by: incarnation,
    }))
    .where('message_id', 'in', ids),
)

/** Counts the attempt, says who has it in hand, and when the next one would be, before anything is dialled. */
export async function claimEntries(
  db: Queries,
  ids: readonly string[],
  retryAt: number,
  incarnation: string,
): Promise<void> {
  for (const list of inLists(ids)) await countAttempt(db, { ids: list, retryAt, incarnation })
}

/** Takes back `beginAttempt` for what was never dialled. */
export async function releaseClaims(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set(row => ({ attempts: row('attempts', '-', 1), next_attempt_at: dueAt, claimed_by: null }))
      .where('message_id', 'in', list)
      .execute()
}

/** No longer in hand, and due when `beginAttempt` said: what came of the attempt is not known. */
export async function clearClaims(db: Queries, ids: readonly string[]): Promise<void> {
  for (const list of inLists(ids))
    await db.updateTable('queue').set({ claimed_by: null }).where('message_id', 'in', list).execute()
}

/** A row that a process had in hand when it ended. */
export interface Orphan {
  readonly messageId: string
  /** Processes in a row that ended with it in hand, before this one. */
  readonly crashes: number
}

/** What processes that are gone had in hand. Bounded by what one process has under way. */
export async function findOrphans(db: Queries, incarnation: string): Promise<Orphan[]> {
  const rows = await db
    .selectFrom('queue')
    .select(['message_id', 'crashes'])
    .where('claimed_by', 'is not', null)
    .where('claimed_by', '!=', incarnation)
    .orderBy('message_id')
    .execute()
  return rows.map(row => ({ messageId: row.message_id, crashes: row.crashes }))
}

/** One more crash, and due then. */
export async function requeueOrphans(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set(row => ({ crashes: row('crashes', '+', 1), next_attempt_at: dueAt, claimed_by: null }))
      .where('message_id', 'in', list)
      .execute()
}

/** What says how far ahead a row may be due. */
export interface Waiting {
  readonly messageId: string
  readonly attempts: number
  readonly nextAttemptAt: number
  readonly enqueuedAt: number
  /** Whether it waits for the time that its sender named. */
  readonly isScheduled: boolean
}

export interface WaitingPage {
  readonly lane: string
  /** Rows due after this moment, or at it with a greater id. */
  readonly after: { readonly dueAt: number; readonly messageId: string }
  readonly limit: number
}

/** Of one lane, soonest first; neither held nor in hand. */
export async function selectWaiting(db: Queries, { lane, after, limit }: WaitingPage): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('queue')
    .innerJoin('messages', 'messages.id', 'queue.message_id')
    .select(['message_id', 'attempts', 'next_attempt_at', 'enqueued_at', 'messages.status'])
    .where('lane', '=', lane)
    .where('is_held', '=', 0)
    .where('claimed_by', 'is', null)
    .where('next_attempt_at', '>=', after.dueAt)
    .where(e =>
      e.or([
        e('next_attempt_at', '>', after.dueAt),
        e.and([e('next_attempt_at', '=', after.dueAt), e('message_id', '>', after.messageId)]),
      ]),
    )
    .orderBy('next_attempt_at')
    .orderBy('message_id')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    messageId: row.message_id,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    enqueuedAt: row.enqueued_at,
    isScheduled: row.status === 'scheduled',
  }))
}

/** Those that nobody has taken in hand meanwhile. */
export async function correctDueTime(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set({ next_attempt_at: dueAt })
      .where('message_id', 'in', list)
      .where('claimed_by', 'is', null)
      .execute()
}
