/**
 * One run of a feed: reads it and, if it has items not sent before, sends them as a campaign.
 *
 *   result                              run            next
 *   unchanged, or nothing new           nothing_new    next scheduled time
 *   new items                           sent           next scheduled time
 *   failed, attempts are left           retrying       after a pause
 *   failed, none left                   failed         next scheduled time
 *
 * The campaign, the memory of its items, the history and the next time are one transaction, which a run of the same feed meanwhile
 * makes fail: a time is run once, whatever is killed when, and whichever node runs it. The campaign runner then mails each person once.
 * Fails: AppError conflict if the feed was run or changed meanwhile, workspace_not_found, unavailable. Faults of the feed and its
 * settings are results.
 */
import { keepAnswer } from '../accounts/idempotency-store.js'
import type { ActingWorkspace } from '../accounts/workspace-store.js'
import { dateTags } from '../content/merge/merge-values.js'
import type { MergeData } from '../content/rendering/merging.js'
import { SYSTEM, type Actor } from '../core/actor.js'
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import type { Tx } from '../db/database.js'
import { recordActivity } from '../events/activity-store.js'
import type { IdempotencyClaim } from '../http/idempotency.js'
import { zoneTime } from '../world/time/zone-time.js'
import { changeCampaign, insertCampaign } from '../campaigns/model/campaign-store.js'
import { insertCampaignData, insertLetter } from '../campaigns/model/letter-store.js'
import { logAct, NOTHING_SAID, requireAct, requireCampaign } from '../campaigns/model/campaigns.js'
import { findCampaignAudience } from '../campaigns/model/campaign-audience.js'
import { contentOf, makeLetter, type Letter } from '../campaigns/model/letter.js'
import { fetchFeed, type FetchedFeed } from './fetch-feed.js'
import { FeedError, type Feed, type FeedItem, type FeedParts, type FeedRun, type ReadFeed } from './feed.js'
import { nextTime } from './feed-schedule.js'
import { runToApi } from './feed-schema.js'
import { findRun, finishRun, rememberItems, saveRun, type RunOutcome } from './feed-store.js'
import { findNewItems, newestDate, type NewItems } from './new-items.js'

const MINUTE_MS = 60_000
/** Pauses before a failed run is tried again. */
const RETRIES_MS = [5 * MINUTE_MS, 30 * MINUTE_MS, 120 * MINUTE_MS]
/** Failed attempts in a row after which it is reported (activity log, health): those of one run. */
export const REPORTED_FAILURES = RETRIES_MS.length + 1

export interface RunRequest {
  readonly actor: Actor
  /** Of the request, which keeps its answer. */
  readonly claim: IdempotencyClaim | undefined
}

/** @param request undefined: the run that is due */
export async function runFeed(parts: FeedParts, feed: Feed, request?: RunRequest): Promise<FeedRun> {
  const startedAt = parts.send.clock.now()
  const workspace = await parts.send.senders.workspace(feed.workspaceId)
  let found: Found | FeedFault
  try {
    found = await findNew(parts, workspace, feed)
  } catch (error) {
    found = { fault: faultOf(error) }
  }
  parts.send.database.storage.requireRoom()
  return parts.send.database.write(tx => record(tx, parts, { feed, found, workspace, startedAt, request }))
}

/** @throws what is not a fault of the feed or its settings */
export function faultOf(error: unknown): string {
  if (error instanceof FeedError) return error.message
  if (error instanceof AppError && error.code !== 'unavailable') return error.message
  throw error
}

interface FeedFault {
  readonly fault: string
}

interface Found {
  /** Undefined if the feed has not changed. */
  readonly fetched: FetchedFeed | undefined
  readonly newItems: NewItems
  /** Undefined without new items. */
  readonly mail: { readonly data: MergeData; readonly letter: Letter; readonly items: number } | undefined
}

