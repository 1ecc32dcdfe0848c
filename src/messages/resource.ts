/** Stored mail as a resource: retention and the local inbox. */
import type { Services } from '../db/services.js'
import { resource } from '../resource/resource.js'
import { openNetworkAccess } from '../http/network-access.js'
import { capturedMailRoutes, captureRoutes } from './capture-routes.js'
import { contentPruning, messagePruning } from './prune-messages.js'

export interface MessageResourceParts extends Pick<
  Services,
  'database' | 'clock' | 'hostname' | 'publicUrl'
> {
  readonly isCaptured: boolean
  /** `mta.capture_networks`. */
  readonly captureNetworks: readonly string[]
}

export const messages = resource({
  kept: {
    content: {
      default: '30d',
      description:
        'Text, attachments and custom header fields of mail, counted from acceptance and the last delivery or bounce. ' +
        'The message log keeps the rest. Queued mail is always kept.',
    },
    messages: {
      default: '90d',
      min: '14d',
      description:
        'Messages with their delivery trace, and batches, counted from their last event. Later bounces and complaints are not ' +
        'recognised. Messages of campaigns are kept, so that their unsubscribe addresses always work.',
    },
  },
  chapters: { 'Captured mail': 'The local inbox, which mta.capture fills instead of sending mail.' },
  open: ({ database, clock, isCaptured, ...parts }: MessageResourceParts) => ({
    routes: [
      ...(isCaptured ? captureRoutes({ database, clock, isListed: listedBy(parts) }) : []),
      ...capturedMailRoutes({ database, clock }),
    ],
    retention: [
      {
        what: 'contents of mail',
        // A message is deleted only after its content, so content is not kept longer.
        keep: ['content', 'messages'],
        begin: before => contentPruning(database.reader, clock, before),
      },
      {
        what: 'messages',
        keep: ['messages'],
        // Every few hours: it walks all messages that are kept.
        schedule: '13 */6 * * *',
        begin: before => messagePruning(database.reader, before),
      },
    ],
  }),
})

function listedBy({
  captureNetworks: networks,
  hostname,
  publicUrl,
}: Pick<MessageResourceParts, 'captureNetworks' | 'hostname' | 'publicUrl'>) {
  return openNetworkAccess({ networks, hosts: [hostname, new URL(publicUrl).hostname] })
}
