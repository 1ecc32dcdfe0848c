/** Health as a resource: what a monitor asks for. */
import { VERSION } from '../core/version.js'
import type { Database, Queries } from '../db/database.js'
import { healthOf } from '../db/health.js'
import { resource } from '../resource/resource.js'
import type { Clock } from '../world/time/clock.js'
import { healthRoutes } from './health-routes.js'
import { countSetAside } from '../events/set-aside-store.js'
import { countedRarely } from './counted-rarely.js'

export interface HealthParts {
  readonly database: Database
  readonly clock: Clock
  /** Of all workspaces. @param since ms since epoch UTC */
  readonly countDisabledWebhooks: (db: Queries, since: number) => Promise<number>
}

/** A notice stands for so long. */
const NOTICE_MS = 7 * 24 * 60 * 60 * 1_000

export const health = resource({
  chapters: { Health: 'Whether the service works.' },
  open: ({ database, clock, countDisabledWebhooks }: HealthParts) => ({
    routes: healthRoutes({
      version: VERSION,
      check: healthOf(database, clock),
      countSetAside: countedRarely(clock, () => countSetAside(database.reader)),
      countDisabledWebhooks: countedRarely(clock, () =>
        countDisabledWebhooks(database.reader, clock.now() - NOTICE_MS),
      ),
    }),
  }),
})
