import type { SecretBox } from '../accounts/secret-box.js'
import type { NewId } from '../core/ids.js'
import type { Database } from '../db/database.js'
import type { HttpClient } from '../world/net/fetch.js'
import type { EgressPolicy } from '../world/net/egress-policy.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import type { Clock } from '../world/time/clock.js'

/** HTTP client for URLs supplied by users, with the policy on which addresses it may reach. */
export interface OutgoingCalls {
  readonly http: HttpClient
  readonly egress: EgressPolicy
}

export interface WebhookParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly newId: NewId
  readonly box: SecretBox
  /** @param isPermitted whether the workspace allows private addresses; the operator's allowlist still applies */
  readonly outgoingCalls: (isPermitted: boolean) => OutgoingCalls
}
