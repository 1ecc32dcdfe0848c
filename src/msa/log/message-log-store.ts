/**
 * SQL of the message log: a workspace's messages, newest first.
 *
 * Every query is bounded, however many messages there are, except by recipient, which scans a 256th of them in an index.
 * Ids are UUIDv7, so `(workspace_id, id)` is also the order in time. Recipients, campaigns and rare states have indexes; the two
 * most common states (sent, delivered) have none, since every message would pay for it. One index finds the candidates, and the
 * other filters apply to the newest of them.
 */
import { sql, type SelectQueryBuilder } from 'kysely'
import { given } from '../../core/given.js'
import { firstIdAt } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import { flag, type Tables } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { MessageStatus } from '../../messages/message-status.js'
import {
  isSpelled,
  messageFromRow,
  recipientBucket,
  recipientSpellings,
  type Message,
  type Spellings,
} from '../../messages/message-store.js'
import {
  deliveryState,
  isWaitingState,
  listWaiting,
  type DeliveryState,
  type WaitingState,
} from '../../queue/delivery-state-store.js'
import { nextTurn } from '../../world/time/clock.js'

export interface MessageFilter {
  readonly to?: string
  /** `queued` and `deferred` are delivery states of `sent` messages. */
  readonly status?: MessageStatus | WaitingState
  /** Ms since epoch UTC; `since` inclusive, `until` exclusive. */
  readonly since?: number
  readonly until?: number
  readonly campaignId?: string
  readonly isSandbox?: boolean
  /** One of the tags the mail was sent with. */
  readonly tag?: string
}

/** Limit to which messages beyond the page are counted. */
export const MAX_COUNTED = 10_000
/** Limit of candidates filtered by conditions their index does not cover. */
export const MAX_LOOKED_AT = 20_000
/** Rows skipped before yielding to the event loop: a few milliseconds at most. */
const SKIPPED_AT_ONCE = 20_000

export interface LoggedMessage extends Message {
  readonly subject: string
  /** Of a `sent` message still in the queue. */
  readonly deliveryState: DeliveryState | null
}

/** `total` is exact up to `MAX_COUNTED` rows beyond the page, and a lower bound above that. */
export async function listMessages(
  db: Queries,
  workspaceId: string,
  filter: MessageFilter,
  page: Page,
): Promise<Listing<LoggedMessage>> {
  const to =
    filter.to === undefined
      ? undefined
      : { address: filter.to, spellings: await recipientSpellings(db, workspaceId, filter.to) }
  const { status, ...others } = filter
  const { after, limit } = page
  const behind = after && String(after.position('text')[0])
  if (status !== undefined && isWaitingState(status))
    return listWaitingMessages(db, workspaceId, status, { ...others, to, behind }, page)
  const found = matching(db, workspaceId, { ...others, ...given({ status }), to, behind })
  if (filter.tag !== undefined) return listTagged(db, found, filter.tag, page)
  if (after) {
    const items = await withSubjects(db, found, limit + 1)
    const shown = items.slice(0, limit)
    return { items: shown, total: after.total, end: endOf(shown), hasMore: items.length > limit }
  }
  const start = await skip(db, found, page.offset)
  if (start.isPastEnd) return { items: [], total: start.skipped, end: undefined }
  const items = await withSubjects(db, olderThan(found, start.after), page.limit)
  const last = items.length < page.limit ? undefined : items.at(-1)
  const beyond = last ? await count(db, olderThan(found, last.id), MAX_COUNTED) : 0
  return { items, total: page.offset + items.length + beyond, end: endOf(items) }
}

function endOf(items: readonly LoggedMessage[]): readonly string[] {
  return items.slice(-1).map(({ id }) => id)
}

type Found = SelectQueryBuilder<Tables, 'messages', object>

/** Returns the newest `limit` rows. */
async function withSubjects(db: Queries, found: Found, limit: number): Promise<LoggedMessage[]> {
  const rows = await db
    .selectFrom(found.selectAll().orderBy('id', 'desc').limit(limit).as('messages'))
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .leftJoin('queue', join =>
      join.onRef('queue.message_id', '=', 'messages.id').on('messages.status', '=', 'sent'),
    )
    .selectAll('messages')
    .select(['message_contents.subject', deliveryState.as('delivery_state')])
    .orderBy('messages.id', 'desc')
    .execute()
  return rows.map(row => ({
    ...messageFromRow(row),
    subject: row.subject,
    deliveryState: row.delivery_state,
  }))
}

/** Queue rows filtered before yielding. */
const WAITING_AT_ONCE = 1_000

