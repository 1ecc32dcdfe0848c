/**
 * Live figures: rates of the last minute, connections, queue, event lag and memory, for `GET /live`; and the balance of all mail.
 *
 * Meant to be polled once a second: everything comes from memory but the queue's size and the balance, which are counted in a reader
 * thread that rests in between. Rates begin with the start of the server.
 */
import Type, { type Static } from 'typebox'
import { AppError } from '../core/errors.js'
import { isoTime, isoTimeOrNull } from '../core/moments.js'
import type { Database, Queries } from '../db/database.js'
import { adminRoute } from '../http/admin-route.js'
import { Moment, MomentOrNull, orNull } from '../http/answer/answer-fields.js'
import type { Route } from '../http/route.js'
import { differenceOf, readMailBalance, type MailBalance } from '../messages/mail-totals-store.js'
import { countHeldAndDue, measureLiveQueue } from '../queue/operator/queue-status-store.js'
import type { Disk } from '../world/disk.js'
import { cachedCount, WATCHED } from '../world/time/cached-count.js'
import type { Clock } from '../world/time/clock.js'
import type { DestinationRates } from './destination-rates.js'

export const LIVE_CHAPTER = 'Live figures'

const KINDS = ['accepted', 'delivered', 'deferred', 'bounced', 'failed'] as const
type Kind = (typeof KINDS)[number]
type Counts = Record<Kind, number>

const SECONDS = 60
/** One more for the current second. */
const SLOTS = SECONDS + 1

/** Messages accepted and attempts ended, by second of the last minute. */
export class LiveCounters {
  private readonly clock: Pick<Clock, 'monotonic'>
  /** A ring; `seconds` tells which second each slot counts. */
  private readonly slots: Counts[] = Array.from({ length: SLOTS }, noCounts)
  private readonly seconds: number[] = Array.from({ length: SLOTS }, () => -1)

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  count(kind: Kind, messages = 1): void {
    const second = this.currentSecond
    const at = second % SLOTS
    if (this.seconds[at] !== second) {
      this.seconds[at] = second
      this.slots[at] = noCounts()
    }
    const slot = this.slots[at]
    if (slot) slot[kind] += messages
  }

  /** Over the last whole seconds, up to 60, without the current one. */
  lastSeconds(count: number): Counts {
    const now = this.currentSecond
    const sum = noCounts()
    for (const [at, second] of this.seconds.entries()) {
      if (second < now - count || second >= now) continue
      for (const kind of KINDS) sum[kind] += this.slots[at]?.[kind] ?? 0
    }
    return sum
  }

  private get currentSecond(): number {
    return Math.floor(this.clock.monotonic() / 1_000)
  }
}

function noCounts(): Counts {
  return { accepted: 0, delivered: 0, deferred: 0, bounced: 0, failed: 0 }
}

/** Sources of live figures in the running server. */
export interface LiveSources {
  readonly counters: LiveCounters
  readonly rates: DestinationRates
  readonly connections: () => LiveView['connections']
  readonly consumerLags: () => Promise<readonly { readonly consumer: string; readonly events: number }[]>
  readonly backingOffSites: () => number
}

export interface LiveParts {
  readonly database: Pick<Database, 'reader' | 'slowReader' | 'file'>
  readonly clock: Clock
  readonly disk: Disk
  readonly dataDir: string
  readonly hasWorkspace: (db: Queries, id: string) => Promise<boolean>
  /** A function, since they open after the resources; undefined if no server runs. */
  readonly live: () => LiveSources | undefined
}

const RateSchema = Type.Object(
  {
    accepted: Type.Integer({ description: 'Messages accepted for delivery, one per recipient.' }),
    delivered: Type.Integer(),
    deferred: Type.Integer({ description: 'Attempts to be repeated.' }),
    bounced: Type.Integer({ description: 'Rejected permanently, or expired.' }),
    failed: Type.Integer({ description: 'Impossible to send, or deleted.' }),
  },
  { title: 'LiveRate' },
)

const BalanceSchema = Type.Object(
  {
    accepted: Type.Integer({ description: 'Messages accepted for delivery, one per recipient.' }),
    delivered: Type.Integer({ description: 'Delivered, and not returned later.' }),
    bounced: Type.Integer({ description: 'Rejected permanently, expired, or returned later.' }),
    failed: Type.Integer({ description: 'Impossible to send, or deleted from the queue.' }),
    cancelled: Type.Integer({ description: 'Scheduled, and cancelled before they were sent.' }),
    suppressed: Type.Integer({ description: 'Their recipient was suppressed while they were queued.' }),
    waiting: Type.Integer({ description: 'In the queue: due, deferred, scheduled or held.' }),
    difference: Type.Integer({
      description:
        '`accepted` minus all others: mail that is unaccounted for. Always 0 in an intact database.',
    }),
  },
  {
    title: 'MailBalance',
    description:
      'Results of all mail since the start: accepted = delivered + bounced + failed + cancelled + suppressed + waiting. `waiting` is ' +
      'counted in the queue, the others when they happen. Retention does not change it; sandbox mail is not counted.',
  },
)
export type MailBalanceView = Static<typeof BalanceSchema>

