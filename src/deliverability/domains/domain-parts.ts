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
  /** A resolver without a cache, so that a record just published is found. */
  readonly freshResolver: () => Resolver
  readonly dkimZone: string
  /** Address for DMARC reports; this server accepts mail for it. */
  readonly reportAddress: string
  readonly seal: KeyCipher
}
