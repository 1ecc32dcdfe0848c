/** What webhooks take of the composition root. Holds no logic. */
import type { SecretBox } from '../accounts/secret-box.js'
import type { NewId } from '../core/ids.js'
import type { Database } from '../db/database.js'
import type { HttpClient } from '../world/net/fetch.js'
import type { EgressPolicy } from '../world/net/egress-policy.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import type { Clock } from '../world/time/clock.js'

/** A way to call what strangers name, and where it leads at all. */
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
  /** @param isPermitted whether the workspace's settings allow private addresses; the operator's list decides what that comes to */
  readonly outgoingCalls: (isPermitted: boolean) => OutgoingCalls
}
