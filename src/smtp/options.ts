/**
 * Options of an SMTP service: name, TLS, AUTH, limits, timeouts and extensions.
 *
 * `msa/` and `inbound/` build them from the configuration. Defaults follow RFC 5321 §4.5.3 where it has a value.
 */
import type { SecureContext } from '../world/net/listen-tcp.js'
import type { ParameterRules } from './mail-command.js'

export interface SmtpServiceOptions {
  readonly hostname: string
  /** Called at each handshake for the current certificate. Required for implicit TLS; other listeners offer STARTTLS if it is present. */
  readonly secureContext?: () => SecureContext
  readonly auth?: {
    /** Whether mail requires an identity, from AUTH or `MailReceiver.connect`. */
    readonly isRequired: boolean
    /** Allows AUTH without TLS; for loopback and trusted networks. */
    readonly isAllowedInClear: boolean
  }
  readonly limits?: Partial<SmtpLimits>
  readonly timeouts?: Partial<SmtpTimeouts>
  readonly capabilities?: Partial<SmtpCapabilities>
  /** Delay before the greeting, ms. A client that sends anything before it is rejected; 0 disables both. */
  readonly greetingDelayMs?: number
}

interface SmtpLimits {
  /** Concurrent sessions on all listeners of the service. */
  readonly sessions: number
  /** Concurrent sessions per IPv4 address or IPv6 /64. */
  readonly sessionsPerAddress: number
  /** New connections per minute from one such address; 0: unlimited. */
  readonly connectionsPerMinute: number
  /** Octets of a message, after dot-unstuffing. */
  readonly messageSize: number
  /** The same for clients recognised by `connect`; defaults to `messageSize`. */
  readonly knownClientMessageSize?: number
  /** Recipients per message (RFC 5321 §4.5.3.1.8: at least 100). */
  readonly recipients: number
  /** Octets of a command line, CRLF included. AUTH lines may have 12,288 (RFC 4954 §4). */
  readonly commandLine: number
  /** Octets of a message line; clients recognised by `connect` have none but that of the message. RFC 5322 §2.1.1 says 998; many legitimate programs send more. */
  readonly textLine: number
  /** Octets of a message header. */
  readonly header: number
  /** Client errors (unknown commands, bad sequences, failed logins) before the session ends with 421. */
  readonly errors: number
  /** Rejected senders and recipients before the session ends with 421. */
  readonly refusals: number
  /** Transactions per session; 0: unlimited. */
  readonly transactions: number
}

interface SmtpTimeouts {
  /** Idle time between commands, ms (RFC 5321 §4.5.3.2.7: at least 5 minutes). */
  readonly commandMs: number
  /** Idle time within a message, ms (RFC 5321 §4.5.3.2.5: 3 minutes). */
  readonly dataBlockMs: number
  /** Maximum session length, ms, even if busy; bounds what a trickling client can hold. */
  readonly sessionMs: number
  /**
   * Under pressure (more than half of the sessions in use), ms since the connection opened: time to authenticate or, if AUTH is not
   * required, to have a message accepted.
   */
  readonly pressureProbationMs: number
  /** Under pressure, idle time of an unauthenticated client between commands or within a message, ms. */
  readonly pressureIdleMs: number
}

interface SmtpCapabilities {
  /** RET, ENVID, NOTIFY and ORCPT (RFC 3461). */
  readonly dsn: boolean
  /** RFC 6531. */
  readonly smtpUtf8: boolean
  /** BDAT (RFC 3030). */
  readonly chunking: boolean
}

const DEFAULT_LIMITS: SmtpLimits = {
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

const DEFAULT_TIMEOUTS: SmtpTimeouts = {
  commandMs: 300_000,
  dataBlockMs: 300_000,
  sessionMs: 7_200_000,
  // A delayed greeting, a handshake and a login or a small message over a slow line take some seconds.
  pressureProbationMs: 30_000,
  pressureIdleMs: 60_000,
}

/** Options with defaults applied, and values derived from them once for all sessions. */
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
  /** Parameters allowed in MAIL and RCPT after HELO and after EHLO. */
  readonly parameters: { readonly helo: ParameterRules; readonly ehlo: ParameterRules }
  ehlo(isSecure: boolean, isLoggedIn: boolean): string
}

/** Rules of sessions in general, and of clients recognised by `connect`. @param canAuthenticate whether the receiver supports AUTH */
export function sessionRules(
  options: SmtpServiceOptions,
  canAuthenticate: boolean,
): { readonly rules: SessionRules; readonly knownClientRules: SessionRules } {
  const { limits } = options
  const rules = rulesOf(options, canAuthenticate)
  const messageSize = limits?.knownClientMessageSize
  if (messageSize === undefined) return { rules, knownClientRules: rules }
  return {
    rules,
    knownClientRules: rulesOf(
      { ...options, limits: { ...limits, messageSize, textLine: messageSize } },
      canAuthenticate,
    ),
  }
}

function rulesOf(options: SmtpServiceOptions, canAuthenticate: boolean): SessionRules {
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
  const plaintext = ehloReply(false, false)
  const plaintextWithAuth = ehloReply(false, true)
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
      return offersAuth ? plaintextWithAuth : plaintext
    },
  }
}

function multiLine(code: number, lines: readonly string[]): string {
  return lines.map((line, at) => `${code}${at === lines.length - 1 ? ' ' : '-'}${line}\r\n`).join('')
}
