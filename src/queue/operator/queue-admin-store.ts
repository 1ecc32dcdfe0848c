/**
 * SQL of the operator's queue commands: list, hold, release, retry, delete.
 *
 * Used by the command line, also beside a running server, which notices that another process has written. Deliveries in
 * progress are not interrupted.
 */
import { sql, type ExpressionBuilder } from 'kysely'
import type { Database, Queries, Tx } from '../../db/database.js'
import { flag, type Tables } from '../../db/tables.js'
import { recordTransitions } from '../../messages/message-history.js'
import { listHeldCampaigns } from '../claiming/campaign-hold-store.js'
import { laneFromKey } from '../lane.js'
import { entryFromRow, findEntries, removeEntries, type QueueEntry } from '../queue-store.js'
import { DELETED_BY_OPERATOR } from '../claiming/claim.js'

/** Selects one or several messages, one or several destinations, a workspace, or everything. */
export type QueueSelection =
  | { readonly messageId: string }
  | { readonly messageIds: readonly string[] }
  | { readonly destination: string }
  | { readonly destinations: readonly string[] }
  | { readonly workspaceId: string }
  | { readonly isAll: true }

/** Entries changed in one transaction; bounds how long a running server waits. */
export const CHANGE_BATCH = 250

export interface QueueListEntry extends QueueEntry {
  readonly lastSummary: string | null
  /** Held until its campaign is resumed, whether or not the row itself is held. */
  readonly isCampaignPaused: boolean
}

/** Oldest first. */
export async function listEntries(
  db: Queries,
  selection: QueueSelection,
  limit: number,
): Promise<QueueListEntry[]> {
  if ('destinations' in selection) return listOfDestinations(db, selection.destinations, limit)
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
    .where(e => matches(e, selection))
    .orderBy('queue.message_id')
    .limit(limit)
    .execute()
  const paused = await listHeldCampaigns(db)
  return rows.map(row => ({
    ...entryFromRow(row),
    lastSummary: row.last_summary,
    isCampaignPaused: paused.has(laneFromKey(row.lane).campaignId ?? ''),
  }))
}

/** One index walk per destination, which bounds the cost when a site has many. */
async function listOfDestinations(
  db: Queries,
  destinations: readonly string[],
  limit: number,
): Promise<QueueListEntry[]> {
  const found: QueueListEntry[] = []
  for (const destination of destinations) {
    found.push(...(await listEntries(db, { destination }, limit)))
    found.sort((a, b) => (a.messageId < b.messageId ? -1 : 1)).splice(limit)
  }
  return found
}

/**
 * Destinations with mail, held or not. A recursive walk along the index: it costs one step per destination, not per
 * message.
 */
export async function listDestinations(db: Queries): Promise<string[]> {
  const { rows } = await sql<{ destination: string }>`
    with recursive step(destination) as (
      select min(destination) from queue
      union all
      select (select min(destination) from queue where destination > step.destination)
      from step where step.destination is not null
    )
    select destination from step where destination is not null`.execute(db)
  return rows.map(row => row.destination)
}

/**
 * Ids of the selected entries, in batches of at most `CHANGE_BATCH`. Nothing is locked between batches; entries
 * enqueued meanwhile may be missing.
 */
export async function* selectedIds(db: Queries, selection: QueueSelection): AsyncGenerator<string[]> {
  if ('destinations' in selection) {
    yield* rebatch(selectDestinationIds(db, selection.destinations))
    return
  }
  for (let after = ''; ;) {
    const rows = await db
      .selectFrom('queue')
      .select('message_id')
      .where(e => matches(e, selection))
      .where('message_id', '>', after)
      .orderBy('message_id')
      .limit(CHANGE_BATCH)
      .execute()
    const ids = rows.map(row => row.message_id)
    if (ids.length > 0) yield ids
    if (ids.length < CHANGE_BATCH) return
    after = ids.at(-1) ?? after
  }
}

async function* selectDestinationIds(db: Queries, destinations: readonly string[]): AsyncGenerator<string[]> {
  for (const destination of destinations) yield* selectedIds(db, { destination })
}

