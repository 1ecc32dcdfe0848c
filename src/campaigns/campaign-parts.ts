/** What the routes and the runner of campaigns are handed. Holds no logic. */
import type { SendParts } from '../msa/rest/send-email.js'
import type { Log } from '../world/log.js'

export interface CampaignParts {
  /** The door, and what is known of senders. */
  readonly send: SendParts
  readonly log: Log
  /** The event log has grown. */
  readonly onEvents: () => void
  /** A campaign's queued mail was held or released. */
  readonly onHolds: () => void
}
