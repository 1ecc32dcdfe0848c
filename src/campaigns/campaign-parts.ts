import type { SendParts } from '../msa/rest/send-email.js'
import type { Log } from '../world/log.js'

export interface CampaignParts {
  /** Message intake (`submit`) and sender lookup. */
  readonly send: SendParts
  readonly log: Log
  /** Events were appended to the log. */
  readonly onEvents: () => void
  /** A campaign's queued mail was held or released. */
  readonly onHolds: () => void
}
