import type { SecretBox } from '../accounts/secret-box.js'
import type { Services } from '../db/services.js'
import type { HttpClient } from '../world/net/fetch.js'
import type { EgressPolicy } from '../world/net/egress-policy.js'

/** HTTP client for URLs supplied by users, with the policy on which addresses it may reach. */
export interface OutgoingCalls {
  readonly http: HttpClient
  readonly egress: EgressPolicy
}

export interface WebhookParts extends Pick<Services, 'database' | 'clock' | 'random' | 'log' | 'newId'> {
  readonly box: SecretBox
  /** @param isPermitted whether the workspace allows private addresses; the operator's allowlist still applies */
  readonly outgoingCalls: (isPermitted: boolean) => OutgoingCalls
}
