/** The event log as a resource: how long it is kept, and the second try of what was set aside. */
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
      description: 'The event log, as far as everything that follows from an event has been done.',
    },
  },
  open: ({ eventLog }: EventLogParts) => ({
    jobs: [
      {
        // A command only marks what it wants tried again: consumers run here alone.
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
