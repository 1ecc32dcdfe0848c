/**
 * Networks of the configuration whose clients may read a page without a credential: `metrics.networks`, `mta.capture_networks`.
 *
 * An address counts for a direct connection only: a reverse proxy forwards requests from anywhere, a foreign Host may come from a web page
 * (DNS rebinding), and another Origin does. Pure.
 */
import { ipVersion, NetworkList } from '../world/net/ip-address.js'

/** The part of a request that decides. */
export interface ClientRequest {
  /** IP address of the client, or of the proxy; empty on the control socket. */
  readonly peer: string
  /** @returns empty if absent */
  readonly header: (name: string) => string
}

export interface NetworkRule {
  readonly networks: readonly string[]
  /** Host names of this machine, besides `localhost` and addresses. */
  readonly hosts: readonly string[]
}

const FORWARDING = ['Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'Via']

export function openNetworkAccess(rule: NetworkRule): (request: ClientRequest) => boolean {
  const networks = new NetworkList(rule.networks)
  const hosts = new Set(['localhost', ...rule.hosts.map(host => host.toLowerCase())])
  return ({ peer, header }) => {
    const host = header('Host')
    const isForwarded = FORWARDING.some(name => header(name) !== '')
    return !isForwarded && isOwnHost(host, hosts) && isOwnPage(header, host) && networks.contains(peer)
  }
}

function isOwnHost(host: string, hosts: ReadonlySet<string>): boolean {
  const name = host.toLowerCase().replace(/:\d+$/, '')
  return hosts.has(name) || ipVersion(name.replace(/^\[|\]$/g, '')) !== 0
}

function isOwnPage(header: ClientRequest['header'], host: string): boolean {
  const origin = header('Origin')
  // `none`: address typed in or opened from a bookmark.
  const isOwnSite = ['', 'none', 'same-origin'].includes(header('Sec-Fetch-Site'))
  return isOwnSite && (origin === '' || origin === `http://${host}`)
}
