/**
 * What an SMTP service is told at its start: name, TLS, logins, bounds, time limits, and what it offers.
 *
 * Made by `msa/` and `inbound/` from the configuration. Pure; the defaults are those of RFC 5321 §4.5.3 where it names
 * any, and otherwise large enough for honest clients and small enough for memory.
 */
import type { SecureContext } from '../world/net/listen-tcp.js'
import type { ParameterRules } from './mail-command.js'

export interface SmtpServiceOptions {
  /** What the greeting and EHLO call this server. */
  readonly hostname: string
  /**
   * The certificate, asked for at each handshake. Absent: no TLS; required by listeners with implicit TLS, and what makes
   * the others offer STARTTLS.
   */
  readonly secureContext?: () => SecureContext
  readonly auth?: {
    /** Nobody sends mail without an identity, be it by AUTH or by `MailReceiver.connect`. */
    readonly isRequired: boolean
    /** Takes logins without TLS; for loopback and trusted networks. */
    readonly isAllowedInClear: boolean
  }
  readonly limits?: Partial<SmtpLimits>
  readonly timeouts?: Partial<SmtpTimeouts>
  readonly capabilities?: Partial<SmtpCapabilities>
  /** How long a client is kept waiting for the greeting, ms. Who speaks before it is refused; 0 neither waits nor looks. */
  readonly greetingDelayMs?: number
}

export interface SmtpLimits {
  /** Sessions at a time, all listeners of the service together. */
  readonly sessions: number
  /** Of which from one IPv4 address or one /64 of IPv6. */
  readonly sessionsPerAddress: number
  /** New connections in a minute from one such address; 0 = any number. */
  readonly connectionsPerMinute: number
  /** Octets of a message, dot-stuffing undone. */
  readonly messageSize: number
  /** Recipients taken for one message (RFC 5321 §4.5.3.1.8: at least 100). */
  readonly recipients: number
  /** Octets of a command line with its CRLF; AUTH and its responses have 12,288 (RFC 4954 §4). */
  readonly commandLine: number
  /** Octets of a line of a message. RFC 5322 §2.1.1 says 998; many programs send more and mean no harm. */
  readonly textLine: number
  /** Octets of a message's header. */
  readonly header: number
  /** Faults of the client (unknown commands, wrong order, failed logins) after which the session ends with 421. */
  readonly errors: number
  /** Senders and recipients that the receiver refused, after which the session ends with 421. */
  readonly refusals: number
  /** Messages begun in one session; 0 = any number. */
  readonly transactions: number
}

export interface SmtpTimeouts {
  /** Silence between commands, ms (RFC 5321 §4.5.3.2.7: at least 5 minutes). */
  readonly commandMs: number
  /** Silence within a message, ms (RFC 5321 §4.5.3.2.5: 3 minutes). */
  readonly dataBlockMs: number
  /** A whole session, ms, however busy; what a client that trickles can hold at most. */
  readonly sessionMs: number
  /**
   * Where more than half of the sessions are taken, ms from the connection: until the client has logged in, where logins are
   * required, or else has had its first message taken.
   */
  readonly unprovenMs: number
  /** The same, for silence between commands and within a message, of whoever has not logged in. */
  readonly pressedSilenceMs: number
}

export interface SmtpCapabilities {
  /** Takes RET, ENVID, NOTIFY and ORCPT (RFC 3461). */
  readonly dsn: boolean
  /** RFC 6531. */
  readonly smtpUtf8: boolean
  /** BDAT (RFC 3030). */
  readonly chunking: boolean
}

export const DEFAULT_LIMITS: SmtpLimits = {
  sessions: 1_000,
  sessionsPerAddress: 100,
  connectionsPerMinute: 0,
  messageSize: 50_000_000,
  recipients: 1_000,
  commandLine: 2_048,
  textLine: 65_536,
  header: 262_144,
  errors: 20,
  refusals: 200,
  transactions: 1_000,
}

export const DEFAULT_TIMEOUTS: SmtpTimeouts = {
  commandMs: 300_000,
  dataBlockMs: 300_000,
  sessionMs: 7_200_000,
  // A greeting's delay, a handshake and a login or a small message over a slow line take some seconds.
  unprovenMs: 30_000,
  pressedSilenceMs: 60_000,
}

/** The options with every gap filled, and what follows from them computed once for all sessions. */
export interface SessionRules {
  readonly hostname: string
  readonly secureContext: (() => SecureContext) | undefined
  readonly hasAuth: boolean
  readonly isAuthRequired: boolean
  readonly isAuthAllowedInClear: boolean
  readonly greetingDelayMs: number
  readonly limits: SmtpLimits
  readonly timeouts: SmtpTimeouts
  readonly capabilities: SmtpCapabilities
  readonly greeting: string
  /** What MAIL and RCPT may say after HELO and after EHLO. */
  readonly parameters: { readonly helo: ParameterRules; readonly ehlo: ParameterRules }
  /** The reply to EHLO, without and with TLS, before and after a login. */
  ehlo(isSecure: boolean, isLoggedIn: boolean): string
}

/** @param canAuthenticate whether the receiver takes logins */
export function sessionRules(options: SmtpServiceOptions, canAuthenticate: boolean): SessionRules {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const capabilities = { dsn: true, smtpUtf8: true, chunking: true, ...options.capabilities }
  const isAuthAllowedInClear = options.auth?.isAllowedInClear ?? false
  const hasAuth = canAuthenticate && options.auth !== undefined
  const ehloReply = (isSecure: boolean, offersAuth: boolean) =>
    multiLine(250, [
      options.hostname,
      'PIPELINING',
      `SIZE ${limits.messageSize}`,
      ...(options.secureContext && !isSecure ? ['STARTTLS'] : []),
      ...(offersAuth ? ['AUTH PLAIN LOGIN'] : []),
      'ENHANCEDSTATUSCODES',
      '8BITMIME',
      ...(capabilities.dsn ? ['DSN'] : []),
      ...(capabilities.smtpUtf8 ? ['SMTPUTF8'] : []),
      ...(capabilities.chunking ? ['CHUNKING'] : []),
    ])
  const parameters: ParameterRules = {
    isEsmtp: true,
    dsn: capabilities.dsn,
    smtpUtf8: capabilities.smtpUtf8,
    auth: hasAuth,
    messageSize: limits.messageSize,
  }
  const inClear = ehloReply(false, false)
  const inClearWithAuth = ehloReply(false, true)
  const secure = ehloReply(true, false)
  const secureWithAuth = ehloReply(true, true)
  return {
    hostname: options.hostname,
    secureContext: options.secureContext,
    hasAuth,
    isAuthRequired: options.auth?.isRequired ?? false,
    isAuthAllowedInClear,
    greetingDelayMs: options.greetingDelayMs ?? 0,
    limits,
    timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    capabilities,
    greeting: `220 ${options.hostname} ESMTP Postroad\r\n`,
    parameters: { helo: { ...parameters, isEsmtp: false }, ehlo: parameters },
    ehlo(isSecure, isLoggedIn) {
      const offersAuth = hasAuth && !isLoggedIn && (isSecure || isAuthAllowedInClear)
      if (isSecure) return offersAuth ? secureWithAuth : secure
      return offersAuth ? inClearWithAuth : inClear
    },
  }
}

function multiLine(code: number, lines: readonly string[]): string {
  return lines.map((line, at) => `${code}${at === lines.length - 1 ? ' ' : '-'}${line}\r\n`).join('')
}