/** Takes candidates from the queue, newest first, in steps, and applies the other filters to them. */
async function listWaitingMessages(
  db: Queries,
  workspaceId: string,
  state: WaitingState,
  { tag, ...filter }: Wanted,
  page: Page,
): Promise<Listing<LoggedMessage>> {
  const found: string[] = []
  const enough = page.offset + page.limit + MAX_COUNTED
  let beforeId =
    filter.behind ?? (filter.until === undefined ? undefined : firstIdAt(filter.until + ID_LAG_MS))
  for (let looked = 0; looked < MAX_LOOKED_AT && found.length < enough; looked += WAITING_AT_ONCE) {
    if (looked > 0) await nextTurn()
    const search = { state, workspaceId, since: filter.since, beforeId }
    const ids = await listWaiting(db, search, WAITING_AT_ONCE)
    for (const list of inLists(ids)) found.push(...(await unsettledAmong(db, workspaceId, list, filter, tag)))
    if (ids.length < WAITING_AT_ONCE) break
    beforeId = ids.at(-1)
  }
  return pageOfIds(db, found, page)
}

/** @returns newest first */
async function unsettledAmong(
  db: Queries,
  workspaceId: string,
  ids: readonly string[],
  { to, campaignId, isSandbox, ...range }: Wanted,
  tag: string | undefined,
): Promise<string[]> {
  let query = within(db, workspaceId, { ...range, to })
    .where('id', 'in', ids)
    .where('status', '=', 'sent')
  if (to !== undefined) query = query.where(isSpelled(to.spellings))
  if (campaignId !== undefined) query = query.where('campaign_id', '=', campaignId)
  if (isSandbox !== undefined) query = query.where('is_sandbox', '=', flag(isSandbox))
  const rows = await query.select(['id', 'content_id']).orderBy('id', 'desc').execute()
  if (tag === undefined) return rows.map(({ id }) => id)
  const contents = await db
    .selectFrom('message_contents')
    .select(['id', 'tags'])
    .where('id', 'in', [...new Set(rows.map(row => row.content_id))])
    .execute()
  const tagged = new Set(contents.filter(({ tags }) => hasTag(tags, tag)).map(({ id }) => id))
  return rows.filter(row => tagged.has(row.content_id)).map(({ id }) => id)
}

async function pageOfIds(db: Queries, ids: readonly string[], page: Page): Promise<Listing<LoggedMessage>> {
  const shown = ids.slice(page.offset, page.offset + page.limit)
  const total = page.after?.total ?? ids.length
  if (shown.length === 0) return { items: [], total, end: undefined, hasMore: false }
  const items = await withSubjects(db, db.selectFrom('messages').where('id', 'in', shown), page.limit)
  return { items, total, end: endOf(items), hasMore: ids.length > page.offset + shown.length }
}

/** Contents checked for a tag before yielding. */
const CONTENTS_AT_ONCE = 500

/**
 * Tags have no index, since every tagged mail would pay for it; the contents of the newest candidates are checked in steps. `total`
 * counts matches among the checked ones.
 */
async function listTagged(
  db: Queries,
  found: Found,
  tag: string,
  page: Page,
): Promise<Listing<LoggedMessage>> {
  const tagged: string[] = []
  let after: string | undefined
  for (let looked = 0; looked < MAX_LOOKED_AT; looked += CONTENTS_AT_ONCE) {
    if (looked > 0) await nextTurn()
    const candidates = olderThan(found, after).select(['id', 'content_id']).orderBy('id', 'desc')
    const rows = await db
      .selectFrom(candidates.limit(CONTENTS_AT_ONCE).as('messages'))
      .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
      .select(['messages.id', 'message_contents.tags'])
      .orderBy('messages.id', 'desc')
      .execute()
    tagged.push(...rows.filter(({ tags }) => hasTag(tags, tag)).map(({ id }) => id))
    if (rows.length < CONTENTS_AT_ONCE) break
    after = rows.at(-1)?.id
  }
  return pageOfIds(db, tagged, page)
}

function hasTag(json: string | null, tag: string): boolean {
  // Parses only what contains the tag's text.
  return json !== null && json.includes(JSON.stringify(tag)) && (JSON.parse(json) as string[]).includes(tag)
}

