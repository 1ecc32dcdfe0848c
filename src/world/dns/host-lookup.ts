/**
 * Addresses of the host in a URL: by our own resolver, and for names that DNS has nothing for by the system (/etc/hosts).
 *
 * Handed to the HTTP client for URLs that strangers give, so that their names wait for name servers within the resolver's time and
 * cache, and never for the few threads that the system's own look-up has. What may be dialled is judged by whoever dials.
 * Standards: RFC 6761 §6.3 (localhost is this machine, whatever a name server says).
 * Fails: rejects with code ENOTFOUND, or EAI_AGAIN where nobody could tell.
 */
import { isLocalhost, LOCALHOST_ADDRESSES } from '../net/egress-policy.js'
import type { DnsAnswer, Resolver } from './dns.js'
import type { SystemLookup } from './system-names.js'

/** @param host a name as a URL has it, in ASCII, without a dot at the end */
export type HostLookup = (host: string) => Promise<readonly string[]>

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
