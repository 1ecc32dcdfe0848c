/**
 * SQL of feeds, their runs, and the items they remember.
 *
 * Everything a run changes is written in one transaction that first finds the feed's `turn` unchanged, so of two nodes, or a run and a
 * change at the same time, one gives way.
 */
import { sql, type Generated, type Selectable } from 'kysely'
import type { Queries } from '../db/database.js'
import { countRows, keysetPage, newestFirst } from '../db/listing.js'
import { deleteOldest } from '../db/retention.js'
import { inLists, inPieces } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { Listing, Page } from '../http/pagination.js'
import { mailingFromRow, mailingToRow, type MailingRow } from '../campaigns/model/campaign-store.js'
import type { FeedSchedule } from './feed-schedule.js'
import type { Feed, FeedFields, FeedItem, FeedRun, RunStatus } from './feed.js'

interface FeedRow extends MailingRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  is_sandbox: Flag
  url: string
  schedule: string
  timezone: string | null
  max_items: number
  is_enabled: Flag
  created_at: number
  updated_at: number
  turn: Generated<number>
  due_at: number | null
  next_at: number | null
  failures: Generated<number>
  last_error: string | null
  etag: string | null
  last_modified: string | null
  newest_sent_at: number | null
  ids_only_until: number | null
}

interface FeedRunRow {
  seq: Generated<number>
  id: string
  feed: number
  due_at: number
  is_manual: Flag
  status: RunStatus
  reason: string | null
  attempts: number
  new_items: number
  sent_items: number
  campaign_id: string | null
  started_at: number
  ended_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    feeds: FeedRow
    feed_runs: FeedRunRow
    feed_items: { feed: number; item: string; seen_at: number }
  }
}

export type NewFeed = FeedFields &
  Pick<Feed, 'id' | 'workspaceId' | 'isSandbox' | 'createdAt' | 'updatedAt' | 'dueAt' | 'nextAt'>

/** @returns its `seq` */
export async function insertFeed(db: Queries, feed: NewFeed): Promise<number> {
  const { seq } = await db
    .insertInto('feeds')
    .values({
      id: feed.id,
      workspace_id: feed.workspaceId,
      is_sandbox: flag(feed.isSandbox),
      created_at: feed.createdAt,
      updated_at: feed.updatedAt,
      due_at: feed.dueAt,
      next_at: feed.nextAt,
      ...fieldsToRow(feed),
    })
    .returning('seq')
    .executeTakeFirstOrThrow()
  return seq
}

function fieldsToRow(fields: FeedFields) {
  return {
    ...mailingToRow(fields),
    url: fields.url,
    schedule: JSON.stringify(fields.schedule),
    timezone: fields.timezone,
    max_items: fields.maxItems,
    is_enabled: flag(fields.isEnabled),
  }
}

/** Settings and times, after a change by a user. */
export async function updateFeed(db: Queries, feed: Feed): Promise<void> {
  await db
    .updateTable('feeds')
    .set({
      ...fieldsToRow(feed),
      updated_at: feed.updatedAt,
      turn: sql<number>`turn + 1`,
      due_at: feed.dueAt,
      next_at: feed.nextAt,
      failures: feed.failures,
      last_error: feed.lastError,
      etag: feed.etag,
      last_modified: feed.lastModified,
      newest_sent_at: feed.newestSentAt,
      ids_only_until: feed.idsOnlyUntil,
    })
    .where('seq', '=', feed.seq)
    .execute()
}

export type RunOutcome = Pick<
  Feed,
  'dueAt' | 'nextAt' | 'failures' | 'lastError' | 'etag' | 'lastModified' | 'newestSentAt' | 'idsOnlyUntil'
>

/** @returns false if somebody ran or changed the feed since it was read */
export async function finishRun(db: Queries, { seq, turn }: Feed, outcome: RunOutcome): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('feeds')
    .set({
      turn: turn + 1,
      due_at: outcome.dueAt,
      next_at: outcome.nextAt,
      failures: outcome.failures,
      last_error: outcome.lastError,
      etag: outcome.etag,
      last_modified: outcome.lastModified,
      newest_sent_at: outcome.newestSentAt,
      ids_only_until: outcome.idsOnlyUntil,
    })
    .where('seq', '=', seq)
    .where('turn', '=', turn)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** With its runs and remembered items, of which there are a few thousand. */
export async function deleteFeed(db: Queries, seq: number): Promise<void> {
  await db.deleteFrom('feed_items').where('feed', '=', seq).execute()
  await db.deleteFrom('feed_runs').where('feed', '=', seq).execute()
  await db.deleteFrom('feeds').where('seq', '=', seq).execute()
}

export async function findFeed(db: Queries, workspaceId: string, id: string): Promise<Feed | undefined> {
  const row = await db
    .selectFrom('feeds')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row && feedFromRow(row)
}

/** Newest first. */
export function listFeeds(db: Queries, workspaceId: string, page: Page): Promise<Listing<Feed>> {
  return newestFirst(ofWorkspace(db, workspaceId), page, feedFromRow)
}

export function countFeeds(db: Queries, workspaceId: string): Promise<number> {
  return countRows(ofWorkspace(db, workspaceId))
}

function ofWorkspace(db: Queries, workspaceId: string) {
  return db.selectFrom('feeds').where('workspace_id', '=', workspaceId)
}

