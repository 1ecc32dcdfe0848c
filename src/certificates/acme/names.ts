/** The names of an ACME certificate: those of every node that clients connect to, and the host of `public_url`. Pure. */
import type { Role } from '../../cluster/roles.js'
import type { Config } from '../../config/config.js'
import { ipVersion } from '../../world/net/ip-address.js'

/** A node that shares the database. */
export interface NamedNode {
  /** Host name. */
  readonly name: string
  readonly roles: readonly Role[]
}

/** In these roles a node shows its certificate. */
const SHOWING: readonly Role[] = ['http', 'submission', 'inbound']

/** @param nodes that run; may include this one */
export function acmeNames(
  { hostname, publicUrl }: Pick<Config, 'hostname' | 'publicUrl'>,
  nodes: readonly NamedNode[] = [],
): string[] {
  const { protocol, hostname: host } = new URL(publicUrl)
  const name = host.toLowerCase().replace(/\.$/, '')
  const isName = protocol === 'https:' && ipVersion(name) === 0 && name.includes('.') && !name.startsWith('[')
  const shown = nodes
    .filter(({ roles }) => roles.some(role => SHOWING.includes(role)))
    .map(node => node.name.toLowerCase())
    .filter(other => other.includes('.'))
    .sort()
  const own = hostname.toLowerCase()
  const isOwnShown = shown.length === 0 || shown.includes(own)
  return [...new Set([...(isOwnShown ? [own] : []), ...(isName ? [name] : []), ...shown])]
}
