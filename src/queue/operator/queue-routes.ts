/** The delivery queue in the admin API: what waits and why, and the pace of its sites. `queue-change-routes.ts` changes it. */
import Type, { type Static } from 'typebox'
import { findRestoreHold } from '../../accounts/restore-hold-store.js'
import { AppError } from '../../core/errors.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { Waiting } from '../../core/waiting.js'
import type { Database } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import { Moment, MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { WaitingForOrNull, waitingToApi } from '../../http/answer/waiting-for.js'
import { requirePermission } from '../../http/operator.js'
import { cursorQuery } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'
import { asciiDomain } from '../../mail/address.js'
import { cachedCount, type CountRest } from '../../world/time/cached-count.js'
import type { LocateSite } from '../delivery-agent.js'
import type { SiteState } from '../pacing/site.js'
import { findMessageWaits, siteWaitsFor, type FindSiteWaits } from '../waiting.js'
import { selectionOf } from './change-queue.js'
import { countEntries, listEntries, type QueueListEntry } from './queue-admin-store.js'
import { domainField, QUEUE_CHAPTER, siteField, workspaceField } from './queue-fields.js'
import { repliesRoute } from './queue-reply-route.js'
import type { RecentReplies } from './recent-replies.js'
import { AGES, MAX_SUMMED, summaryByDomain, summaryBySite, type QueueCounts } from './queue-summary.js'

/** State of the running server only: deliveries in progress and the pace of sites. */
export interface QueueStatusSource {
  readonly activeCount: number
  listSites(): SiteState[]
  siteServing(destination: string): SiteState | undefined
  siteNameOf(destination: string): string | undefined
  retryNow(destinations?: ReadonlySet<string>): Promise<void>
}

export interface QueueRouteParts extends Pick<Services, 'database' | 'clock'> {
  /** Of this process; empty if no server runs. */
  readonly replies: RecentReplies
  readonly locateSite: LocateSite
  readonly findSiteWaits: FindSiteWaits
  /** Undefined: no server runs. */
  readonly runningQueue: () => QueueStatusSource | undefined
}

export const QueueEntrySchema = Type.Object(
  {
    message_id: Type.String(),
    workspace_id: Type.String({ description: '`system`: mail of the appliance itself.' }),
    to: Type.String(),
    destination: Type.String({ description: "The recipient's domain, A-labels." }),
    campaign_id: TextOrNull(),
    attempts: Type.Integer(),
    in_progress: Type.Boolean({ description: 'A delivery attempt is running.' }),
    held: Type.Boolean({ description: 'Held by an operator.' }),
    campaign_paused: Type.Boolean({ description: 'Waits until its campaign is resumed.' }),
    deleted: Type.Boolean({ description: 'Deleted during an attempt; not retried.' }),
    next_attempt_at: Moment(),
    expires_at: Moment({ description: 'A deferral after this moment is final.' }),
    enqueued_at: Moment(),
    last_reply: TextOrNull(),
    waiting_for: WaitingForOrNull('Why it is not delivered now.'),
  },
  { title: 'QueueEntry' },
)
export type QueueEntryView = Static<typeof QueueEntrySchema>

/** Entries beyond the page that a list counts. */
const MAX_COUNTED = 10_000

/** @throws AppError validation_error */
export function readDomain(text: string | undefined, path: string): string | undefined {
  if (text === undefined) return undefined
  const domain = asciiDomain(text, { allowSingleLabel: true })
  // Address literals have no other form.
  if (domain === undefined && !/^\[[\w.:]+\]$/.test(text))
    throw new AppError('validation_error', `${text} is not a domain`, { path })
  return domain ?? text.toLowerCase()
}

export function queueRoutes(parts: QueueRouteParts): Route[] {
  return [
    listRoute(parts),
    summaryRoute(parts),
    sitesRoute(parts),
    repliesRoute(parts),
    holdAfterRestoreRoute(parts),
    entryRoute(parts),
  ]
}

function listRoute(parts: QueueRouteParts): Route {
  const { slowReader } = parts.database
  return adminListRoute({
    method: 'GET',
    path: '/queue',
    access: { permission: 'queue:read', scope: 'query' },
    operationId: 'listQueue',
    chapter: QUEUE_CHAPTER,
    summary: 'List queued messages, oldest first.',
    description: '`total` is exact up to 10,000; larger totals are a lower bound.',
    query: Type.Object(
      {
        ...cursorQuery,
        destination: Type.Optional(domainField),
        site: Type.Optional(siteField),
        workspace_id: Type.Optional(workspaceField),
        held: Type.Optional(
          Type.Boolean({ description: 'Only messages held by an operator, or only others.' }),
        ),
      },
      { additionalProperties: false },
    ),
    item: QueueEntrySchema,
    async handle({ query, workspaceId }, { limit, offset, after }) {
      if (query.destination !== undefined && query.site !== undefined)
        throw new AppError('validation_error', 'give destination or site, not both', { path: 'site' })
      const named = { domain: readDomain(query.destination, 'destination'), site: query.site, workspaceId }
      const selection = {
        ...(await selectionOf(parts, named)),
        ...(query.held === undefined ? {} : { isHeld: query.held }),
      }
      const from = after && String(after.position('text')[0])
      const wanted = offset + limit + 1
      const [found, total] = await Promise.all([
        listEntries(slowReader, selection, wanted, from),
        after ? after.total : countEntries(slowReader, selection, MAX_COUNTED),
      ])
      const shown = found.slice(offset, offset + limit)
      const waits = await findMessageWaits(parts, shown)
      return {
        items: shown.map(one => entryToApi(one, waits.get(one.messageId))),
        total,
        hasMore: found.length === wanted,
        end: shown.slice(-1).map(({ messageId }) => messageId),
      }
    },
  })
}

const SummaryRowSchema = Type.Object(
  {
    destination: Type.Optional(Type.String({ description: 'By domain.' })),
    site: Type.Optional(Type.String({ description: 'By site: hosts that several domains may share.' })),
    destinations: Type.Optional(Type.Integer({ description: 'Domains of the site that have mail.' })),
    total: Type.Integer(),
    held: Type.Integer({ description: 'Held by an operator or a paused campaign.' }),
    by_age: Type.Record(Type.String(), Type.Integer(), {
      description: 'Messages by time since they were queued: up to 5m, up to 10m ... older.',
    }),
  },
  { title: 'QueueSummaryRow' },
)

const SummarySchema = Type.Object(
  {
    held_since_restore: MomentOrNull({
      description: 'Nothing is sent since this restore, until the whole queue is released.',
    }),
    rows: Type.Array(SummaryRowSchema, { description: 'Most mail first.' }),
    found: Type.Integer({
      description: `Domains or sites that have mail, whether \`rows\` contains them or not. Sites of the ${MAX_SUMMED.toLocaleString('en')} domains that are counted.`,
    }),
    total: Type.Integer({ description: 'Messages to all of them.' }),
    held: Type.Integer({ description: 'Of these, held ones.' }),
  },
  { title: 'QueueSummary' },
)
export type QueueSummary = Static<typeof SummarySchema>
type Summed = Omit<QueueSummary, 'held_since_restore'>

/** A summary reads the whole queue: a hundredth of a reader thread at most. A change by an operator is seen at once. */
const SUMMARIZED: CountRest = { holdsMs: 0, rest: 100, patienceMs: 0 }

/** Summaries kept for repeated reads: each of another kind, length and workspace. */
const MAX_SUMMARIES = 16

function summaryRoute(parts: QueueRouteParts): Route {
  const { database, clock } = parts
  const summaries = new Map<string, () => Promise<Summed>>()
  let version: number | undefined
  const read = (by: 'domain' | 'site', limit: number, workspaceId?: string): Promise<Summed> => {
    const current = database.changes.version('queue')
    if (current !== version) summaries.clear()
    version = current
    const key = `${by} ${limit} ${workspaceId ?? ''}`
    const known = summaries.get(key)
    if (known) return known()
    const count = cachedCount(clock, () => summed(parts, by, limit, workspaceId), SUMMARIZED)
    for (const [oldest] of summaries) if (summaries.size >= MAX_SUMMARIES) summaries.delete(oldest)
    summaries.set(key, count)
    return count()
  }
  return adminRoute({
    method: 'GET',
    path: '/queue/summary',
    access: { permission: 'queue:read', scope: 'query' },
    operationId: 'getQueueSummary',
    chapter: QUEUE_CHAPTER,
    summary: 'Count queued messages by age.',
    description:
      `By site, the ${MAX_SUMMED.toLocaleString('en')} domains with most mail are counted. The counts are at most as old as a hundred times ` +
      'the time that counting takes: 10 seconds with 100,000 messages.',
    query: Type.Object(
      {
        by: Type.Optional(Type.Enum(['domain', 'site'], { description: 'Default domain.' })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, description: 'Rows, default 50.' })),
        workspace_id: Type.Optional(workspaceField),
      },
      { additionalProperties: false },
    ),
    response: SummarySchema,
    async handle({ query: { by = 'domain', limit = 50 }, workspaceId }) {
      const found = await read(by, limit, workspaceId)
      return { held_since_restore: await heldSinceRestore(database), ...found }
    },
  })
}

