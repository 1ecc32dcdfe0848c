/**
 * The kinds of events and what each one tells. Appended in the transaction of the change they report; everything
 * above the queue learns of things by reading them.
 *
 * What happens to mail stands here, since all floors above tell and hear of it. A resource declares its own kinds beside the
 * code that appends them, with
 *
 *   declare module '../events/event.js' { interface ContactEvents { 'product.viewed': ProductViewed } }
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

/** In every event about a message: who it is for, and what the mail is part of. What does not apply is left out. */
export interface AboutMessage {
  readonly to: string
  /** Mail that an unsubscribe stops; all other is transactional. */
  readonly isMarketing?: boolean
  readonly campaignId?: string
  readonly automationId?: string
  readonly batchId?: string
  readonly templateId?: string
  readonly contactId?: string
  /** Those that its sender gave it. */
  readonly tags?: readonly string[]
  /** Domain of its From address, as A-labels in lower case. */
  readonly senderDomain?: string
}

/** Accepted: stored and, unless sandboxed or skipped, queued. */
export type EmailAccepted = EventHead<'email.accepted', AboutMessage>
/** First handed to a remote server, whatever that server then said. */
export type EmailSent = EventHead<'email.sent', AboutMessage>
/** A remote server took responsibility (2xx after the final dot). */
export type EmailDelivered = EventHead<
  'email.delivered',
  AboutMessage & {
    readonly remoteMta: string
    /** What the submitter asked to be told, as in NOTIFY (RFC 3461 §4.1). */
    readonly notify?: string
  }
>
export type EmailBounced = EventHead<
  'email.bounced',
  AboutMessage & {
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
export type EmailFailed = EventHead<'email.failed', AboutMessage & { readonly reason: string }>

/** Not mailed: the recipient was suppressed, at acceptance or before hand-off. */
export type EmailSuppressed = EventHead<'email.suppressed', AboutMessage>

/** The recipient, or the provider for them, called it spam or worse (RFC 5965 §7.3). */
export type EmailComplained = EventHead<'email.complained', AboutMessage & { readonly feedbackType: string }>

/**
 * The recipient wants no more of what is not asked for: by the link or address of List-Unsubscribe (RFC 2369, RFC 8058)
 * or by an opt-out report. There may be no contact of that address.
 */
export type EmailUnsubscribed = EventHead<
  'email.unsubscribed',
  AboutMessage & { readonly source: 'one_click' | 'preferences' }
>

/** Who or what asked for a tracked picture or link. */
interface Visit extends AboutMessage {
  readonly ip: string
  readonly userAgent: string
  /** A known scanner or prefetcher: it moves neither status nor automations, and is not counted. */
  readonly isBot: boolean
}
export type EmailOpened = EventHead<
  'email.opened',
  Visit & {
    /** Concluded from a click: no pixel was fetched. */
    readonly isInferred?: boolean
  }
>
export type EmailClicked = EventHead<'email.clicked', Visit & { readonly url: string }>

/** What a contact did elsewhere. The message is the one that it is put down to, if any. */
export interface ContactEventOf<Kind extends string, Payload> extends Omit<
  EventHead<Kind, Payload>,
  'messageId'
> {
  readonly messageId: string | null
}

/** About one message. */
export type Event =
  | EmailAccepted
  | EmailSent
  | EmailDelivered
  | EmailBounced
  | EmailFailed
  | EmailSuppressed
  | EmailComplained
  | EmailUnsubscribed
  | EmailOpened
  | EmailClicked

/** About a contact, whether or not a message led to it: by kind, filled by resources. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface ContactEvents {}

export type AnyEvent = Event | ContactEvents[keyof ContactEvents]
export type EventKind = AnyEvent['kind']
