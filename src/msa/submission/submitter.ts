/** Who submits mail in an SMTP session; set at login or by trusted network. */
import type { Principal } from '../../http/principal.js'

export interface Submitter {
  readonly principal: Principal
  /** Trusted by its network, without a login. */
  readonly isTrusted: boolean
}