const LiveSchema = Type.Object(
  {
    time: Moment(),
    serving: Type.Boolean({ description: 'False: no server runs, and a command answers.' }),
    last_second: RateSchema,
    last_minute: RateSchema,
    connections: Type.Object({
      http: Type.Integer(),
      submission: Type.Integer({ description: 'SMTP sessions of senders.' }),
      inbound: Type.Integer({ description: 'SMTP sessions of inbound mail.' }),
      deliveries: Type.Integer({ description: 'Deliveries in progress; each uses one connection.' }),
    }),
    queue: Type.Object(
      {
        messages: Type.Integer({ description: 'Waiting for delivery, held ones included.' }),
        due: Type.Integer({ description: 'Due now, and not held by an operator.' }),
        held: Type.Integer({ description: 'Held by an operator.' }),
        oldest_at: MomentOrNull({ description: 'When the oldest was queued.' }),
        backing_off_sites: Type.Integer(),
      },
      {
        description:
          'Counted at most once a second. `due` and `held` are counted less often the longer it takes: every 6 seconds with 100,000 messages.',
      },
    ),
    balance: BalanceSchema,
    database: orNull(
      Type.Object({
        octets: Type.Integer({ description: 'Size of the file.' }),
        free_octets: Type.Integer({ description: 'Unused space in the file.' }),
        log_octets: Type.Integer({ description: 'Size of the write-ahead log.' }),
        disk_free_octets: Type.Integer({ description: 'Free space on the disk of the data folder.' }),
      }),
      { description: 'Null if the database is not a local file.' },
    ),
    consumers: Type.Array(
      Type.Object({
        consumer: Type.String(),
        lag: Type.Integer({ description: 'Events not processed yet.' }),
      }),
    ),
    memory: Type.Object({
      resident: Type.Integer({ description: 'Octets.' }),
      heap: Type.Integer({ description: 'Used heap of the main thread, octets.' }),
    }),
    uptime_seconds: orNull(Type.Integer()),
  },
  { title: 'Live' },
)
export type LiveView = Static<typeof LiveSchema>

const NO_CONNECTIONS = { http: 0, submission: 0, inbound: 0, deliveries: 0 }

/** Reads the figures; what must be counted is counted once for all callers, and rests in between. */
export function openLiveFigures(parts: LiveParts): () => Promise<LiveView> {
  const { database, clock, live } = parts
  const measured = cachedCount(clock, () => measureLiveQueue(database.slowReader), WATCHED)
  const heldAndDue = cachedCount(clock, () => countHeldAndDue(database.slowReader, clock.now()), WATCHED)
  return async () => {
    const sources = live()
    const [{ oldestAt, ...balance }, { held, due }] = await Promise.all([measured(), heldAndDue()])
    const { rss, heapUsed } = process.memoryUsage()
    return {
      time: isoTime(clock.now()),
      serving: sources !== undefined,
      last_second: sources?.counters.lastSeconds(1) ?? noCounts(),
      last_minute: sources?.counters.lastSeconds(SECONDS) ?? noCounts(),
      connections: sources?.connections() ?? NO_CONNECTIONS,
      queue: {
        messages: balance.waiting,
        due,
        held,
        oldest_at: isoTimeOrNull(oldestAt ?? null),
        backing_off_sites: sources?.backingOffSites() ?? 0,
      },
      balance: balanceToApi(balance),
      database: await databaseToApi(parts),
      consumers: ((await sources?.consumerLags()) ?? []).map(({ consumer, events }) => ({
        consumer,
        lag: events,
      })),
      memory: { resident: rss, heap: heapUsed },
      uptime_seconds: sources ? Math.floor(process.uptime()) : null,
    }
  }
}

export function liveRoute(readFigures: () => Promise<LiveView>): Route {
  return adminRoute({
    method: 'GET',
    path: '/live',
    access: { permission: 'system:read', scope: 'appliance' },
    operationId: 'getLive',
    chapter: LIVE_CHAPTER,
    summary: 'Get rates, connections and queue size.',
    description:
      'Cheap enough to be polled once a second. Rates count whole seconds since the server started.',
    response: LiveSchema,
    handle: readFigures,
  })
}

/** Query of figures of all mail, or of one workspace's. */
export const ofWorkspace = {
  workspace_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "Only mail of this workspace; default: all mail, with the appliance's own.",
    }),
  ),
}

/** @throws AppError not_found */
export async function requireWorkspace(
  hasWorkspace: LiveParts['hasWorkspace'],
  db: Queries,
  id: string | undefined,
): Promise<void> {
  if (id !== undefined && !(await hasWorkspace(db, id)))
    throw new AppError('not_found', `no workspace ${id}`, { path: 'workspace_id' })
}

export function balanceRoute({ database, hasWorkspace }: LiveParts): Route {
  return adminRoute({
    method: 'GET',
    path: '/live/balance',
    access: { permission: 'email:read', scope: 'query' },
    operationId: 'getMailBalance',
    chapter: LIVE_CHAPTER,
    summary: 'Account for all accepted mail.',
    query: Type.Object(ofWorkspace, { additionalProperties: false }),
    response: BalanceSchema,
    errors: ['not_found'],
    async handle({ workspaceId }) {
      await requireWorkspace(hasWorkspace, database.slowReader, workspaceId)
      return balanceToApi(await readMailBalance(database.slowReader, workspaceId))
    },
  })
}

function balanceToApi(balance: MailBalance): MailBalanceView {
  return { ...balance, difference: differenceOf(balance) }
}

async function databaseToApi({ database, disk, dataDir }: LiveParts): Promise<LiveView['database']> {
  const now = database.file?.size()
  if (!now) return null
  return {
    octets: now.octets,
    free_octets: now.freeOctets,
    log_octets: now.logOctets,
    disk_free_octets: await disk.freeSpace(dataDir),
  }
}
