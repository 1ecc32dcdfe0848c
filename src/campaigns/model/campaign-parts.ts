import type { SendParts } from '../../msa/rest/send-email.js'
import type { FindSiteWaits } from '../../queue/waiting.js'
import type { Log } from '../../world/log.js'

export interface CampaignParts {
  /** Message intake (`submit`) and sender lookup. */
  readonly send: SendParts
  readonly log: Log
  readonly findSiteWaits: FindSiteWaits
  /** Events were appended to the log. */
  readonly onEvents: () => void
  /** A campaign's queued mail was held or released. */
  readonly onHolds: () => void
}
