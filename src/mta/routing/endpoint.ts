/**
 * Where to deliver: one address of one host, with what has to be true of the connection.
 *
 * Made by `route.ts`, used by the client and the pool. Pure.
 */
import type { TlsPolicy, TlsPolicySource } from '../../mail/outcome.js'
import type { Named } from '../../world/net/reach.js'
import type { StsDemand } from './tls-demand.js'

export interface Endpoint extends Named {
  /** MX host or route host, as named in DNS or configuration; certificates are checked against it. */
  readonly host: string
  /** IP address. */
  readonly address: string
  readonly port: number
  /** Opportunistic TLS goes on in clear where it breaks (RFC 7435); beyond that the mail waits. */
  readonly tls: TlsPolicy
  readonly tlsSource: TlsPolicySource
  /** What the MTA-STS policy of the recipient's domain says of the host; absent where it has none. */
  readonly sts?: StsDemand
  /** TLS from the first octet (RFC 8314 §3), without STARTTLS. */
  readonly implicitTls: boolean
  readonly auth?: Credentials
  /** Addresses to dial from, where the sender has its own; else those of all. */
  readonly sources?: readonly string[]
}

export interface Credentials {
  readonly username: string
  readonly password: string
  /** Whether it may be said to a host whose certificate was not found right, and in clear where the route has no TLS. */
  readonly isForUnverified: boolean
}

const keys = new WeakMap<Endpoint, string>()

/** Endpoints with the same key can share connections: what was demanded of TLS counts, not by whom. */
export function endpointKey(endpoint: Endpoint): string {
  const known = keys.get(endpoint)
  if (known !== undefined) return known
  const { host, address, port, tls, implicitTls, auth, sources } = endpoint
  const key = JSON.stringify([host, address, port, tls, implicitTls, auth, sources])
  keys.set(endpoint, key)
  return key
}
