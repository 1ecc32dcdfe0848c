/**
 * `GET /live/queue`: the busiest sites and destinations, for the live view of the queue.
 *
 * Meant to be polled once a second, whatever the length of the queue: pace and rates come from memory, and of a bounded number of
 * destinations a bounded number of messages is counted, in a reader thread that rests in between.
 */
import Type, { type Static } from 'typebox'
import { isoTimeOrNull } from '../core/moments.js'
import type { Database } from '../db/database.js'
import { adminRoute } from '../http/admin-route.js'
import { IntegerOrNull, MomentOrNull } from '../http/answer/answer-fields.js'
import type { Route } from '../http/route.js'
import type { LocateSite } from '../queue/delivery-agent.js'
import { listDestinations } from '../queue/operator/queue-admin-store.js'
import type { QueueStatusSource } from '../queue/operator/queue-routes.js'
import { countDestinations, type DestinationCounts } from '../queue/operator/queue-status-store.js'
import { cachedCount, WATCHED } from '../world/time/cached-count.js'
import type { Clock } from '../world/time/clock.js'
import { addRates, attemptsOf, NO_RATES, type DestinationRates, type Rates } from './destination-rates.js'
import { LIVE_CHAPTER } from './live.js'

/** Sites and destinations reported. */
const MAX_ROWS = 50
/** Messages counted per destination. */
const MAX_COUNTED = 5_000

export interface LiveQueueParts {
  readonly database: Pick<Database, 'slowReader'>
  readonly clock: Clock
  readonly locateSite: LocateSite
  /** Undefined if no server runs. */
  readonly live: () => { readonly rates: DestinationRates } | undefined
  readonly runningQueue: () => QueueStatusSource | undefined
}

const rateFields = {
  delivered: Type.Integer({ description: 'Delivered in the last minute.' }),
  deferred: Type.Integer({ description: 'Attempts of the last minute that will be repeated.' }),
  bounced: Type.Integer({
    description: 'Rejected permanently, or impossible to send, in the last minute.',
  }),
}

const LiveQueueSchema = Type.Object(
  {
    active: IntegerOrNull({ description: 'Deliveries in progress; null if no server runs.' }),
    sites: Type.Array(
      Type.Object({
        site: Type.String({ description: 'Mail hosts that several destinations may share.' }),
        active: IntegerOrNull({ description: 'Deliveries in progress; null if the site is idle.' }),
        window: IntegerOrNull({ description: 'Concurrent deliveries the site currently gets.' }),
        backoff_until: MomentOrNull(),
        ...rateFields,
      }),
      { description: `The ${MAX_ROWS} busiest, busiest first.` },
    ),
    destinations: Type.Array(
      Type.Object({
        destination: Type.String({ description: "The recipients' domain, A-labels." }),
        site: Type.String(),
        queued: Type.Integer(),
        due: Type.Integer({ description: 'Of those counted: not held, and due.' }),
        held: Type.Integer({
          description: 'Of those counted: held by an operator or a paused campaign.',
        }),
        has_more: Type.Boolean({ description: 'More messages are queued than were counted.' }),
        ...rateFields,
      }),
      {
        description:
          `Destinations with queued mail, most first: all if there are at most ${MAX_ROWS}, otherwise the ${MAX_ROWS} with most attempts in ` +
          `the last minute. At most ${MAX_COUNTED.toLocaleString('en')} messages are counted for each.`,
      },
    ),
  },
  { title: 'LiveQueue' },
)
export type LiveQueueView = Static<typeof LiveQueueSchema>

export function liveQueueRoute(parts: LiveQueueParts): Route {
  const counted = cachedCount(parts.clock, () => countBusiest(parts), WATCHED)
  return adminRoute({
    method: 'GET',
    path: '/live/queue',
    access: { permission: 'queue:read', scope: 'appliance' },
    operationId: 'getLiveQueue',
    chapter: LIVE_CHAPTER,
    summary: 'List the busiest sites and destinations.',
    description: 'May be polled once a second. `/queue/summary` counts the whole queue.',
    response: LiveQueueSchema,
    async handle() {
      const queue = parts.runningQueue()
      const rates = ratesOf(parts)
      const destinations = await counted()
      return {
        active: queue?.activeCount ?? null,
        sites: siteRows(queue, rates),
        destinations: destinations.map(({ site, counts: { destination, queued, due, held, hasMore } }) => ({
          destination,
          site,
          queued,
          due,
          held,
          has_more: hasMore,
          ...(rates.get(destination) ?? NO_RATES),
        })),
      }
    },
  })
}

function ratesOf({ live }: LiveQueueParts): ReadonlyMap<string, Rates> {
  return live()?.rates.byDestination ?? new Map<string, Rates>()
}

interface CountedDestination {
  readonly site: string
  readonly counts: DestinationCounts
}

async function countBusiest(parts: LiveQueueParts): Promise<CountedDestination[]> {
  const { database, clock, locateSite, runningQueue } = parts
  const all = await countDestinations(database.slowReader, await busiest(parts), clock.now(), MAX_COUNTED)
  const queued = all.sort((a, b) => b.queued - a.queued || (a.destination < b.destination ? -1 : 1))
  return Promise.all(
    queued.map(async counts => ({
      counts,
      site: runningQueue()?.siteNameOf(counts.destination) ?? (await locateSite(counts.destination)).name,
    })),
  )
}

async function busiest(parts: LiveQueueParts): Promise<readonly string[]> {
  const some = await listDestinations(parts.database.slowReader, MAX_ROWS + 1)
  if (some.length <= MAX_ROWS) return some
  const active = [...ratesOf(parts)].sort(([, a], [, b]) => attemptsOf(b) - attemptsOf(a)).slice(0, MAX_ROWS)
  return [...new Set([...active.map(([destination]) => destination), ...some])].slice(0, MAX_ROWS)
}

type SiteRow = LiveQueueView['sites'][number]

/** Sites that the queue works on, and those with attempts in the last minute. */
function siteRows(queue: QueueStatusSource | undefined, rates: ReadonlyMap<string, Rates>): SiteRow[] {
  const rows = new Map<string, SiteRow>()
  for (const { name: site, active, window, backoffUntil } of queue?.listSites() ?? [])
    rows.set(site, { site, active, window, backoff_until: isoTimeOrNull(backoffUntil), ...NO_RATES })
  for (const [destination, ended] of rates) {
    const site = queue?.siteNameOf(destination) ?? destination
    const row = rows.get(site) ?? { site, active: null, window: null, backoff_until: null, ...NO_RATES }
    rows.set(site, { ...row, ...addRates(row, ended) })
  }
  return [...rows.values()]
    .sort(
      (a, b) =>
        (b.active ?? 0) - (a.active ?? 0) ||
        Number(b.backoff_until !== null) - Number(a.backoff_until !== null) ||
        attemptsOf(b) - attemptsOf(a) ||
        (a.site < b.site ? -1 : 1),
    )
    .slice(0, MAX_ROWS)
}
