/** Mail that came in as a resource: it is kept readable for a while, within its bounds. */
import { resource } from '../resource/resource.js'
import { oldest } from '../scheduler/prune.js'
import type { MailQuota } from './intake/mail-quota.js'

export interface InboundResourceParts {
  readonly inboundQuota: MailQuota
  /** `inbound.keep`, ms. */
  readonly inboundKeepMs: number
}

export const inboundMail = resource({
  open: ({ inboundQuota, inboundKeepMs }: InboundResourceParts) => ({
    retention: [
      {
        what: 'inbound mail',
        keep: inboundKeepMs,
        begin: before => oldest((tx, limit) => inboundQuota.removeBefore(tx, before, limit)),
      },
      {
        what: 'inbound mail beyond its bound',
        keep: 0,
        // Within a minute it may have grown by what the intake lets in.
        schedule: '* * * * *',
        begin: () => oldest((tx, limit) => inboundQuota.removeExcess(tx, limit)),
      },
    ],
  }),
})
