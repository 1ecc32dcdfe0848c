/**
 * What the running server holds in memory of its sites, on the control socket only: `GET /queue/sites`, which `postroad top`
 * asks, and `POST /queue/retry`, by which `postroad queue retry` ends rests. Never says or changes anything of single
 * messages; those are in the database.
 */
import Type, { type Static } from 'typebox'
import { isoTimeOrNull } from '../../core/moments.js'
import { openRoute, type Route } from '../../http/route.js'
import type { SiteState } from '../pacing/site.js'

export const QUEUE_SITES_PATH = '/queue/sites'
export const QUEUE_RETRY_PATH = '/queue/retry'

export const QueueSitesSchema = Type.Object({
  active: Type.Integer({ description: 'Deliveries under way, over all sites.' }),
  sites: Type.Array(
    Type.Object({
      site: Type.String(),
      active: Type.Integer({ description: 'Deliveries under way.' }),
      window: Type.Integer({ description: 'Deliveries at a time that the site is given now.' }),
      backoff_until: Type.Union([Type.String(), Type.Null()]),
    }),
    { description: 'Sites with mail due, under way, or at rest.' },
  ),
})

export type QueueSites = Static<typeof QueueSitesSchema>

/** The queue manager, as far as it is asked. */
export interface QueueStatusSource {
  readonly activeCount: number
  listSites(): SiteState[]
  retryNow(destinations?: ReadonlySet<string>): Promise<void>
}

export function queueStatusRoutes(queue: QueueStatusSource): Route[] {
  return [
    openRoute({
      method: 'GET',
      path: QUEUE_SITES_PATH,
      isAtRoot: true,
      access: 'control',
      summary: 'Pace of the sites that mail is delivered to.',
      response: QueueSitesSchema,
      async handle() {
        const sites = queue.listSites().map(({ name, active, window, backoffUntil }) => ({
          site: name,
          active,
          window,
          backoff_until: isoTimeOrNull(backoffUntil),
        }))
        return { active: queue.activeCount, sites }
      },
    }),
    openRoute({
      method: 'POST',
      path: QUEUE_RETRY_PATH,
      isAtRoot: true,
      access: 'control',
      summary: 'Ends the rests of sites and looks at the queue at once.',
      body: Type.Object(
        { destinations: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { maxItems: 1_000 })) },
        { additionalProperties: false },
      ),
      response: Type.Object({ success: Type.Boolean() }),
      async handle({ body: { destinations } }) {
        await queue.retryNow(destinations && new Set(destinations))
        return { success: true }
      },
    }),
  ]
}
