/**
 * DNS as a sandbox's domain sees it: every record that it needs stands there as asked for.
 *
 * Used wherever a domain's records are looked up (verification, rotation), so that a sandbox goes the ways of a live domain
 * and nobody is asked. Only of the domain itself; any other name does not exist. Fails: never.
 */
import type { DnsAnswer, Resolver } from '../../world/dns/dns.js'
import { dnsRecords } from './dns-records.js'
import type { DomainParts } from './domain-parts.js'
import type { Domain } from './domain-store.js'

/** The resolver to ask about this domain's records. */
export function resolverFor(
  domain: Domain,
  { dkimZone, freshResolver }: Pick<DomainParts, 'dkimZone' | 'freshResolver'>,
): Resolver {
  return domain.isSandbox ? publishedAsAsked(domain, dkimZone) : freshResolver()
}

const MISSING: DnsAnswer<never> = { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }

function publishedAsAsked(domain: Domain, dkimZone: string): Resolver {
  const records = dnsRecords(domain, dkimZone)
  const find = async (type: 'CNAME' | 'TXT', name: string): Promise<DnsAnswer<string>> => {
    const found = records.filter(record => record.type === type && record.name === name)
    return found.length === 0
      ? MISSING
      : { kind: 'found', records: found.map(({ value }) => value), ttlSeconds: 0 }
  }
  return {
    mx: async () => MISSING,
    ipv4: async () => MISSING,
    ipv6: async () => MISSING,
    txt: name => find('TXT', name),
    cname: name => find('CNAME', name),
    ns: async () => MISSING,
    ptr: async () => MISSING,
  }
}