/** Longest waiting first. */
export async function listDueFeeds(db: Queries, now: number, limit: number): Promise<Feed[]> {
  const rows = await db
    .selectFrom('feeds')
    .selectAll()
    .where('next_at', '<=', now)
    .orderBy('next_at')
    .orderBy('seq')
    .limit(limit)
    .execute()
  return rows.map(feedFromRow)
}

/** Enabled feeds that use this list, segment or template. */
export async function findFeedsUsing(
  db: Queries,
  workspaceId: string,
  column: 'list_id' | 'segment_id' | 'template_id',
  id: string,
): Promise<{ readonly id: string; readonly name: string }[]> {
  return db
    .selectFrom('feeds')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .where('is_enabled', '=', 1)
    .where(column, '=', id)
    .orderBy('seq')
    .execute()
}

/** Enabled feeds with at least so many failed attempts in a row, of all workspaces. */
export function countFailingFeeds(db: Queries, failures: number): Promise<number> {
  return countRows(db.selectFrom('feeds').where('next_at', 'is not', null).where('failures', '>=', failures))
}

/** Of these keys of items, those that the feed does not remember. */
export async function findUnseen(db: Queries, feed: number, keys: readonly string[]): Promise<Set<string>> {
  const unseen = new Set(keys)
  for (const list of inLists(keys)) {
    const rows = await db
      .selectFrom('feed_items')
      .select('item')
      .where('feed', '=', feed)
      .where('item', 'in', list)
      .execute()
    for (const { item } of rows) unseen.delete(item)
  }
  return unseen
}

/** Keys remembered of one feed: several times as many as the items that are read of it have. */
const MAX_REMEMBERED = 20_000

/** Remembers all items that the feed has now, under each of their keys, and forgets those it had longest ago. */
export async function rememberItems(
  db: Queries,
  feed: number,
  items: readonly FeedItem[],
  now: number,
): Promise<void> {
  // An item is a row for each of its keys. No key twice: one statement cannot change a row twice.
  const keys = new Set(items.flatMap(item => item.keys))
  for (const piece of inPieces([...keys].map(item => ({ feed, item, seen_at: now }))))
    await db
      .insertInto('feed_items')
      .values(piece)
      .onConflict(one => one.columns(['feed', 'item']).doUpdateSet({ seen_at: now }))
      .execute()
  const oldest = await db
    .selectFrom('feed_items')
    .select('seen_at')
    .where('feed', '=', feed)
    .orderBy('seen_at', 'desc')
    .offset(MAX_REMEMBERED)
    .limit(1)
    .executeTakeFirst()
  if (oldest && oldest.seen_at < now)
    await db
      .deleteFrom('feed_items')
      .where('feed', '=', feed)
      .where('seen_at', '<=', oldest.seen_at)
      .execute()
}

export async function forgetItems(db: Queries, feed: number): Promise<void> {
  await db.deleteFrom('feed_items').where('feed', '=', feed).execute()
}

export async function findRun(db: Queries, feed: number, dueAt: number): Promise<FeedRun | undefined> {
  const row = await db
    .selectFrom('feed_runs')
    .selectAll()
    .where('feed', '=', feed)
    .where('due_at', '=', dueAt)
    .executeTakeFirst()
  return row && runFromRow(row)
}

/** A run that is retried keeps its row. */
export async function saveRun(db: Queries, feed: number, run: FeedRun): Promise<void> {
  const result = {
    status: run.status,
    reason: run.reason,
    attempts: run.attempts,
    new_items: run.newItems,
    sent_items: run.sentItems,
    campaign_id: run.campaignId,
    ended_at: run.endedAt,
  }
  await db
    .insertInto('feed_runs')
    .values({
      id: run.id,
      feed,
      due_at: run.dueAt,
      is_manual: flag(run.isManual),
      started_at: run.startedAt,
      ...result,
    })
    .onConflict(one => one.columns(['feed', 'due_at']).doUpdateSet(result))
    .execute()
}

/** Newest first. */
export function listRuns(db: Queries, feed: number, page: Page): Promise<Listing<FeedRun>> {
  const order = { columns: ['seq'], kinds: ['number'], direction: 'desc' } as const
  return keysetPage(db.selectFrom('feed_runs').where('feed', '=', feed), order, page, runFromRow)
}

/** @returns rows deleted */
export function deleteRunsBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'feed_runs', key: 'seq', time: 'ended_at' }, before, limit)
}

function feedFromRow(row: Selectable<FeedRow>): Feed {
  return {
    seq: row.seq,
    id: row.id,
    workspaceId: row.workspace_id,
    isSandbox: row.is_sandbox === 1,
    ...mailingFromRow(row),
    url: row.url,
    schedule: JSON.parse(row.schedule) as FeedSchedule,
    timezone: row.timezone,
    maxItems: row.max_items,
    isEnabled: row.is_enabled === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    turn: row.turn,
    dueAt: row.due_at,
    nextAt: row.next_at,
    failures: row.failures,
    lastError: row.last_error,
    etag: row.etag,
    lastModified: row.last_modified,
    newestSentAt: row.newest_sent_at,
    idsOnlyUntil: row.ids_only_until,
  }
}

function runFromRow(row: Selectable<FeedRunRow>): FeedRun {
  return {
    id: row.id,
    dueAt: row.due_at,
    isManual: row.is_manual === 1,
    status: row.status,
    reason: row.reason,
    attempts: row.attempts,
    newItems: row.new_items,
    sentItems: row.sent_items,
    campaignId: row.campaign_id,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  }
}
