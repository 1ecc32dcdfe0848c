/**
 * The `[retention]` section of the configuration: how long things are kept.
 *
 * Part of `schema.ts`, which says how such a section is written. Mail that came in has its own key, `inbound.keep`.
 */
import { keeping, table } from './fields.js'

export const RETENTION_SECTION = table(
  {
    content: keeping({
      default: '30d',
      min: '1d',
      description:
        'Text, attachments and custom header fields of mail, after it was accepted and delivered or given up. ' +
        'What the message log shows stays. Mail that waits in the queue is kept whatever its age.',
    }),
    messages: keeping({
      default: '90d',
      min: '14d',
      description:
        'Messages with their delivery trace, and batches, after the last that happened to them. Bounces and complaints ' +
        'that come later are not recognised any more. Messages of campaigns stay: their unsubscribe addresses work for ever.',
    }),
    bounces: keeping({
      default: '365d',
      min: '1d',
      description: 'Bounce records. Suppressions stay until they are removed.',
    }),
    events: keeping({
      default: '30d',
      min: '1d',
      description: 'The event log, as far as everything that follows from an event has been done.',
    }),
    statistics: keeping({
      default: '400d',
      min: '90d',
      description: 'Daily counters of analytics, which show 90 days at most.',
    }),
    reports: keeping({ default: '400d', min: '1d', description: 'DMARC and TLS reports about domains.' }),
    activity: keeping({
      default: '365d',
      min: '1d',
      description: 'The log of who changed what in a workspace.',
    }),
    conversions: keeping({ default: '0', min: '1d', description: 'Conversions.' }),
    product_views: keeping({ default: '90d', min: '1d', description: 'Product views.' }),
  },
  {
    description:
      'How long things are kept; 0 = for ever. What is older is deleted by the hour, in small steps beside the mail.',
  },
)
