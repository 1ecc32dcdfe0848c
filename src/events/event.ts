/**
 * The kinds of events and what each one tells. Appended in the transaction of the change they report; everything
 * above the queue learns of things by reading them.
 */
import type { Cause, Permanence, Scope } from '../mail/outcome.js'

interface EventHead<Kind extends string, Payload> {
  readonly kind: Kind
  readonly workspaceId: string
  readonly messageId: string
  readonly isSandbox: boolean
  /** Ms since epoch UTC. */
  readonly occurredAt: number
  readonly payload: Payload
}

/** Accepted: stored and, unless sandboxed or skipped, queued. */
export type EmailAccepted = EventHead<'email.accepted', { readonly to: string }>
/** First handed to a remote server, whatever that server then said. */
export type EmailSent = EventHead<'email.sent', { readonly to: string }>
/** A remote server took responsibility (2xx after the final dot). */
export type EmailDelivered = EventHead<'email.delivered', { readonly to: string; readonly remoteMta: string }>
export type EmailBounced = EventHead<
  'email.bounced',
  {
    readonly to: string
    readonly bounceType: Permanence
    readonly cause: Cause
    readonly scope: Scope
    readonly subtype: string
    readonly smtpStatus: string
    readonly diagnosticCode: string
    readonly remoteMta?: string
  }
>
/** Could not be built or sent, without any server having refused it. */
export type EmailFailed = EventHead<'email.failed', { readonly to: string; readonly reason: string }>

/** Not mailed: the recipient was suppressed, at acceptance or before hand-off. */
export type EmailSuppressed = EventHead<'email.suppressed', { readonly to: string }>

export type Event = EmailAccepted | EmailSent | EmailDelivered | EmailBounced | EmailFailed | EmailSuppressed
export type EventKind = Event['kind']
