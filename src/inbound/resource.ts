/** Mail that came in as a resource: it is kept readable for a while, within its bounds. */
import { resource } from '../resource/resource.js'
import { oldest } from '../scheduler/prune.js'
import type { KeptMail } from './intake/kept-mail.js'

export interface InboundResourceParts {
  readonly keptMail: KeptMail
  /** `inbound.keep`, ms. */
  readonly keptMailMs: number
}

export const inboundMail = resource({
  open: ({ keptMail, keptMailMs }: InboundResourceParts) => ({
    retention: [
      {
        what: 'inbound mail',
        keep: keptMailMs,
        begin: before => oldest((tx, limit) => keptMail.removeBefore(tx, before, limit)),
      },
      {
        what: 'inbound mail beyond its bound',
        keep: 0,
        // Within a minute it may have grown by what the intake lets in.
        schedule: '* * * * *',
        begin: () => oldest((tx, limit) => keptMail.removeExcess(tx, limit)),
      },
    ],
  }),
})
