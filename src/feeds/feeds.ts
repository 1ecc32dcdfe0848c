/**
 * Creates, changes, deletes and previews feeds, each change recorded in the activity log.
 *
 * A feed is read when it is created or gets another URL: what it contains then is old, so that the first run sends only what appears
 * later, whatever dates the items have.
 * Fails: AppError not_found, template_not_found, limit_reached, conflict; validation_error with the path `url` if it cannot be read.
 */
import type { ActingWorkspace } from '../accounts/workspace-store.js'
import { refuseMoreThan } from '../audience/checks.js'
import { renderKey } from '../content/rendering/render-queue.js'
import type { MailRequest } from '../content/rendering/render-request.js'
import { brandOf } from '../content/rendering/merging.js'
import type { Actor } from '../core/actor.js'
import { AppError } from '../core/errors.js'
import { isUuid } from '../core/ids.js'
import type { Queries, Tx } from '../db/database.js'
import { recordActivity, type Changes } from '../events/activity-store.js'
import { settingsChanges } from '../events/settings-changes.js'
import { etagOf, Tagged, type Precondition } from '../http/preconditions.js'
import type { Principal } from '../http/principal.js'
import type { ReferenceHolder } from '../resource/references.js'
import { NOTHING_SAID, requireNamed } from '../campaigns/model/campaigns.js'
import { makeLetter } from '../campaigns/model/letter.js'
import { fetchFeed } from './fetch-feed.js'
import { FeedError, type Feed, type FeedParts, type ReadFeed } from './feed.js'
import { nextTime } from './feed-schedule.js'
import {
  FEED_DEFAULTS,
  feedToApi,
  itemToApi,
  MAX_FEEDS,
  readFeedFields,
  type FeedChangesBody,
  type NewFeedBody,
  type ShownFeed,
} from './feed-schema.js'
import {
  countFeeds,
  deleteFeed,
  findFeed,
  findFeedsUsing,
  forgetItems,
  insertFeed,
  rememberItems,
  updateFeed,
} from './feed-store.js'
import { findNewItems } from './new-items.js'
import { mergeDataOf } from './run-feed.js'

/** @throws AppError not_found */
export async function requireFeed(db: Queries, workspaceId: string, id: string): Promise<Feed> {
  const feed = isUuid(id) ? await findFeed(db, workspaceId, id.toLowerCase()) : undefined
  if (!feed) throw new AppError('not_found', 'no such feed')
  return feed
}

const NOT_SETTINGS = ['next_run_at', 'failures', 'last_error', 'updated_at'] as const

/** Of the settings: a run does not change it. */
export function feedEtag(feed: Feed): string {
  const { next_run_at: _next, failures: _failures, last_error: _error, ...settings } = feedToApi(feed)
  return etagOf(settings)
}

export function tagged(feed: Feed): Tagged<ShownFeed> {
  return new Tagged(feedToApi(feed), feedEtag(feed))
}

export async function createFeed(parts: FeedParts, principal: Principal, body: NewFeedBody): Promise<Feed> {
  const { database, clock, newId, senders } = parts.send
  const { workspaceId, isSandbox, actor } = principal
  const { subject, template_id: templateId, name, url, schedule, initial_items: initial = 0 } = body
  const fields = {
    subject,
    templateId,
    name,
    url,
    schedule,
    ...withoutResend(NOTHING_SAID),
    ...FEED_DEFAULTS,
    ...readFeedFields(body),
  }
  const workspace = await senders.workspace(workspaceId)
  await requireNamed(database.reader, workspace, { ...fields, resendOf: null })
  refuseMoreThan(MAX_FEEDS, await countFeeds(database.reader, workspaceId), 'feeds')
  const { items } = await readNow(parts, workspace, fields.url)
  const now = clock.now()
  const dueAt = fields.isEnabled
    ? nextTime(fields.schedule, now, fields.timezone ?? workspace.timezone)
    : null
  const made = {
    ...fields,
    id: newId(),
    workspaceId,
    isSandbox,
    dueAt,
    nextAt: dueAt,
    createdAt: now,
    updatedAt: now,
  }
  return database.write(async tx => {
    await requireNamed(tx.db, workspace, { ...fields, resendOf: null })
    refuseMoreThan(MAX_FEEDS, await countFeeds(tx.db, workspaceId), 'feeds')
    const seq = await insertFeed(tx.db, made)
    await rememberItems(tx.db, seq, items.slice(initial), now)
    const feed = await requireFeed(tx.db, workspaceId, made.id)
    await record(tx, actor, now, feed, 'feed.created')
    return feed
  })
}

function withoutResend({
  resendOf: _of,
  resendTo: _to,
  isArchived: _archived,
  isIndexed: _indexed,
  ...rest
}: typeof NOTHING_SAID) {
  return rest
}

function record(
  tx: Tx,
  actor: Actor,
  now: number,
  { id, workspaceId, name }: Feed,
  action: `feed.${string}`,
  changes: Changes = {},
): Promise<void> {
  return recordActivity(tx, { workspaceId, actor }, now, { action, subject: name, details: { id }, changes })
}

