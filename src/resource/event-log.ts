/** The event log as a resource: its retention, and the retry of events set aside. */
import { deleteEventsBefore } from '../events/store.js'
import type { Dispatcher } from '../events/dispatcher.js'
import { oldest } from '../scheduler/prune.js'
import { resource } from './resource.js'

export interface EventLogParts {
  readonly eventLog: Pick<Dispatcher, 'passed' | 'retrySetAside'>
}

export const eventLog = resource({
  kept: {
    events: {
      default: '30d',
      description: 'The event log. Events that are still to be processed are kept longer.',
    },
  },
  open: ({ eventLog }: EventLogParts) => ({
    jobs: [
      {
        // The command only marks events to retry; consumers run in the server alone.
        name: 'retry-set-aside-events',
        schedule: '* * * * *',
        async run() {
          await eventLog.retrySetAside()
        },
      },
    ],
    retention: [
      {
        what: 'events',
        keep: ['events'],
        async begin(before) {
          const passed = await eventLog.passed()
          return oldest((tx, limit) => deleteEventsBefore(tx.db, before, passed, limit))
        },
      },
    ],
  }),
})
