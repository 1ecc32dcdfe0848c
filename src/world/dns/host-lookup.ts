/**
 * Resolves host names to addresses: for URLs with our resolver first, then the system's; for operator-named hosts with the system's.
 *
 * Our resolver has timeouts and a cache, while the system's lookup occupies one of Node's few pool threads. The caller applies the
 * egress policy. Standards: RFC 6761 §6.3 (localhost). `HostLookup` rejects with code ENOTFOUND, or EAI_AGAIN on a temporary failure.
 */
import { isLocalhost, LOCALHOST_ADDRESSES } from '../net/egress-policy.js'
import type { HostLookup } from '../net/fetch.js'
import type { DnsAnswer, Resolver } from './dns.js'
import { lookup } from 'node:dns/promises'

export function openHostLookup(
  resolver: Pick<Resolver, 'ipv4' | 'ipv6'>,
  systemLookup: SystemLookup,
): HostLookup {
  return async host => {
    if (isLocalhost(host)) return LOCALHOST_ADDRESSES
    const answers = host.includes('.') ? await Promise.all([resolver.ipv4(host), resolver.ipv6(host)]) : []
    const found = addressesIn(answers)
    if (found.length > 0) return found
    const troubled = answers.find(answer => answer.kind === 'unavailable')
    if (troubled?.kind === 'unavailable') throw failure('EAI_AGAIN', `${host}: ${troubled.reason}`)
    const known = await systemLookup(host)
    if (known.kind === 'found' && known.records.length > 0) return known.records
    throw known.kind === 'unavailable'
      ? failure('EAI_AGAIN', known.reason)
      : failure('ENOTFOUND', `${host} has no address`)
  }
}

function addressesIn(answers: readonly DnsAnswer<string>[]): string[] {
  return answers.flatMap(answer => (answer.kind === 'found' ? answer.records : []))
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

export type SystemLookup = (name: string) => Promise<DnsAnswer<string>>

/**
 * The system's resolver: /etc/hosts, then whatever nsswitch.conf says. TTL is 0 because the system reports none. Never rejects.
 *
 * Only for hosts the operator wrote into a route (`localhost`, a LAN name), never for recipient domains: a local name must not decide
 * where mail goes.
 */
export const systemLookup: SystemLookup = async name => {
  try {
    const found = await lookup(name, { all: true, order: 'verbatim' })
    return { kind: 'found', records: found.map(entry => entry.address), ttlSeconds: 0 }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    return code === 'ENOTFOUND' || code === 'ENODATA'
      ? { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }
      : { kind: 'unavailable', reason: `system look-up of ${name}: ${code}` }
  }
}
