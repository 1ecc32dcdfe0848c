/**
 * Access to metrics: trusted networks (by default this machine only), or the token from anywhere.
 *
 * Evaluated at each scrape. An address is trusted only for a direct connection: a reverse proxy forwards requests from anywhere
 * (Forwarded fields), and a foreign Host may come from a web page in a browser (DNS rebinding). Pure. Fails: never.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { ipVersion, NetworkList } from '../world/net/ip-address.js'

export interface MetricsRequest {
  /** IP address of the client, or of the proxy. */
  readonly peer: string
  /** @returns empty if absent */
  readonly header: (name: string) => string
}

export interface MetricsAccess {
  readonly networks: readonly string[]
  /** Empty: no token. */
  readonly token: string
  /** Host names under which this machine may be scraped. */
  readonly hosts: readonly string[]
}

export type Verdict = 'granted' | 'wrong token' | 'unknown'

export function openMetricsAccess(rule: MetricsAccess): (request: MetricsRequest) => Verdict {
  const networks = new NetworkList(rule.networks)
  const hosts = new Set(['localhost', ...rule.hosts.map(host => host.toLowerCase())])
  return ({ peer, header }) => {
    const authorization = header('Authorization')
    if (rule.token !== '' && authorization !== '')
      return isSameSecret(authorization, `Bearer ${rule.token}`) ? 'granted' : 'wrong token'
    const isForwarded = FORWARDING.some(name => header(name) !== '')
    const isStraight = !isForwarded && header('Origin') === '' && isOwnHost(header('Host'), hosts)
    return isStraight && networks.contains(peer) ? 'granted' : 'unknown'
  }
}

const FORWARDING = ['Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'Via']

function isOwnHost(host: string, hosts: ReadonlySet<string>): boolean {
  const name = host.toLowerCase().replace(/:\d+$/, '')
  return hosts.has(name) || ipVersion(name.replace(/^\[|\]$/g, '')) !== 0
}

/** Constant time. */
function isSameSecret(given: string, secret: string): boolean {
  const [one, other] = [given, secret].map(text => createHash('sha256').update(text).digest())
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}
