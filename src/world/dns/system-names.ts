/**
 * Names as the operating system knows them: /etc/hosts first, then whatever nsswitch.conf says.
 *
 * Called by the mail router for hosts that an operator wrote into a route (`localhost`, a LAN name), when DNS has
 * nothing; never for domains of recipients, since a local name must not decide where the world's mail goes.
 * Fails: never rejects; a name that the system does not know is `missing`, any other trouble `unavailable`.
 */
import { lookup } from 'node:dns/promises'
import type { DnsAnswer } from './dns.js'

export type SystemLookup = (name: string) => Promise<DnsAnswer<string>>

/** Addresses of both families, in the system's order. The system tells no lifetime, so the TTL is 0. */
export const systemLookup: SystemLookup = async name => {
  try {
    const found = await lookup(name, { all: true, verbatim: true })
    return { kind: 'found', records: found.map(entry => entry.address), ttlSeconds: 0 }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    return code === 'ENOTFOUND' || code === 'ENODATA'
      ? { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 }
      : { kind: 'unavailable', reason: `system look-up of ${name}: ${code}` }
  }
}
