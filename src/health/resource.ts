/** Health as a resource: what a monitor asks for. */
import { VERSION } from '../core/version.js'
import type { Database } from '../db/database.js'
import { healthOf } from '../db/health.js'
import { resource } from '../resource/resource.js'
import type { Clock } from '../world/time/clock.js'
import { healthRoutes } from './health-routes.js'
import { setAsideCount } from './set-aside-count.js'

export interface HealthParts {
  readonly database: Database
  readonly clock: Clock
}

export const health = resource({
  chapters: { Health: 'Whether the service works.' },
  open: ({ database, clock }: HealthParts) => ({
    routes: healthRoutes({
      version: VERSION,
      check: healthOf(database, clock),
      countSetAside: setAsideCount(database.reader, clock),
    }),
  }),
})