async function summed(
  { database, clock, locateSite }: QueueRouteParts,
  by: 'domain' | 'site',
  limit: number,
  workspaceId: string | undefined,
): Promise<Summed> {
  const request = { now: clock.now(), limit, workspaceId }
  if (by === 'domain') {
    const { rows, ...all } = await summaryByDomain(database, request)
    return {
      ...all,
      rows: rows.map(({ destination, ...counts }) => ({ destination, ...countsToApi(counts) })),
    }
  }
  const { rows, ...all } = await summaryBySite(database, request, locateSite)
  return {
    ...all,
    rows: rows.map(({ site, destinations, ...counts }) => ({ site, destinations, ...countsToApi(counts) })),
  }
}

function countsToApi({ total, held, byAge }: QueueCounts) {
  return { total, held, by_age: Object.fromEntries(AGES.map((age, index) => [age, byAge[index] ?? 0])) }
}

export const QueueSitesSchema = Type.Object(
  {
    active: Type.Integer({ description: 'Deliveries in progress over all sites.' }),
    sites: Type.Array(
      Type.Object({
        site: Type.String(),
        active: Type.Integer({ description: 'Deliveries in progress.' }),
        window: Type.Integer({ description: 'Concurrent deliveries the site currently gets.' }),
        backoff_until: MomentOrNull(),
        waiting_for: WaitingForOrNull('Why no delivery to it is started now.'),
      }),
      { description: 'Sites with due mail, deliveries in progress, or a back-off.' },
    ),
  },
  { title: 'QueueSites' },
)
export type QueueSites = Static<typeof QueueSitesSchema>

