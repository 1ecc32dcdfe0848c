/** The health resource. */
import type { NodeStanding } from '../cluster/membership.js'
import { VERSION } from '../core/version.js'
import { resource } from '../resource/resource.js'
import { healthRoutes } from './health-routes.js'
import type { JudgeHealth } from './judge-health.js'
import { readyRoutes } from './ready-route.js'

export interface HealthResourceParts {
  readonly judgeHealth: JudgeHealth
  /** This node; undefined if no server runs. */
  readonly node: () => NodeStanding | undefined
}

export const health = resource({
  chapters: { Health: 'Service health.' },
  open: ({ judgeHealth: judge, node }: HealthResourceParts) => ({
    routes: [...healthRoutes({ version: VERSION, judge, node }), ...readyRoutes({ judge, node })],
  }),
})
