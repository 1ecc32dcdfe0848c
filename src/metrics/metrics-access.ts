/**
 * Who may read the metrics: networks that the operator trusts, and whoever has the token; by default this machine alone.
 *
 * Called by the route for each scrape. An address counts only where the request came from it straight: what a reverse proxy hands on
 * (Forwarded fields) comes from anybody, and what names another host than this one may come from a page in somebody's browser (DNS
 * rebinding). The token counts from everywhere. Pure. Fails: never.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { ipVersion, NetworkList } from '../world/net/ip-address.js'

export interface MetricsRequest {
  /** IP address of the client, or of the proxy. */
  readonly peer: string
  /** @returns empty where there is none */
  readonly header: (name: string) => string
}

export interface MetricsAccess {
  readonly networks: readonly string[]
  /** Empty: none. */
  readonly token: string
  /** Names of this machine, by which a scrape may ask. */
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

/** In the same time whatever was sent. */
function isSameSecret(given: string, secret: string): boolean {
  const [one, other] = [given, secret].map(text => createHash('sha256').update(text).digest())
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}
