/**
 * One address of one host to deliver to, and the requirements for the connection.
 */
import type { TlsPolicy, TlsPolicySource } from '../../mail/outcome.js'
import type { Named } from '../../world/net/egress-policy.js'
import type { StsRequirement } from './tls-requirement.js'

export interface Endpoint extends Named {
  /** MX or route host name; certificates are checked against it. */
  readonly host: string
  /** IP address. */
  readonly address: string
  readonly port: number
  /** Opportunistic TLS falls back to plaintext (RFC 7435); with any stricter policy the mail waits. */
  readonly tls: TlsPolicy
  readonly tlsSource: TlsPolicySource
  /** From the MTA-STS policy of the recipient's domain, if it has one. */
  readonly sts?: StsRequirement
  /** Implicit TLS (RFC 8314 §3), without STARTTLS. */
  readonly implicitTls: boolean
  readonly auth?: Credentials
  /** Source addresses for this sender; defaults to those of the server. */
  readonly sources?: readonly string[]
}

export interface Credentials {
  readonly username: string
  readonly password: string
  /**
   * Whether the password may be sent to a host with an unverified certificate, or in plaintext if the route has no
   * TLS.
   */
  readonly allowUnverified: boolean
}

const keys = new WeakMap<Endpoint, string>()

/** Endpoints with equal keys can share connections. The key includes the TLS requirement, not its source. */
export function endpointKey(endpoint: Endpoint): string {
  const known = keys.get(endpoint)
  if (known !== undefined) return known
  const { host, address, port, tls, implicitTls, auth, sources } = endpoint
  const key = JSON.stringify([host, address, port, tls, implicitTls, auth, sources])
  keys.set(endpoint, key)
  return key
}
