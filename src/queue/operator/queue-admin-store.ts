/**
 * SQL of what operators see of the queue and change in it: list, hold, release, retry, delete.
 *
 * Deliveries in progress are not interrupted.
 */
import { sql, type ExpressionBuilder } from 'kysely'
import type { Queries, Tx } from '../../db/database.js'
import { flag, type Tables } from '../../db/tables.js'
import { recordTransitions } from '../../messages/message-history.js'
import { listHeldCampaigns } from '../claiming/campaign-hold-store.js'
import { laneFromKey } from '../lane.js'
import { entryFromRow, findEntries, removeEntries, type QueueEntry } from '../queue-store.js'
import { DELETED_BY_OPERATOR } from '../claiming/claim.js'

/** The entries that fit all given conditions; all entries if none is given. */
export interface QueueSelection {
  readonly messageIds?: readonly string[]
  readonly destinations?: readonly string[]
  readonly workspaceId?: string
  /** Held by the operator, or not. */
  readonly isHeld?: boolean
}

/** Whose operators change the queue: those of all workspaces, or of one. The former's holds are theirs alone to release. */
export type QueuePower = 'appliance' | 'workspace'

export interface KindOfChange {
  readonly kind: QueueChange
  readonly now: number
  /** Default: the appliance. */
  readonly by?: QueuePower
}

export const QUEUE_CHANGES = ['hold', 'release', 'retry', 'delete'] as const
export type QueueChange = (typeof QUEUE_CHANGES)[number]

/** Entries changed in one transaction; bounds how long other writes wait. */
export const CHANGE_BATCH = 250

export interface QueueListEntry extends QueueEntry {
  readonly campaignId: string | undefined
  readonly lastSummary: string | null
  /** Held until its campaign is resumed, whether or not the row itself is held. */
  readonly isCampaignPaused: boolean
  /** A delivery attempt is in progress. */
  readonly isClaimed: boolean
  /** For a later moment, by its sender. */
  readonly isScheduled: boolean
}

/** Oldest first. @param after the entry before the first one */
export async function listEntries(
  db: Queries,
  selection: QueueSelection,
  limit: number,
  after = '',
): Promise<QueueListEntry[]> {
  const { destinations } = selection
  if (destinations && destinations.length > 1)
    return listOfDestinations(db, { ...selection, destinations }, limit, after)
  const rows = await db
    .selectFrom('queue')
    .selectAll('queue')
    .select(e =>
      e
        .selectFrom('attempts')
        .select('summary')
        .whereRef('attempts.message_id', '=', 'queue.message_id')
        .orderBy('seq', 'desc')
        .limit(1)
        .as('last_summary'),
    )
    .select(e =>
      e.selectFrom('messages').select('status').whereRef('messages.id', '=', 'queue.message_id').as('status'),
    )
    .where(e => matches(e, selection))
    .where('queue.message_id', '>', after)
    .orderBy('queue.message_id')
    .limit(limit)
    .execute()
  const paused = await listHeldCampaigns(db)
  return rows.map(row => {
    const { campaignId } = laneFromKey(row.lane)
    return {
      ...entryFromRow(row),
      campaignId,
      lastSummary: row.last_summary,
      isCampaignPaused: paused.has(campaignId ?? ''),
      isClaimed: row.claimed_by !== null,
      isScheduled: row.status === 'scheduled',
    }
  })
}

/** One index walk per destination, which bounds the cost when a site has many. */
async function listOfDestinations(
  db: Queries,
  selection: QueueSelection & { readonly destinations: readonly string[] },
  limit: number,
  after: string,
): Promise<QueueListEntry[]> {
  const found: QueueListEntry[] = []
  for (const destination of selection.destinations) {
    found.push(...(await listEntries(db, { ...selection, destinations: [destination] }, limit, after)))
    found.sort((a, b) => (a.messageId < b.messageId ? -1 : 1)).splice(limit)
  }
  return found
}

/** Workspaces of those of the messages that are queued. */
export async function findWorkspaceIds(db: Queries, messageIds: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('queue')
    .select('workspace_id')
    .distinct()
    .where('message_id', 'in', messageIds)
    .execute()
  return rows.map(row => row.workspace_id)
}