/** @throws FeedError, AppError */
async function findNew(parts: FeedParts, workspace: ActingWorkspace, feed: Feed): Promise<Found> {
  const { database, clock, senders } = parts.send
  const calls = parts.outgoingCalls(workspace.allowPrivateWebhooks)
  const fetched = await fetchFeed({ ...calls, clock }, feed)
  if (!fetched) return { fetched, newItems: NO_ITEMS, mail: undefined }
  const newItems = await findNewItems(database.reader, feed, fetched.feed.items)
  if (newItems.items.length === 0) return { fetched, newItems, mail: undefined }
  const items = newItems.items.slice(0, feed.maxItems)
  const data = mergeDataOf(fetched.feed, items, feed.timezone ?? workspace.timezone)
  const letter = await makeLetter(database.reader, workspace, feed, data)
  await contentOf(senders, workspace, letter, feed.id)
  await findCampaignAudience(database.reader, { ...feed, audience: null, resendOf: null, resendTo: null })
  return { fetched, newItems, mail: { data, letter, items: items.length } }
}

const NO_ITEMS: NewItems = { items: [], leftOut: undefined }

/** Values of the merge tags `feed`, `items` and `item_count`. */
export function mergeDataOf(feed: ReadFeed, items: readonly FeedItem[], timezone: string): MergeData {
  const { title, description, link } = feed
  return {
    feed: { title, description, link },
    items: items.map(({ keys: _, at, ...item }) => ({
      ...item,
      date: at === null ? '' : dateTags(at, timezone).current_date,
      date_iso: at === null ? '' : isoTime(at),
    })),
    item_count: items.length,
  }
}

interface Recorded {
  readonly feed: Feed
  readonly found: Found | FeedFault
  readonly workspace: ActingWorkspace
  readonly startedAt: number
  readonly request: RunRequest | undefined
}

async function record(tx: Tx, parts: FeedParts, recorded: Recorded): Promise<FeedRun> {
  const { clock, newId } = parts.send
  const { feed, found, workspace, startedAt, request } = recorded
  const now = clock.now()
  const dueAt = request ? await freeTime(tx, feed, now) : (feed.dueAt ?? now)
  const before = request ? undefined : await findRun(tx.db, feed.seq, dueAt)
  const attempts = (before?.attempts ?? 0) + 1
  const following = nextTime(
    feed.schedule,
    Math.max(now, feed.dueAt ?? now),
    feed.timezone ?? workspace.timezone,
  )
  const outcome = request
    ? ofRequest(feed, found, now)
    : 'fault' in found
      ? afterFault(feed, found.fault, attempts, now, following)
      : { ...afterSuccess(feed, found, now), dueAt: following, nextAt: following }
  if (!(await finishRun(tx.db, feed, outcome)))
    throw new AppError('conflict', 'the feed was run or changed meanwhile; try again')
  const run: FeedRun = {
    id: before?.id ?? newId(),
    dueAt,
    isManual: request !== undefined,
    attempts,
    startedAt: before?.startedAt ?? startedAt,
    endedAt: now,
    ...('fault' in found
      ? {
          ...NOTHING,
          status: !request && outcome.dueAt === dueAt ? 'retrying' : 'failed',
          reason: found.fault,
        }
      : await sent(tx, parts, recorded, found, now)),
  }
  await saveRun(tx.db, feed.seq, run)
  if (outcome.failures === REPORTED_FAILURES && feed.failures < REPORTED_FAILURES)
    await reportFailing(tx, feed, outcome.lastError ?? '', now)
  await keepAnswer(tx.db, request?.claim, { status: 200, value: runToApi(run) })
  return run
}

/** Two requests in the same millisecond are two runs. */
async function freeTime(tx: Tx, { seq }: Feed, now: number): Promise<number> {
  let time = now
  while (await findRun(tx.db, seq, time)) time += 1
  return time
}

const NO_NEW_ITEM = 'no item that was not sent before'
const NOTHING = { newItems: 0, sentItems: 0, campaignId: null }

/** A run on request changes neither the schedule nor retries of a scheduled run. */
function ofRequest(feed: Feed, found: Found | FeedFault, now: number): RunOutcome {
  return 'fault' in found
    ? { ...feed, lastError: found.fault }
    : { ...feed, ...afterSuccess(feed, found, now) }
}

