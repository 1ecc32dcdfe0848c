/**
 * SQL of the queue: one row per message that is still to be delivered.
 *
 * Every statement touches a bounded number of rows through the index `queue_due (lane, next_attempt_at)`, the index
 * `queue_claimed` or the primary key; none scans the queue. A claimed row carries the incarnation (run) of the process
 * that claimed it, so no one claims it again before its outcome is committed. `queue_claimed` holds claimed rows only:
 * finding what a crash left costs the same however long the queue is.
 */
import { sql, type Generated } from 'kysely'
import { firstIdAt } from '../core/ids.js'
import type { Queries } from '../db/database.js'
import { inLists, inPieces, statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import { TotalsChange } from '../messages/mail-totals-store.js'
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
  /** Incarnation of the process that claimed it. */
  claimed_by: string | null
  crashes: number
}

declare module '../db/tables.js' {
  interface Tables {
    queue: QueueRow & {
      /** Only operators of all workspaces release it. */
      held_by_appliance: Generated<Flag>
    }
  }
}

export interface QueueEntry {
  readonly messageId: string
  readonly workspaceId: string
  /** The recipient's domain as A-labels. */
  readonly destination: string
  readonly priority: Priority
  readonly attempts: number
  readonly nextAttemptAt: number
  /** A deferral after this moment is final; ms since epoch UTC. */
  readonly expiresAt: number
  readonly isHeld: boolean
  /** Whether a server was ever offered the message; `email.sent` is emitted once. */
  readonly wasOffered: boolean
  readonly enqueuedAt: number
  readonly contentId: string
  /** Envelope recipient; domain as A-labels. */
  readonly recipient: string
  /** The submitter's NOTIFY parameter (RFC 3461 §4.1). */
  readonly notify?: string
  /** Deleted by the operator during a delivery: not retried. */
  readonly isWithdrawn: boolean
  /** Set by a claim: when this attempt fell due. */
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
  readonly isLarge?: boolean
  readonly campaignId?: string | undefined
  /** If it is stored already claimed: by which run of the process, and when the attempt after this one is due. */
  readonly claim?: { readonly incarnation: string; readonly retryAt: number } | undefined
}

export function laneOf({ destination, priority, workspaceId, isLarge, campaignId }: NewQueueEntry): string {
  return laneKey(destination, priority, workspaceId, isLarge, campaignId)
}

const insertRows = statement((db, { rows }: { rows: readonly QueueRow[] }) =>
  db.insertInto('queue').values(rows),
)

/** Also counts them as accepted. */
export async function insertQueueEntries(db: Queries, entries: readonly NewQueueEntry[]): Promise<void> {
  const rows = entries.map(entry => ({
    message_id: entry.messageId,
    workspace_id: entry.workspaceId,
    destination: entry.destination,
    priority: entry.priority,
    lane: laneOf(entry),
    attempts: entry.claim ? 1 : 0,
    next_attempt_at: entry.claim?.retryAt ?? entry.nextAttemptAt,
    expires_at: entry.expiresAt,
    is_held: flag(false),
    was_handed_over: flag(false),
    enqueued_at: entry.enqueuedAt,
    content_id: entry.contentId,
    recipient: entry.recipient,
    dsn_notify: entry.notify ?? null,
    is_withdrawn: flag(false),
    claimed_by: entry.claim?.incarnation ?? null,
    crashes: 0,
  }))
  for (const piece of inPieces(rows)) await insertRows(db, { rows: piece })
  const totals = new TotalsChange()
  for (const { workspaceId } of entries) totals.accepted(workspaceId, 1)
  await totals.write(db)
}

export interface LaneDue {
  readonly lane: string
  /** When its next message falls due, ms since epoch UTC. */
  readonly dueAt: number
}

/**
 * Lanes with messages that are neither held nor claimed, with the earliest due time of each. A recursive walk along the
 * index: it costs one step per lane, not per message.
 */
export async function listLanes(db: Queries): Promise<LaneDue[]> {
  const { rows } = await sql<{ lane: string; due_at: number | null }>`
    with recursive step(lane) as (
      select min(lane) from queue where is_held = 0 and claimed_by is null
      union all
      select (select min(lane) from queue where is_held = 0 and claimed_by is null and lane > step.lane)
      from step where step.lane is not null
    )
    select lane,
      (select min(next_attempt_at) from queue
        where is_held = 0 and claimed_by is null and queue.lane = step.lane) as due_at
    from step where lane is not null`.execute(db)
  return rows.flatMap(toLaneDue)
}

