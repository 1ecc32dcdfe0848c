/** The automations resource: routes, event consumer, trigger scans, the runner and retention. */
import { retentionRule } from '../resource/retention.js'
import type { ReferenceParts } from '../resource/references.js'
import { resource } from '../resource/resource.js'
import type { AutomationParts } from './automation-parts.js'
import { automationRoutes } from './flows/automation-routes.js'
import { automationReferences } from './flows/flow-references.js'
import { stepRoutes } from './flows/step-routes.js'
import { flowRoutes } from './runs/flow-routes.js'
import { runRoutes } from './runs/run-routes.js'
import { deleteRunsBefore } from './runs/bulk-run-store.js'
import { Runner } from './runs/runner.js'
import { DateTrigger } from './triggers/date-trigger.js'
import { SegmentTrigger } from './triggers/segment-trigger.js'
import { triggerConsumer } from './triggers/trigger-consumer.js'

export const automations = resource({
  chapters: { Automations: 'Sequences of steps that a trigger starts for a contact.' },
  references: automationReferences,
  kept: {
    automation_runs: {
      default: '180d',
      description: 'Ended automation runs with their step logs.',
    },
  },
  open: (given: AutomationParts & ReferenceParts) => {
    const runner = new Runner(given)
    const parts = { ...given, wakeRunner: () => runner.wake() }
    const segments = new SegmentTrigger(parts)
    const dates = new DateTrigger(parts)
    return {
      routes: [
        ...automationRoutes(parts, given.references),
        ...stepRoutes(parts),
        ...runRoutes(parts),
        ...flowRoutes(parts),
      ],
      lease: 'automations',
      consumers: [triggerConsumer(parts)],
      jobs: [
        {
          // Runs for the life of the process.
          name: 'run-automations',
          schedule: '* * * * *',
          isRunAtStart: true,
          isHeldAfterRestore: true,
          run: stopping => runner.run(stopping),
        },
        {
          name: 'segments-of-automations',
          schedule: '* * * * *',
          isHeldAfterRestore: true,
          run: stopping => segments.run(stopping),
        },
        {
          name: 'dates-of-automations',
          schedule: '* * * * *',
          isHeldAfterRestore: true,
          run: stopping => dates.run(stopping),
        },
      ],
      retention: [
        retentionRule({ what: 'runs of automations', keep: ['automation_runs'] }, deleteRunsBefore),
      ],
    }
  },
})
