/** Whose SMTP session it is: what the receiver of submissions finds out at a login, and what each message is judged by. */
import type { Principal } from '../../http/principal.js'

export interface Submitter {
  readonly principal: Principal
  /** By its network; nobody has logged in. */
  readonly isTrusted: boolean
}
