/** What the services of sending domains take from the composition root. */
import type { NewId } from '../../core/ids.js'
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { Random } from '../../world/random.js'
import type { KeyCipher } from './domain-store.js'

export interface DomainParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly newId: NewId
  /** A resolver that remembers nothing: who has just published a record does not want yesterday's answer. */
  readonly freshResolver: () => Resolver
  /** `dns.dkim_zone`. */
  readonly dkimZone: string
  /** Where receivers are asked to send DMARC reports: an address this appliance accepts mail for. */
  readonly reportAddress: string
  /** What private keys go through on their way into the database. */
  readonly seal: KeyCipher
  /** Called once it is committed that a domain was added, verified, lost or removed: senders are remembered for a moment. */
  readonly onChanged?: () => void
}