/** Skips in steps, so that a deep page does not block other requests. */
async function skip(
  db: Queries,
  found: Found,
  offset: number,
): Promise<{ isPastEnd: boolean; skipped: number; after?: string }> {
  const start: { skipped: number; after?: string } = { skipped: 0 }
  while (start.skipped < offset) {
    if (start.skipped > 0) await nextTurn()
    const step = Math.min(offset - start.skipped, SKIPPED_AT_ONCE)
    const rest = olderThan(found, start.after)
    const last = await rest
      .select('id')
      .orderBy('id', 'desc')
      .limit(1)
      .offset(step - 1)
      .executeTakeFirst()
    if (!last) return { isPastEnd: true, skipped: start.skipped + (await count(db, rest, step)) }
    start.after = last.id
    start.skipped += step
  }
  return { ...start, isPastEnd: false }
}

function olderThan(found: Found, id: string | undefined): Found {
  return id === undefined ? found : found.where('id', '<', id)
}

async function count(db: Queries, found: Found, most: number): Promise<number> {
  const { total } = await db
    .selectFrom(found.select('id').limit(most).as('counted'))
    .select(e => e.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

interface Wanted extends Omit<MessageFilter, 'to' | 'status'> {
  readonly status?: MessageStatus
  readonly to: { readonly address: string; readonly spellings: Spellings } | undefined
  /** Only messages before this id. */
  readonly behind: string | undefined
}

/** Uses the index that leaves the fewest candidates: recipient, rare state, campaign, or the workspace's own. */
function matching(db: Queries, workspaceId: string, filter: Wanted): Found {
  const { to, status, campaignId, isSandbox } = filter
  const candidates = within(db, workspaceId, filter)
  if (to !== undefined) {
    // Scans a 256th of the workspace's messages in the index, newest first.
    const inBucket = candidates.where('recipient_bucket', '=', recipientBucket(to.address))
    return among(db, inBucket.where(isSpelled(to.spellings)), { status, campaignId, isSandbox })
  }
  if (status !== undefined && status !== 'sent' && status !== 'delivered') {
    const inState = candidates
      .where('status', '=', status)
      // A partial index is used only if the query repeats its condition verbatim.
      .where(sql<boolean>`status not in ('sent', 'delivered')`)
    return campaignId === undefined
      ? among(db, inState, { isSandbox })
      : among(db, inState.where(duringCampaign(campaignId)), { campaignId, isSandbox })
  }
  if (campaignId !== undefined)
    return among(db, ofCampaign(db, workspaceId, campaignId, filter), { status, isSandbox })
  return among(db, candidates, { status, isSandbox })
}

interface Rest {
  readonly status?: MessageStatus | undefined
  readonly campaignId?: string | undefined
  readonly isSandbox?: boolean | undefined
}

/** Applies the remaining filters to the newest candidates; without any, returns all candidates. */
function among(db: Queries, candidates: Found, { status, campaignId, isSandbox }: Rest): Found {
  if (status === undefined && campaignId === undefined && isSandbox === undefined) return candidates
  const newest = candidates.selectAll().orderBy('id', 'desc').limit(MAX_LOOKED_AT).as('messages')
  let query = db.selectFrom(newest) as unknown as Found
  if (status !== undefined) query = query.where('status', '=', status)
  if (campaignId !== undefined) query = query.where('campaign_id', '=', campaignId)
  if (isSandbox !== undefined) query = query.where('is_sandbox', '=', flag(isSandbox))
  return query
}

/** Narrows the ids to the campaign's first and last message, which its index finds at once. */
function duringCampaign(id: string) {
  const ofCampaign = sql`from messages as sent where sent.campaign_id = ${id}`
  return sql<boolean>`id between (select min(sent.id) ${ofCampaign}) and (select max(sent.id) ${ofCampaign})`
}

/**
 * All messages of a campaign belong to its workspace, so one of them is asked for it: a condition on each row would have each row read, while
 * the index of campaigns alone holds all that counting needs.
 */
function ofCampaign(db: Queries, workspaceId: string, campaignId: string, range: Wanted): Found {
  const sampled = db.selectFrom('messages as sample').select('sample.workspace_id')
  const query = db
    .selectFrom('messages')
    .where('campaign_id', '=', campaignId)
    .where(sampled.where('sample.campaign_id', '=', campaignId).limit(1), '=', workspaceId)
  return inRange(query, range)
}

/** An id is generated shortly after the message's own time was read. */
const ID_LAG_MS = 1_000

function within(db: Queries, workspaceId: string, range: Wanted): Found {
  return inRange(db.selectFrom('messages').where('workspace_id', '=', workspaceId), range)
}

function inRange(found: Found, { since, until, behind }: Wanted): Found {
  let query = olderThan(found, behind)
  if (since !== undefined) query = query.where('id', '>=', firstIdAt(since)).where('created_at', '>=', since)
  if (until !== undefined)
    query = query.where('id', '<', firstIdAt(until + ID_LAG_MS)).where('created_at', '<', until)
  return query
}
