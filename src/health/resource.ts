/** Health as a resource: what a monitor asks for. */
import { VERSION } from '../core/version.js'
import { resource } from '../resource/resource.js'
import { healthRoutes } from './health-routes.js'
import type { JudgeHealth } from './judge-health.js'

export interface HealthResourceParts {
  readonly judgeHealth: JudgeHealth
}

export const health = resource({
  chapters: { Health: 'Whether the service works.' },
  open: ({ judgeHealth: judge }: HealthResourceParts) => ({
    routes: healthRoutes({ version: VERSION, judge }),
  }),
})