function afterSuccess(feed: Feed, { fetched, newItems }: Found, now: number) {
  const { etag, lastModified } = fetched ?? feed
  const newest = Math.max(feed.newestSentAt ?? -1, newestDate(newItems.items, now) ?? -1)
  return {
    failures: 0,
    lastError: null,
    etag,
    lastModified,
    newestSentAt: newest < 0 ? null : newest,
    idsOnlyUntil: fetched ? null : feed.idsOnlyUntil,
  }
}

function afterFault(
  feed: Feed,
  lastError: string,
  attempts: number,
  now: number,
  following: number,
): RunOutcome {
  const pauseMs = RETRIES_MS[attempts - 1]
  const retryAt = pauseMs === undefined ? Infinity : now + pauseMs
  const times =
    retryAt < following ? { dueAt: feed.dueAt, nextAt: retryAt } : { dueAt: following, nextAt: following }
  return { ...feed, ...times, lastError, failures: feed.failures + 1 }
}

/** Remembers the items and, if some are new, creates the campaign that sends them. */
async function sent(
  tx: Tx,
  parts: FeedParts,
  { feed, workspace, request }: Recorded,
  found: Found,
  now: number,
) {
  const { fetched, mail } = found
  const { items: newItems, leftOut } = found.newItems
  if (fetched) await rememberItems(tx.db, feed.seq, fetched.feed.items, now)
  if (!mail) {
    const nothing = leftOut === undefined ? NO_NEW_ITEM : `${NO_NEW_ITEM}; ${leftOut}`
    const reason = fetched ? nothing : 'the feed has not changed'
    return { ...NOTHING, status: 'nothing_new' as const, reason }
  }
  const campaign = {
    ...NOTHING_SAID,
    ...letterFieldsOf(feed),
    name: campaignName(feed, now, feed.timezone ?? workspace.timezone),
    id: parts.send.newId(),
    workspaceId: feed.workspaceId,
    isSandbox: feed.isSandbox,
    createdAt: now,
    updatedAt: now,
  }
  await insertCampaign(tx.db, campaign)
  const draft = await requireCampaign(tx.db, feed.workspaceId, campaign.id)
  await insertCampaignData(tx.db, draft.seq, mail.data)
  await insertLetter(tx.db, draft.seq, mail.letter)
  // The runner evaluates the audience of a campaign whose time has come.
  const status = requireAct(draft, 'schedule')
  await changeCampaign(tx.db, draft.seq, { status, scheduledAt: now, nextAt: now, updatedAt: now })
  await logAct(tx, campaign, request?.actor ?? SYSTEM, 'sent', now)
  tx.changed('campaigns')
  return {
    status: 'sent' as const,
    reason: leftOut ?? null,
    newItems: newItems.length,
    sentItems: mail.items,
    campaignId: campaign.id,
  }
}

function letterFieldsOf(feed: Feed) {
  const { subject, templateId, listId, segmentId, fromEmail, fromName, replyTo, preheader } = feed
  const { trackOpens, trackClicks, ratePerHour, sendWindow } = feed
  const sender = { fromEmail, fromName, replyTo }
  return {
    subject,
    preheader,
    templateId,
    listId,
    segmentId,
    ...sender,
    trackOpens,
    trackClicks,
    ratePerHour,
    sendWindow,
  }
}

const MAX_NAME = 200
const shownDay = zoneTime({ year: 'numeric', month: '2-digit', day: '2-digit' })

/** `Blog, 2026-01-05`. */
function campaignName({ name }: Feed, now: number, timezone: string): string {
  const part = shownDay(now, timezone)
  const date = `, ${part('year')}-${part('month')}-${part('day')}`
  return `${name.slice(0, MAX_NAME - date.length)}${date}`
}

async function reportFailing(
  tx: Tx,
  { id, workspaceId, name }: Feed,
  error: string,
  now: number,
): Promise<void> {
  await recordActivity(tx, { workspaceId, actor: SYSTEM }, now, {
    action: 'feed.failing',
    subject: name,
    details: { id, error },
  })
}