/** The same of messages that were enqueued since `moment`: along the primary key, as ids begin with their time. */
export async function listLanesOfNew(db: Queries, moment: number): Promise<LaneDue[]> {
  // Nothing else in the condition: another index must not look as good.
  const { rows } = await sql<{ lane: string; due_at: number | null }>`
    select lane, min(case when is_held = 0 and claimed_by is null then next_attempt_at end) as due_at
    from queue where message_id >= ${firstIdAt(moment)} group by lane`.execute(db)
  return rows.flatMap(toLaneDue)
}

function toLaneDue({ lane, due_at: dueAt }: { lane: string; due_at: number | null }): LaneDue[] {
  return dueAt === null ? [] : [{ lane, dueAt }]
}

/** Releases the claim and sets the time of the next attempt. */
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

/** @returns the removed entries; those an operator deleted meanwhile are missing */
export async function removeEntries(db: Queries, ids: readonly string[]): Promise<QueueEntry[]> {
  const entries: QueueEntry[] = []
  for (const list of inLists(ids))
    for (const row of (await deleteRows(db, { ids: list })).rows) entries.push(entryFromRow(row))
  return entries
}

const selectRows = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('queue').selectAll().where('message_id', 'in', ids),
)

/** Entries an operator deleted meanwhile are missing. */
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

/**
 * Claims entries: counts the attempt and sets the retry time, so that a crash during the attempt leaves a valid row.
 */
export async function claimEntries(
  db: Queries,
  ids: readonly string[],
  retryAt: number,
  incarnation: string,
): Promise<void> {
  for (const list of inLists(ids)) await countAttempt(db, { ids: list, retryAt, incarnation })
}

/**
 * Reverts `claimEntries` for messages that were not offered to a server. Repeating it changes nothing: another claim may
 * have followed a release whose answer was lost.
 */
export async function releaseClaims(
  db: Queries,
  ids: readonly string[],
  dueAt: number,
  incarnation: string,
): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set(row => ({ attempts: row('attempts', '-', 1), next_attempt_at: dueAt, claimed_by: null }))
      .where('message_id', 'in', list)
      .where('claimed_by', '=', incarnation)
      .execute()
}

/** Clears claims of attempts whose outcome is unknown; they stay counted and due at the retry time. */
export async function clearClaims(db: Queries, ids: readonly string[], incarnation: string): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set({ claimed_by: null })
      .where('message_id', 'in', list)
      .where('claimed_by', '=', incarnation)
      .execute()
}

/** The messages claimed by one run of the process: at most those in progress. */
export async function listClaims(
  db: Queries,
  incarnation: string,
): Promise<{ messageId: string; lane: string }[]> {
  const rows = await db
    .selectFrom('queue')
    .select(['message_id', 'lane'])
    .where('claimed_by', '=', incarnation)
    .execute()
  return rows.map(row => ({ messageId: row.message_id, lane: row.lane }))
}

/** A row that was claimed by a process that is gone. */
export interface Orphan {
  readonly messageId: string
  /** Consecutive crashes before this one. */
  readonly crashes: number
}

/** Rows claimed by nodes that are gone; at most what they had in progress. */
export async function findOrphans(db: Queries): Promise<Orphan[]> {
  const rows = await db
    .selectFrom('queue')
    .select(['message_id', 'crashes'])
    .where('claimed_by', 'is not', null)
    .where('claimed_by', 'not in', query => query.selectFrom('nodes').select('id'))
    .orderBy('message_id')
    .execute()
  return rows.map(row => ({ messageId: row.message_id, crashes: row.crashes }))
}

/** Counts a crash, releases the claim and sets the due time. */
export async function requeueOrphans(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set(row => ({ crashes: row('crashes', '+', 1), next_attempt_at: dueAt, claimed_by: null }))
      .where('message_id', 'in', list)
      .execute()
}

export interface Waiting {
  readonly messageId: string
  readonly attempts: number
  readonly nextAttemptAt: number
  readonly enqueuedAt: number
  readonly isScheduled: boolean
}

export interface WaitingPage {
  readonly lane: string
  /** Keyset of the previous page's last row. */
  readonly after: { readonly dueAt: number; readonly messageId: string }
  readonly limit: number
}

/** Rows of one lane that are neither held nor claimed, soonest first. */
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

/** Skips rows that were claimed meanwhile. */
export async function correctDueTime(db: Queries, ids: readonly string[], dueAt: number): Promise<void> {
  for (const list of inLists(ids))
    await db
      .updateTable('queue')
      .set({ next_attempt_at: dueAt })
      .where('message_id', 'in', list)
      .where('claimed_by', 'is', null)
      .execute()
}
