/** The health resource. */
import type { NodeStanding } from '../cluster/membership.js'
import { VERSION } from '../core/version.js'
import { resource } from '../resource/resource.js'
import { healthRoutes, type HealthRouteParts } from './health-routes.js'
import type { JudgeHealth } from './judge-health.js'
import { readyRoutes } from './ready-route.js'

export interface HealthResourceParts extends Pick<HealthRouteParts, 'isCaptured' | 'knowsMonitor'> {
  readonly judgeHealth: JudgeHealth
  /** This node; undefined if no server runs. */
  readonly node: () => NodeStanding | undefined
}

export const health = resource({
  chapters: { Health: 'Service health.' },
  open: ({ judgeHealth: judge, isCaptured, node, knowsMonitor }: HealthResourceParts) => ({
    routes: [
      ...healthRoutes({ version: VERSION, judge, isCaptured, node, knowsMonitor }),
      ...readyRoutes({ judge, node }),
    ],
  }),
})
