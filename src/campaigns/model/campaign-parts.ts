import type { Services } from '../../db/services.js'
import type { SendParts } from '../../msa/rest/send-email.js'
import type { FindSiteWaits } from '../../queue/waiting.js'

export interface CampaignParts extends Pick<Services, 'log' | 'onEvents'> {
  /** Message intake (`submit`) and sender lookup. */
  readonly send: SendParts
  readonly findSiteWaits: FindSiteWaits
  /** A campaign's queued mail was held or released. */
  readonly onHolds: () => void
}
