/** The stored mail as a resource: how long it is kept, and the local inbox. */
import type { Database } from '../db/database.js'
import { resource } from '../resource/resource.js'
import type { Clock } from '../world/time/clock.js'
import { captureRoutes } from './capture-routes.js'
import { contentPruning, messagePruning } from './prune-messages.js'

export interface MessageResourceParts {
  readonly database: Database
  readonly clock: Clock
  /** `mta.capture`: mail goes to the local inbox. */
  readonly isCaptured: boolean
}

export const messages = resource({
  kept: {
    content: {
      default: '30d',
      description:
        'Text, attachments and custom header fields of mail, after it was accepted and delivered or given up. ' +
        'What the message log shows stays. Mail that waits in the queue is kept whatever its age.',
    },
    messages: {
      default: '90d',
      min: '14d',
      description:
        'Messages with their delivery trace, and batches, after the last that happened to them. Bounces and complaints ' +
        'that come later are not recognised any more. Messages of campaigns stay: their unsubscribe addresses work for ever.',
    },
  },
  open: ({ database, clock, isCaptured }: MessageResourceParts) => ({
    routes: isCaptured ? captureRoutes(database.reader) : [],
    retention: [
      {
        what: 'contents of mail',
        // A message goes only after its content, which is therefore not kept longer.
        keep: ['content', 'messages'],
        begin: before => contentPruning(database.reader, clock, before),
      },
      {
        what: 'messages',
        keep: ['messages'],
        // Every few hours, for it goes along those that are kept.
        schedule: '13 */6 * * *',
        begin: before => messagePruning(database.reader, before),
      },
    ],
  }),
})