/** @returns at most `most` */
export async function countEntries(db: Queries, selection: QueueSelection, most: number): Promise<number> {
  const matching = db
    .selectFrom('queue')
    .select('message_id')
    .where(e => matches(e, selection))
    .limit(most)
  const { total } = await db
    .selectFrom(matching.as('counted'))
    .select(e => e.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

/** Destinations read per statement. */
const DESTINATIONS_AT_ONCE = 5_000

/**
 * Destinations with mail, held or not. A recursive walk along the index: it costs one step per destination, not per
 * message.
 */
export async function listDestinations(db: Queries, limit = Infinity): Promise<string[]> {
  const all: string[] = []
  for (;;) {
    const after = all.at(-1) ?? ''
    const wanted = Math.min(DESTINATIONS_AT_ONCE, limit - all.length)
    const { rows } = await sql<{ destination: string }>`
      with recursive step(destination) as (
        select min(destination) from queue where destination > ${after}
        union all
        select (select min(destination) from queue where destination > step.destination)
        from step where step.destination is not null
      )
      select destination from step where destination is not null limit ${wanted}`.execute(db)
    all.push(...rows.map(row => row.destination))
    if (rows.length < DESTINATIONS_AT_ONCE) return all
  }
}

/** Position in a walk over a selection. */
export interface QueuePosition {
  /** Present if destinations are selected: they are walked one after the other. */
  readonly destination?: string
  readonly messageId: string
}

export interface SelectedEntry {
  readonly messageId: string
  readonly workspaceId: string
}

export interface SelectedBatch {
  readonly entries: readonly SelectedEntry[]
  /** Where the next batch begins; undefined after the last one. */
  readonly end: QueuePosition | undefined
}

/**
 * The next entries of the selection that a change applies to, at most `CHANGE_BATCH`. Nothing is locked between batches; entries
 * enqueued meanwhile may be missing.
 *
 * @param after end of the batch before
 */
export async function selectBatch(
  db: Queries,
  selection: QueueSelection,
  change: KindOfChange,
  after?: QueuePosition,
): Promise<SelectedBatch> {
  const entries: SelectedEntry[] = []
  for (const destination of walkedDestinations(selection, after)) {
    const from = destination === after?.destination ? after?.messageId : undefined
    const rows = await db
      .selectFrom('queue')
      .select(['message_id', 'workspace_id'])
      .where(e =>
        matches(e, destination === undefined ? selection : { ...selection, destinations: [destination] }),
      )
      .where(e => isChangedBy(e, change))
      .where('message_id', '>', from ?? '')
      .orderBy('message_id')
      .limit(CHANGE_BATCH - entries.length)
      .execute()
    entries.push(...rows.map(row => ({ messageId: row.message_id, workspaceId: row.workspace_id })))
    const last = entries.at(-1)
    if (last && entries.length === CHANGE_BATCH)
      return {
        entries,
        end: { ...(destination === undefined ? {} : { destination }), messageId: last.messageId },
      }
  }
  return { entries, end: undefined }
}

/** Several destinations in alphabetical order, so that a walk can be continued; undefined: one walk over everything. */
function walkedDestinations(
  { destinations }: QueueSelection,
  after: QueuePosition | undefined,
): readonly (string | undefined)[] {
  if (!destinations) return [undefined]
  const sorted = [...destinations].sort()
  return after?.destination === undefined ? sorted : sorted.filter(one => one >= (after.destination ?? ''))
}

/** How many of the selected entries the change applies to. */
export async function countChanged(
  db: Queries,
  selection: QueueSelection,
  change: KindOfChange,
): Promise<number> {
  let total = 0
  for (const destination of walkedDestinations(selection, undefined)) {
    const { found } = await db
      .selectFrom('queue')
      .select(e => e.fn.countAll<number>().as('found'))
      .where(e =>
        matches(e, destination === undefined ? selection : { ...selection, destinations: [destination] }),
      )
      .where(e => isChangedBy(e, change))
      .executeTakeFirstOrThrow()
    total += found
  }
  return total
}

/** Whether the change has an effect on a row. Scheduled messages keep their time. */
function isChangedBy(e: ExpressionBuilder<Tables, 'queue'>, { kind, now, by = 'appliance' }: KindOfChange) {
  if (kind === 'hold')
    return e.and([
      by === 'appliance' ? e('queue.held_by_appliance', '=', 0) : e('queue.is_held', '=', 0),
      e('queue.is_withdrawn', '=', 0),
    ])
  if (kind === 'release')
    return e.and([
      e('queue.is_held', '=', 1),
      ...(by === 'appliance' ? [] : [e('queue.held_by_appliance', '=', 0)]),
    ])
  if (kind === 'delete') return e('queue.is_withdrawn', '=', 0)
  return e.and([e('queue.next_attempt_at', '>', now), e.not(isScheduled(e))])
}

function isScheduled(e: ExpressionBuilder<Tables, 'queue'>) {
  return e.exists(
    e
      .selectFrom('messages')
      .select('messages.id')
      .whereRef('messages.id', '=', 'queue.message_id')
      .where('messages.status', '=', 'scheduled'),
  )
}

export async function setHeld(
  db: Queries,
  selection: QueueSelection,
  isHeld: boolean,
  by: QueuePower = 'appliance',
): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ is_held: flag(isHeld), held_by_appliance: flag(isHeld && by === 'appliance') })
    .where(e => matches(e, selection))
    .where(e => isChangedBy(e, { kind: isHeld ? 'hold' : 'release', now: 0, by }))
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Makes entries due now. Claimed entries are unaffected: their outcome sets the next attempt. */
export async function retryNow(db: Queries, selection: QueueSelection, now: number): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ next_attempt_at: now })
    .where(e => matches(e, selection))
    .where('next_attempt_at', '>', now)
    .where(e => e.not(isScheduled(e)))
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/**
 * Deletes entries; their messages become `failed`. A delivery in progress is not interrupted, only its retries are.
 *
 * @param isServing whether a server may be delivering
 * @returns how many, at most one batch: call until 0
 */
