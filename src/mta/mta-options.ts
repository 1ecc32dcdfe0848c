/**
 * What the operator can set about outgoing mail, as plain values; names match the `[mta]` section of the configuration.
 *
 * Read by everything in `mta/`. Holds no logic.
 */

import type { TlsPolicy } from '../mail/outcome.js'

/** How long each step of a session may take, ms. RFC 5321 §4.5.3.2 gives the lower bounds in the comments. */
export interface Timeouts {
  /**
   * All hosts and addresses of one attempt together, until one of them has taken the envelope. RFC 5321 §4.5.3.2 bounds each
   * step only, and ten addresses that greet nobody would hold a connection for an hour.
   */
  readonly attemptMs: number
  /** Until TCP stands. */
  readonly connectMs: number
  /** Until TLS stands; `connectMs` where absent. */
  readonly starttlsMs?: number
  /** Initial 220: 5 minutes. */
  readonly greetingMs: number
  /** EHLO, HELO, STARTTLS, AUTH and RSET; `mailMs` where absent. */
  readonly ehloMs?: number
  /** MAIL: 5 minutes. */
  readonly mailMs: number
  /** RCPT: 5 minutes. */
  readonly rcptMs: number
  /** 354 after DATA: 2 minutes. */
  readonly dataMs: number
  /** Each block of the message to leave our buffer: 3 minutes. */
  readonly blockMs: number
  /** Reply to the final dot: 10 minutes. Shorter ones make duplicates. */
  readonly finalDotMs: number
  /** Reply to QUIT; nothing depends on it. */
  readonly quitMs: number
}

/** One `[[mta.routes]]` entry. */
export interface Route {
  /** `example.com`, `*.example.com` (subdomains only) or `*`; compared without case. */
  readonly domain: string
  /** Name or IP address. */
  readonly host: string
  /** 465 means TLS from the first octet (RFC 8314 §3.3), unless `tls` is `none`. */
  readonly port: number
  readonly tls: TlsPolicy
  /** With a password: AUTH (RFC 4954). Empty or absent: none. */
  readonly username?: string
  readonly password?: string
  /** Whether the password may cross TLS that verifies nothing, or, with `tls` none, no TLS at all. */
  readonly isPasswordForUnverified?: boolean
}

/** What one `[[mta.sites]]` entry asks of connections to MX hosts. It has either `mx` or `domain`, patterns like a route's. */
export interface TlsSite {
  /** Of the MX host. */
  readonly mx: string | undefined
  /** Of the recipient's domain. */
  readonly domain: string | undefined
  /** Beyond `opportunistic`, which asks for nothing. */
  readonly tls: Exclude<TlsPolicy, 'none'>
}

/** How open connections are kept for the next message. */
export interface PoolLimits {
  /** Messages over one connection before it is closed. */
  readonly messagesPerConnection: number
  /** How long a connection may wait for its next message, ms; servers resent more. */
  readonly idleMs: number
  /** Idle connections in all; beyond it the one waiting longest is closed. */
  readonly idleConnections: number
}

export const DEFAULT_POOL_LIMITS: PoolLimits = {
  messagesPerConnection: 100,
  idleMs: 5_000,
  idleConnections: 200,
}
