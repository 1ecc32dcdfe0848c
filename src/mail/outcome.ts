/**
 * The outcome of one attempt to deliver one message to one recipient, as a value in DSN terms (RFC 3464 §2.3).
 *
 * Made by the delivery agent (immediate replies) and, for mail that comes back later, by the bounce parser; read by
 * the queue, which turns it into status, trace and events. A failure is never an exception.
 */

/** One SMTP reply as the trace shows it. */
export interface SmtpReply {
  /** Three-digit code (RFC 5321 §4.2). */
  readonly code: number
  /** Enhanced status code such as `5.1.1` (RFC 3463), where the server gave one. */
  readonly enhanced?: string
  /** Text of all lines joined by a space, without codes; at most 1,000 characters are kept. */
  readonly text: string
}

/** Whose fault a refusal is: only `recipient` ever suppresses anybody. */
export const CAUSES = ['recipient', 'reputation', 'content', 'policy', 'transient', 'config'] as const
export type Cause = (typeof CAUSES)[number]
/** What the refusal is about: this address, its whole domain, our sending host, or our sender address. */
export const SCOPES = ['address', 'domain', 'source', 'sender'] as const
export type Scope = (typeof SCOPES)[number]
export const PERMANENCES = ['permanent', 'transient', 'undetermined'] as const
export type Permanence = (typeof PERMANENCES)[number]

/** How far the dialogue had come when it ended. */
export type Stage =
  'resolve' | 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'final_dot'

export interface TlsFacts {
  /** E.g. `TLSv1.3`. */
  readonly version: string
  readonly cipher: string
  /** Whether the certificate chain and name were found right; opportunistic TLS goes on either way. */
  readonly verified: boolean
  /** Why not verified, e.g. `self-signed certificate`. */
  readonly unverifiedReason?: string
}

/**
 * What a connection has to be. `none`: never TLS. `opportunistic`: where offered, whatever the certificate. `require`:
 * always, whatever the certificate. `verify`: always, with a certificate that is right for the host.
 */
export type TlsPolicy = 'none' | 'opportunistic' | 'require' | 'verify'

/** Who asked for the policy: nobody, the operator (a route, a site), or the recipient's domain (RFC 8461). */
export type TlsPolicySource = 'default' | 'route' | 'site' | 'mta-sts'

/** What the MTA-STS policy of the recipient's domain (RFC 8461) had to say of one host. */
export interface StsFacts {
  /** `unavailable`: a policy is announced but could not be had, and mail goes as without one. */
  readonly mode: 'enforce' | 'testing' | 'unavailable'
  /** Absent where it did not come to that: no policy, or no connection. A failure ends the try only under `enforce`. */
  readonly result?: 'passed' | 'failed'
  /** Why it failed or was unavailable. */
  readonly reason?: string
}

/** One host that was tried on the way; an attempt goes through several when the first ones fail. */
export interface HostTried {
  /** MX host or route host, as named in DNS or configuration. */
  readonly host: string
  /** IP address and port dialled; absent when the name had no address. */
  readonly address?: string
  readonly port: number
  readonly tls?: TlsFacts
  /** Absent in attempts recorded by versions that did not know it. */
  readonly tlsPolicy?: TlsPolicy
  readonly tlsPolicySource?: TlsPolicySource
  readonly sts?: StsFacts
  readonly stage: Stage
  readonly reply?: SmtpReply
  /** What broke when there was no reply: `connection timed out`, `certificate expired`, ... */
  readonly error?: string
  /** From dialling (or taking an open connection) to the end of this transaction, ms. */
  readonly durationMs: number
  /** Of that, from the open connection on (MAIL, RCPT, DATA), ms; absent where it did not come to that. */
  readonly transmissionMs?: number
  /** Whether an open connection was used again. */
  readonly reused: boolean
}

/** What every outcome tells. */
interface OutcomeFacts {
  /** Hosts in the order tried. Empty when routing itself failed. */
  readonly tried: readonly HostTried[]
  /** Name of the host whose word decided: not always the last one. Absent where no host was tried. */
  readonly remoteMta?: string
  /** The deciding reply, where there was one. */
  readonly reply?: SmtpReply
  /** One sentence for people: what happened, e.g. `mx1.example.net answered 450 4.2.1 slow down`. */
  readonly summary: string
}

/** Why it was not delivered. */
export interface Classification {
  readonly cause: Cause
  readonly scope: Scope
  readonly permanence: Permanence
  /** Finer than the cause, e.g. `no_such_mailbox`, `mailbox_full`, `greylisted`, `host_unreachable`. */
  readonly subtype: string
}

/** A remote server answered 2xx after the final dot: the message is its responsibility now (RFC 5321 §4.2.5). */
export interface Delivered extends OutcomeFacts {
  readonly kind: 'delivered'
  /** Host name of the server that took it; `capture` for the local inbox. */
  readonly remoteMta: string
  /** The message as it would have left, when the local inbox took it (`mta.capture`). */
  readonly captured?: Buffer
}

/** Not now: to be tried again. */
export interface Deferred extends OutcomeFacts, Classification {
  readonly kind: 'deferred'
  /** How long the server asked us to wait, ms. */
  readonly retryAfterMs?: number
}

/** Refused for good: no further attempt. */
export interface Bounced extends OutcomeFacts, Classification {
  readonly kind: 'bounced'
  /** RFC 3463 code to report: the server's, or the one that fits where it gave none. */
  readonly status: string
}

/** The message could not be built: nothing was ever offered to a server, and trying again cannot help. */
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
