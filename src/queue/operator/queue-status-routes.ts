/**
 * The server's in-memory site state, on the control socket only: `GET /queue/sites` for `postroad top` and `POST
 * /queue/retry` for `postroad queue retry`. Single messages are read from the database instead.
 */
import Type, { type Static } from 'typebox'
import { isoTimeOrNull } from '../../core/moments.js'
import { openRoute, type Route } from '../../http/route.js'
import type { SiteState } from '../pacing/site.js'

export const QUEUE_SITES_PATH = '/queue/sites'
export const QUEUE_RETRY_PATH = '/queue/retry'

export const QueueSitesSchema = Type.Object({
  active: Type.Integer({ description: 'Deliveries in progress over all sites.' }),
  sites: Type.Array(
    Type.Object({
      site: Type.String(),
      active: Type.Integer({ description: 'Deliveries in progress.' }),
      window: Type.Integer({ description: 'Concurrent deliveries the site currently gets.' }),
      backoff_until: Type.Union([Type.String(), Type.Null()]),
    }),
    { description: 'Sites with due mail, deliveries in progress, or a back-off.' },
  ),
})

export type QueueSites = Static<typeof QueueSitesSchema>

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
      summary: 'List delivery sites and their pace.',
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
      summary: 'Retry the queue now.',
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
