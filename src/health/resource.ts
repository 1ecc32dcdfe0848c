/** The health resource. */
import { VERSION } from '../core/version.js'
import { resource } from '../resource/resource.js'
import { healthRoutes } from './health-routes.js'
import type { JudgeHealth } from './judge-health.js'

export interface HealthResourceParts {
  readonly judgeHealth: JudgeHealth
}

export const health = resource({
  chapters: { Health: 'Service health.' },
  open: ({ judgeHealth: judge }: HealthResourceParts) => ({
    routes: healthRoutes({ version: VERSION, judge }),
  }),
})
