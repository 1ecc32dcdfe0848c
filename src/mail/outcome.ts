/**
 * The outcome of one attempt to deliver one message to one recipient, in DSN terms (RFC 3464 §2.3).
 *
 * Produced by the delivery agent and, for later bounces, by the bounce parser. The queue turns it into status, trace and events. Delivery
 * failures are values, never exceptions.
 */

export interface SmtpReply {
  readonly code: number
  /** Enhanced status code such as `5.1.1` (RFC 3463), if the server sent one. */
  readonly enhanced?: string
  /** All lines joined by spaces, without codes; at most 1,000 characters. */
  readonly text: string
}

/** Causes of a rejection. Only `recipient` ever leads to a suppression. */
export const CAUSES = ['recipient', 'reputation', 'content', 'policy', 'transient', 'config'] as const
export type Cause = (typeof CAUSES)[number]
/** Scope of a rejection: the address, its whole domain, our sending host, or our sender address. */
export const SCOPES = ['address', 'domain', 'source', 'sender'] as const
export type Scope = (typeof SCOPES)[number]
export const PERMANENCES = ['permanent', 'transient', 'undetermined'] as const
export type Permanence = (typeof PERMANENCES)[number]

/** The stage of the session at which it ended. */
export type Stage =
  | 'resolve'
  | 'connect'
  | 'greeting'
  | 'ehlo'
  | 'starttls'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'final_dot'

export interface TlsFacts {
  /** E.g. `TLSv1.3`. */
  readonly version: string
  readonly cipher: string
  /** Whether certificate chain and name were valid; opportunistic TLS continues either way. */
  readonly verified: boolean
  /** E.g. `self-signed certificate`. */
  readonly unverifiedReason?: string
}

/**
 * `none`: never TLS. `opportunistic`: if offered, with any certificate. `require`: always, with any certificate. `verify`: always, with a
 * certificate valid for the host.
 */
export type TlsPolicy = 'none' | 'opportunistic' | 'require' | 'verify'

/** Origin of the policy: the default, the operator (a route or site), or the recipient's domain (RFC 8461). */
export type TlsPolicySource = 'default' | 'route' | 'site' | 'mta-sts'

/** Result of the recipient domain's MTA-STS policy (RFC 8461) for one host. */
export interface StsFacts {
  /** `unavailable`: a policy is announced but could not be fetched; mail is delivered as if there were none. */
  readonly mode: 'enforce' | 'testing' | 'unavailable'
  /** Absent if there was no policy or no connection. A failure ends the try only under `enforce`. */
  readonly result?: 'passed' | 'failed'
  /** Why it failed or was unavailable. */
  readonly reason?: string
}

/** One host that was tried; an attempt may try several. */
export interface HostTried {
  readonly host: string
  /** IP address dialled; absent if the name had none. */
  readonly address?: string
  readonly port: number
  readonly tls?: TlsFacts
  /** Absent in attempts recorded before this field existed. */
  readonly tlsPolicy?: TlsPolicy
  readonly tlsPolicySource?: TlsPolicySource
  readonly sts?: StsFacts
  readonly stage: Stage
  readonly reply?: SmtpReply
  /** Error if there was no reply: `connection timed out`, `certificate expired`, ... */
  readonly error?: string
  /** From dialling (or reusing a connection) to the end of the transaction, ms. */
  readonly durationMs: number
  /** The part of it after the session was open (MAIL, RCPT, DATA), ms; absent if it never was. */
  readonly transmissionMs?: number
  readonly reused: boolean
}

interface OutcomeFacts {
  /** In the order tried; empty if routing failed. */
  readonly tried: readonly HostTried[]
  /** Host whose result decided, not necessarily the last; absent if none was tried. */
  readonly remoteMta?: string
  readonly reply?: SmtpReply
  /** One sentence for people, e.g. `mx1.example.net answered 450 4.2.1 slow down`. */
  readonly summary: string
}

export interface Classification {
  readonly cause: Cause
  readonly scope: Scope
  readonly permanence: Permanence
  /** Finer than the cause, e.g. `no_such_mailbox`, `mailbox_full`, `greylisted`, `host_unreachable`. */
  readonly subtype: string
}

/** A server replied 2xx to the final dot and is now responsible for the message (RFC 5321 §4.2.5). */
export interface Delivered extends OutcomeFacts {
  readonly kind: 'delivered'
  /** Host name of the server; `capture` for the local inbox. */
  readonly remoteMta: string
  /** The rendered message, if delivered to the local inbox (`mta.capture`). */
  readonly captured?: Buffer
}

/** Transient failure: will be retried. */
export interface Deferred extends OutcomeFacts, Classification {
  readonly kind: 'deferred'
  /** Delay requested by the server, ms. */
  readonly retryAfterMs?: number
}

/** Permanent failure: no further attempt. */
export interface Bounced extends OutcomeFacts, Classification {
  readonly kind: 'bounced'
  /** RFC 3463 code to report: the server's, or a fitting one if it sent none. */
  readonly status: string
}

/** The message could not be built. No server was contacted, and a retry would not help. */
export interface Unsendable extends OutcomeFacts {
  readonly kind: 'unsendable'
}

export type Outcome = Delivered | Deferred | Bounced | Unsendable

export const OUTCOME_KINDS = [
  'delivered',
  'deferred',
  'bounced',
  'unsendable',
] as const satisfies Outcome['kind'][]

/** The reply on one line: `550 5.1.1 no such user`. */
export function formatReply({ code, enhanced, text }: SmtpReply): string {
  return [code, enhanced, text].filter(part => part !== undefined && part !== '').join(' ')
}