function sitesRoute({ runningQueue, clock }: QueueRouteParts): Route {
  return adminRoute({
    method: 'GET',
    path: '/queue/sites',
    access: { permission: 'queue:read', scope: 'appliance' },
    operationId: 'listQueueSites',
    chapter: QUEUE_CHAPTER,
    summary: 'List delivery sites and their pace.',
    response: QueueSitesSchema,
    handle: async () => sitesToApi(runningQueue(), clock.now()),
  })
}

export function sitesToApi(queue: QueueStatusSource | undefined, now: number): QueueSites {
  const sites = (queue?.listSites() ?? []).map(site => ({
    site: site.name,
    active: site.active,
    window: site.window,
    backoff_until: isoTimeOrNull(site.backoffUntil),
    waiting_for: waitingToApi(siteWaitsFor(site, now)),
  }))
  return { active: queue?.activeCount ?? 0, sites }
}

function holdAfterRestoreRoute({ database }: QueueRouteParts): Route {
  return adminRoute({
    method: 'GET',
    path: '/queue/hold-after-restore',
    access: { permission: 'any', scope: 'appliance' },
    operationId: 'getHoldAfterRestore',
    chapter: QUEUE_CHAPTER,
    summary: 'Get the hold after a restore.',
    description: 'A restored appliance sends nothing until its whole queue is released.',
    response: Type.Object({ held_since: MomentOrNull() }, { title: 'HoldAfterRestore' }),
    handle: async () => ({ held_since: await heldSinceRestore(database) }),
  })
}

async function heldSinceRestore({ reader }: Database): Promise<string | null> {
  return isoTimeOrNull((await findRestoreHold(reader)) ?? null)
}

function entryRoute(parts: QueueRouteParts): Route {
  return adminRoute({
    method: 'GET',
    path: '/queue/:messageId',
    access: { permission: 'queue:read', scope: 'record' },
    operationId: 'getQueueEntry',
    chapter: QUEUE_CHAPTER,
    summary: 'Get a queued message.',
    params: Type.Object({ messageId: Type.String({ maxLength: 64 }) }),
    response: QueueEntrySchema,
    errors: ['not_found'],
    async handle({ operator, params: { messageId } }) {
      const [entry] = await listEntries(parts.database.reader, { messageIds: [messageId] }, 1)
      if (!entry) throw new AppError('not_found', `message ${messageId} is not in the queue`)
      requirePermission(operator, 'queue:read', entry.workspaceId)
      return entryToApi(entry, (await findMessageWaits(parts, [entry])).get(messageId))
    },
  })
}

function entryToApi(entry: QueueListEntry, waiting: Waiting | undefined): QueueEntryView {
  return {
    message_id: entry.messageId,
    workspace_id: entry.workspaceId,
    to: entry.recipient,
    destination: entry.destination,
    campaign_id: entry.campaignId ?? null,
    attempts: entry.attempts,
    in_progress: entry.isClaimed,
    held: entry.isHeld,
    campaign_paused: entry.isCampaignPaused,
    deleted: entry.isWithdrawn,
    next_attempt_at: isoTime(entry.nextAttemptAt),
    expires_at: isoTime(entry.expiresAt),
    enqueued_at: isoTime(entry.enqueuedAt),
    last_reply: entry.lastSummary,
    waiting_for: waitingToApi(waiting),
  }
}
