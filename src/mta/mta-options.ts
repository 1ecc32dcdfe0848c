/** Options for outgoing mail, as plain values; names match the `[mta]` section of the configuration. */

import type { TlsPolicy } from '../mail/outcome.js'

/** Time limits for each step of a session, ms. The comments give the minimum of RFC 5321 §4.5.3.2. */
export interface Timeouts {
  /**
   * Total for all hosts and addresses of one attempt, until one accepts the envelope. Without it, ten addresses that never send a greeting
   * would hold a connection for an hour.
   */
  readonly attemptMs: number
  readonly connectMs: number
  /** TLS handshake; defaults to `connectMs`. */
  readonly starttlsMs?: number
  /** Initial 220: 5 minutes. */
  readonly greetingMs: number
  /** EHLO, HELO, STARTTLS, AUTH and RSET; defaults to `mailMs`. */
  readonly ehloMs?: number
  /** MAIL: 5 minutes. */
  readonly mailMs: number
  /** RCPT: 5 minutes. */
  readonly rcptMs: number
  /** 354 after DATA: 2 minutes. */
  readonly dataMs: number
  /** Writing one block of the message: 3 minutes. */
  readonly blockMs: number
  /** Reply to the final dot: 10 minutes. A shorter limit causes duplicates. */
  readonly finalDotMs: number
  readonly quitMs: number
}

/** One `[[mta.routes]]` entry. */
export interface Route {
  /** `example.com`, `*.example.com` (subdomains only) or `*`; case-insensitive. */
  readonly domain: string
  readonly host: string
  /** 465 means implicit TLS (RFC 8314 §3.3), unless `tls` is `none`. */
  readonly port: number
  readonly tls: TlsPolicy
  /** With a password: AUTH (RFC 4954). Empty or absent: no AUTH. */
  readonly username?: string
  readonly password?: string
  /** Whether the password may be sent over unverified TLS, or, with `tls = "none"`, in plaintext. */
  readonly allowUnverifiedAuth?: boolean
}

/** TLS requirement of one `[[mta.sites]]` entry. Has either `mx` or `domain`, with the patterns of a route. */
export interface TlsSite {
  readonly mx: string | undefined
  readonly domain: string | undefined
  /** `opportunistic` is the default and requires nothing. */
  readonly tls: Exclude<TlsPolicy, 'none'>
}

export interface PoolLimits {
  /** Messages sent over one connection before it is closed. */
  readonly messagesPerConnection: number
  /** How long an idle connection is kept, ms. Servers object to longer. */
  readonly idleMs: number
  /** Total number of idle connections; beyond it the oldest is closed. */
  readonly idleConnections: number
}

export const DEFAULT_POOL_LIMITS: PoolLimits = {
  messagesPerConnection: 100,
  idleMs: 5_000,
  idleConnections: 200,
}

/**
 * Matches `example.com`, `*.example.com` (subdomains at any depth, not the domain itself) or `*`. MTA-STS patterns differ: there the star
 * stands for exactly one label.
 *
 * @param name A-labels, lower case
 */
export function matchesPattern(pattern: string, name: string): boolean {
  const wanted = pattern.toLowerCase()
  if (wanted === '*') return true
  return wanted.startsWith('*.') ? name.endsWith(wanted.slice(1)) : name === wanted
}
