/**
 * SQL of what an operator does with the queue by hand: look, hold, release, retry, delete.
 *
 * Used by the command line, beside a running server as well: the rows are the truth, and the server notices that
 * another process has changed them. What is under way at that moment ends as it ends.
 */
import { sql, type ExpressionBuilder } from 'kysely'
import type { Queries, Tx } from '../../db/database.js'
import { flag, type Tables } from '../../db/tables.js'
import { recordTransitions } from '../../messages/message-history.js'
import { listHeldCampaigns } from '../claiming/campaign-hold-store.js'
import { laneFromKey } from '../lane.js'
import { entryFromRow, findEntries, removeEntries, type QueueEntry } from '../queue-store.js'
import { DELETED_BY_OPERATOR } from '../claiming/claim.js'

/** Which entries: one message or some, one destination or some, one workspace, or everything. */
export type QueueSelection =
  | { readonly messageId: string }
  /** At most `CHANGE_BATCH`. */
  | { readonly messageIds: readonly string[] }
  | { readonly destination: string }
  | { readonly destinations: readonly string[] }
  | { readonly workspaceId: string }
  | { readonly isAll: true }

/** Entries changed in one transaction, so that a running server waits a few ms for it. */
export const CHANGE_BATCH = 250

export interface QueueListEntry extends QueueEntry {
  /** What the last attempt met; null before the first. */
  readonly lastSummary: string | null
  /** Held until its campaign is resumed, whatever the operator does with the row. */
  readonly isCampaignPaused: boolean
}

/** Longest waiting first. */
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

/** One destination after another: each is a walk along the index, and a site may have any number of them. */
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
 * Destinations with mail, held or not, in steps from one index entry to the next destination: its cost is the number of
 * destinations, not of messages.
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
 * The ids of what is selected, in batches of at most `CHANGE_BATCH`, in steps of their own: nothing is locked between
 * them, and what is enqueued meanwhile may or may not be among them.
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

/** Puts small batches together: a site may have a thousand destinations with one message each. */
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

/** One line of the summary: how many messages of a destination have waited how long. */
export interface SummaryRow {
  readonly destination: string
  /** By the operator, or since their campaign is paused. */
  readonly held: number
  /** Counts by age, in the order of the bounds asked for, and one more for what is older than all of them. */
  readonly byAge: readonly number[]
  readonly total: number
}

/**
 * The destinations with most mail first. Reads every entry: for a process of its own, never for the server.
 *
 * @param ageBoundsMs ascending
 * @param limit destinations at most; undefined: all
 */
export async function summarize(
  db: Queries,
  now: number,
  ageBoundsMs: readonly number[],
  limit: number | undefined,
): Promise<SummaryRow[]> {
  const bounds = [...ageBoundsMs, Infinity]
  // What was enqueued while this was being asked is young as well.
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

/** @returns how many were changed */
export async function setHeld(db: Queries, selection: QueueSelection, isHeld: boolean): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ is_held: flag(isHeld) })
    .where(e => matches(e, selection))
    .where('is_held', '=', flag(!isHeld))
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

/** Makes them due now. What is under way is left alone: its next time is set by its outcome. */
export async function retryNow(db: Queries, selection: QueueSelection, now: number): Promise<number> {
  const result = await db
    .updateTable('queue')
    .set({ next_attempt_at: now })
    .where(e => matches(e, selection))
    .where('next_attempt_at', '>', now)
    // What somebody scheduled is not late: its time has not come.
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
 * Takes entries out of the queue; their messages read `failed`. Those that are being delivered at this moment end as that
 * delivery ends, and are not tried again.
 *
 * @param isServing whether a server may be delivering
 * @returns how many, at most a batch: ask until 0
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
 * The same for messages whose sender wants them back, for as many as one transaction should have.
 *
 * @param messageIds those that are not queued are passed over
 * @param reason why they failed, for the log
 * @returns those that will not be tried any more and read `failed`; what is being delivered is not among them
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
  // Whose message is over by other ways, as one that was opened before its delivery was confirmed.
  await removeEntries(tx.db, waiting)
  return new Set([...taken].map(({ messageId }) => messageId))
}

/** What a process has in hand; nobody's where no server runs. */
async function findClaimed(db: Queries, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .selectFrom('queue')
    .select('message_id')
    .where('message_id', 'in', ids)
    .where('claimed_by', 'is not', null)
    .execute()
  return new Set(rows.map(row => row.message_id))
}

/** Due at once, so that it is dropped where it was only about to be tried. */
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