/** Combines small batches: a site may have a thousand destinations with one message each. */
async function* rebatch(batches: AsyncIterable<string[]>): AsyncGenerator<string[]> {
  let gathered: string[] = []
  for await (const ids of batches) {
    gathered.push(...ids)
    if (gathered.length < CHANGE_BATCH) continue
    yield gathered.slice(0, CHANGE_BATCH)
    gathered = gathered.slice(CHANGE_BATCH)
  }
  if (gathered.length > 0) yield gathered
}

export interface SummaryRow {
  readonly destination: string
  /** Held by the operator or a paused campaign. */
  readonly held: number
  /** One count per age bound, and one for older messages. */
  readonly byAge: readonly number[]
  readonly total: number
}

/**
 * Destinations with most mail first. Reads every entry: run it in a separate process, never in the server.
 *
 * @param ageBoundsMs ascending
 * @param limit maximum number of destinations; undefined for all
 */
export async function summarize(
  db: Queries,
  now: number,
  ageBoundsMs: readonly number[],
  limit: number | undefined,
): Promise<SummaryRow[]> {
  const bounds = [...ageBoundsMs, Infinity]
  // Includes messages enqueued while this runs.
  const youngest = (index: number) => (index === 0 ? Number.MAX_SAFE_INTEGER : now - (bounds[index - 1] ?? 0))
  const hasPaused = (await listHeldCampaigns(db)).size > 0
  const rows = await db
    .selectFrom('queue')
    .select('destination')
    .select(e => [
      e.fn.countAll<number>().as('total'),
      (hasPaused
        ? sql<number>`sum(case when is_held = 1 or ${isOfPausedCampaign} then 1 else 0 end)`
        : e.fn.sum<number>('is_held')
      ).as('held'),
      ...bounds.map((bound, index) =>
        sql<number>`sum(case when enqueued_at > ${bound === Infinity ? 0 : now - bound} and enqueued_at <= ${youngest(index)} then 1 else 0 end)`.as(
          `age${index}`,
        ),
      ),
    ])
    .groupBy('destination')
    .orderBy('total', 'desc')
    .orderBy('destination')
    .$if(limit !== undefined, query => query.limit(limit ?? 0))
    .execute()
  return rows.map(row => ({
    destination: row.destination,
    held: row.held,
    total: row.total,
    byAge: bounds.map((_, index) => Number((row as unknown as Record<string, number>)[`age${index}`])),
  }))
}

const isOfPausedCampaign = sql`exists (
  select 1 from message_contents
  inner join campaign_holds on campaign_holds.campaign_id = message_contents.campaign_id
  where message_contents.id = queue.content_id and campaign_holds.held_at is not null)`

export async function setHeld(db: Queries, selection: QueueSelection, isHeld: boolean): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ is_held: flag(isHeld) })
    .where(e => matches(e, selection))
    .where('is_held', '=', flag(!isHeld))
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Holds all mail of a workspace, in batches between which other writes go on. @returns messages held */
export async function holdWorkspaceMail(database: Database, workspaceId: string): Promise<number> {
  let held = 0
  for await (const messageIds of selectedIds(database.reader, { workspaceId }))
    held += await database.write(tx => setHeld(tx.db, { messageIds }, true), { isLong: true })
  return held
}

/** Makes entries due now. Claimed entries are unaffected: their outcome sets the next attempt. */
export async function retryNow(db: Queries, selection: QueueSelection, now: number): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ next_attempt_at: now })
    .where(e => matches(e, selection))
    .where('next_attempt_at', '>', now)
    // Scheduled messages keep their time.
    .where(e =>
      e.not(
        e.exists(
          e
            .selectFrom('messages')
            .select('messages.id')
            .whereRef('messages.id', '=', 'queue.message_id')
            .where('messages.status', '=', 'scheduled'),
        ),
      ),
    )
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
    .set({ is_withdrawn: flag(true), is_held: flag(false), next_attempt_at: now })
    .where('message_id', 'in', ids)
    .execute()
}

function matches(e: ExpressionBuilder<Tables, 'queue'>, selection: QueueSelection) {
  if ('messageId' in selection) return e('queue.message_id', '=', selection.messageId)
  if ('messageIds' in selection) return e('queue.message_id', 'in', selection.messageIds)
  if ('destination' in selection) return e('queue.destination', '=', selection.destination)
  if ('destinations' in selection) return e('queue.destination', 'in', selection.destinations)
  if ('workspaceId' in selection) return e('queue.workspace_id', '=', selection.workspaceId)
  return e.lit(true)
}