export async function deleteEntries(
  tx: Tx,
  selection: QueueSelection,
  now: number,
  isServing: boolean,
): Promise<number> {
  const entries = await listEntries(tx.db, selection, CHANGE_BATCH)
  const ids = entries.map(entry => entry.messageId)
  await failWaiting(tx, ids, now, isServing, DELETED_BY_OPERATOR)
  return ids.length
}

/**
 * Cancels queued messages for their sender, as many as fit one transaction.
 *
 * @param messageIds ids that are not queued are ignored
 * @param reason stored as the reason of `email.failed`
 * @returns messages that became `failed`; those being delivered are not among them
 */
export async function cancelQueued(
  tx: Tx,
  messageIds: readonly string[],
  now: number,
  reason: string,
): Promise<ReadonlySet<string>> {
  const entries = await findEntries(tx.db, messageIds)
  const ids = entries.map(entry => entry.messageId)
  return failWaiting(tx, ids, now, true, reason)
}

async function failWaiting(
  tx: Tx,
  ids: readonly string[],
  now: number,
  isServing: boolean,
  reason: string,
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const inHand = isServing ? await findClaimed(tx.db, ids) : new Set<string>()
  await markWithdrawn(tx.db, [...inHand], now)
  const waiting = ids.filter(id => !inHand.has(id))
  const taken = await recordTransitions(
    tx,
    waiting.map(messageId => ({ kind: 'failed', messageId, at: now, facts: { reason } })),
  )
  // Also removes rows of messages that ended in another way, such as one opened before its delivery was confirmed.
  await removeEntries(tx.db, waiting)
  return new Set([...taken].map(({ messageId }) => messageId))
}

async function findClaimed(db: Queries, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .selectFrom('queue')
    .select('message_id')
    .where('message_id', 'in', ids)
    .where('claimed_by', 'is not', null)
    .execute()
  return new Set(rows.map(row => row.message_id))
}

/** Due immediately, so a released claim is dropped at once (`dropWithdrawn`). */
async function markWithdrawn(db: Queries, ids: readonly string[], now: number): Promise<void> {
  if (ids.length === 0) return
  await db
    .updateTable('queue')
    .set({
      is_withdrawn: flag(true),
      is_held: flag(false),
      held_by_appliance: flag(false),
      next_attempt_at: now,
    })
    .where('message_id', 'in', ids)
    .execute()
}

function matches(
  e: ExpressionBuilder<Tables, 'queue'>,
  { messageIds, destinations, workspaceId, isHeld }: QueueSelection,
) {
  return e.and([
    ...(messageIds ? [e('queue.message_id', 'in', messageIds)] : []),
    ...(destinations ? [e('queue.destination', 'in', destinations)] : []),
    ...(workspaceId === undefined ? [] : [e('queue.workspace_id', '=', workspaceId)]),
    ...(isHeld === undefined ? [] : [e('queue.is_held', '=', flag(isHeld))]),
  ])
}
