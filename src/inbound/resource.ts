/** Inbound mail as a resource: routes, retention, and the quota. */
import { resource } from '../resource/resource.js'
import { oldest } from '../scheduler/prune.js'
import { inboundRoutes, type InboundRouteParts } from './inbound-routes.js'
import type { MailQuota } from './intake/mail-quota.js'

export interface InboundResourceParts extends InboundRouteParts {
  readonly inboundQuota: MailQuota
  /** `inbound.keep`, ms. */
  readonly inboundKeepMs: number
}

export const inboundMail = resource({
  chapters: { 'Inbound mail': 'Bounces, complaints and reports received, and their results.' },
  open: ({ inboundQuota, inboundKeepMs, ...parts }: InboundResourceParts) => ({
    routes: inboundRoutes(parts),
    retention: [
      {
        what: 'inbound mail',
        keep: inboundKeepMs,
        begin: before => oldest((tx, limit) => inboundQuota.removeBefore(tx, before, limit)),
      },
      {
        what: 'inbound mail over quota',
        keep: 0,
        // The intake limits bound what arrives within a minute.
        schedule: '* * * * *',
        begin: () => oldest((tx, limit) => inboundQuota.removeExcess(tx, limit)),
      },
    ],
  }),
})
