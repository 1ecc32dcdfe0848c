/** Inbound mail as a resource: retention, and the quota. */
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
        what: 'inbound mail over quota',
        keep: 0,
        // The intake limits bound what arrives within a minute.
        schedule: '* * * * *',
        begin: () => oldest((tx, limit) => inboundQuota.removeExcess(tx, limit)),
      },
    ],
  }),
})
