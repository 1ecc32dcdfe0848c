import type { Services } from '../../db/services.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { KeyCipher } from './domain-store.js'

export interface DomainParts extends Pick<Services, 'database' | 'clock' | 'random' | 'newId'> {
  /** A resolver without a cache, so that a record just published is found. */
  readonly freshResolver: () => Resolver
  readonly dkimZone: string
  /** Address for DMARC reports; this server accepts mail for it. */
  readonly reportAddress: string
  readonly seal: KeyCipher
  /** The appliance's own names, which no workspace takes; default: none. */
  readonly ownNames?: OwnNames
}

/** In lower case. */
export interface OwnNames {
  /** The host and its return path; names below them are reserved too. */
  readonly hosts: readonly string[]
  /** Domain of the shared sending address; names below it may be customers'. */
  readonly shared: string | undefined
}

export function isOwnName({ hosts, shared }: OwnNames, domain: string): boolean {
  return domain === shared || hosts.some(host => domain === host || domain.endsWith(`.${host}`))
}