/** @throws AppError validation_error, saying what is wrong with it */
async function readNow(
  { send: { clock }, outgoingCalls }: FeedParts,
  { allowPrivateWebhooks }: ActingWorkspace,
  url: string,
): Promise<ReadFeed> {
  try {
    const fetched = await fetchFeed({ ...outgoingCalls(allowPrivateWebhooks), clock }, { url })
    return fetched?.feed ?? { title: '', description: '', link: '', items: [] }
  } catch (error) {
    if (error instanceof FeedError)
      throw new AppError('validation_error', `url: the feed cannot be read: ${error.message}`, {
        path: 'url',
      })
    throw error
  }
}

export async function changeFeed(
  parts: FeedParts,
  { workspaceId, actor }: Principal,
  id: string,
  body: FeedChangesBody,
  precondition: Precondition | undefined,
): Promise<Feed> {
  const { database, clock, senders } = parts.send
  const seen = await requireFeed(database.reader, workspaceId, id)
  const changes = readFeedFields(body)
  const workspace = await senders.workspace(workspaceId)
  const isMoved = changes.url !== undefined && changes.url !== seen.url
  const moved = isMoved ? await readNow(parts, workspace, changes.url) : undefined
  return database.write(async tx => {
    const before = await requireFeed(tx.db, workspaceId, id)
    precondition?.check(feedEtag(before))
    if (moved && before.turn !== seen.turn)
      throw new AppError('conflict', 'the feed was run or changed meanwhile; try again')
    const now = clock.now()
    const after: Feed = { ...before, ...changes }
    await requireNamed(tx.db, workspace, { ...after, audience: null, resendOf: null, abTest: null })
    const settings = settingsChanges(feedToApi(before), feedToApi(after), NOT_SETTINGS)
    if (Object.keys(settings).length === 0) return before
    const changed: Feed = { ...after, ...timesOf(before, after, now, workspace.timezone), updatedAt: now }
    await updateFeed(tx.db, moved ? { ...changed, ...NOT_READ } : changed)
    if (moved) {
      await forgetItems(tx.db, before.seq)
      await rememberItems(tx.db, before.seq, moved.items, now)
    }
    await record(tx, actor, now, changed, 'feed.changed', settings)
    return requireFeed(tx.db, workspaceId, id)
  })
}

const NOT_READ = {
  etag: null,
  lastModified: null,
  newestSentAt: null,
  idsOnlyUntil: null,
  failures: 0,
  lastError: null,
}

/** The next run follows from the schedule again if that was changed, or the feed was enabled. */
function timesOf(before: Feed, after: Feed, now: number, timezone: string): Pick<Feed, 'dueAt' | 'nextAt'> {
  if (!after.isEnabled) return { dueAt: null, nextAt: null }
  const isSame =
    before.isEnabled &&
    before.timezone === after.timezone &&
    JSON.stringify(before.schedule) === JSON.stringify(after.schedule)
  if (isSame) return { dueAt: before.dueAt, nextAt: before.nextAt }
  const next = nextTime(after.schedule, now, after.timezone ?? timezone)
  return { dueAt: next, nextAt: next }
}

export async function removeFeed(
  { send: { database, clock } }: FeedParts,
  { workspaceId, actor }: Principal,
  id: string,
  precondition: Precondition | undefined,
): Promise<void> {
  await database.write(async tx => {
    const feed = await requireFeed(tx.db, workspaceId, id)
    precondition?.check(feedEtag(feed))
    await deleteFeed(tx.db, feed.seq)
    await record(tx, actor, clock.now(), feed, 'feed.deleted')
  })
}

/** Dead links, since a preview belongs to no recipient. */
const NO_LINKS = { unsubscribeUrl: '#', preferencesUrl: '#', viewUrl: '#' }

export async function previewFeed(parts: FeedParts, workspaceId: string, id: string) {
  const { database, clock, senders } = parts.send
  const feed = await requireFeed(database.reader, workspaceId, id)
  const workspace = await senders.workspace(workspaceId)
  const read = await readNow(parts, workspace, feed.url)
  const { items: unseen } = await findNewItems(database.reader, feed, read.items)
  const items = (unseen.length > 0 ? unseen : read.items).slice(0, feed.maxItems)
  if (items.length === 0)
    throw new AppError('validation_error', 'the feed contains no items to preview', { path: 'url' })
  const data = mergeDataOf(read, items, feed.timezone ?? workspace.timezone)
  const letter = await makeLetter(database.reader, workspace, feed, data)
  const request: MailRequest = {
    kind: 'mail',
    source: { subject: letter.subject, html: letter.html },
    merging: { brand: brandOf(workspace), hasFooter: true, data },
    own: {},
    recipient: '',
    date: clock.now(),
    links: NO_LINKS,
    isHtmlEnough: false,
  }
  const result = await parts.renderQueue.render({
    key: renderKey('feed', request),
    workspaceId,
    load: () => Promise.resolve(request),
  })
  if (result.kind !== 'mail')
    throw new AppError('validation_error', result.kind === 'refused' ? result.message : 'not rendered', {
      path: 'template_id',
    })
  const { subject, html = '', text = '' } = result
  return { new_items: unseen.length, items: items.map(itemToApi), subject, html, text }
}

const COLUMNS = { list: 'list_id', segment: 'segment_id', template: 'template_id' } as const

export const feedReferences: ReferenceHolder = {
  async findUses(db, { kind, workspaceId, id }) {
    if (kind !== 'list' && kind !== 'segment' && kind !== 'template') return []
    const feeds = await findFeedsUsing(db, workspaceId, COLUMNS[kind], id)
    return feeds.map(feed => ({ what: 'feed', id: feed.id, name: feed.name }))
  },
}
