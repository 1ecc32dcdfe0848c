/**
 * All event kinds and their payloads. Events are appended in the transaction of the change they report.
 *
 * Kinds about mail are declared here because all higher layers produce or consume them. A resource declares its own kinds beside the
 * code that appends them:
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

/** Part of every event about a message. Fields that do not apply are absent. */
export interface AboutMessage {
  readonly to: string
  /** Marketing mail, which unsubscribing stops; absent for transactional mail. */
  readonly isMarketing?: boolean
  readonly campaignId?: string
  readonly automationId?: string
  readonly batchId?: string
  readonly templateId?: string
  readonly contactId?: string
  /** Tags set by the sender. */
  readonly tags?: readonly string[]
  /** Domain of the From address: A-labels, lower case. */
  readonly senderDomain?: string
}

/** Accepted: stored and, unless sandboxed or skipped, queued. */
export type EmailAccepted = EventHead<'email.accepted', AboutMessage>
/** The first delivery attempt reached a remote server, whatever it replied. */
export type EmailSent = EventHead<'email.sent', AboutMessage>
/** A remote server took responsibility (2xx after the final dot). */
export type EmailDelivered = EventHead<
  'email.delivered',
  AboutMessage & {
    readonly remoteMta: string
    /** Notifications requested by the submitter, as in NOTIFY (RFC 3461 §4.1). */
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
/** Could not be built or sent; no server rejected it. */
export type EmailFailed = EventHead<'email.failed', AboutMessage & { readonly reason: string }>

/** Not sent: the recipient is suppressed, at acceptance or before delivery, or has taken back the consent since. */
export type EmailSuppressed = EventHead<
  'email.suppressed',
  /** `suppressed` if absent. */
  AboutMessage & { readonly reason?: 'suppressed' | 'unsubscribed' | 'bounced' | 'deleted' | 'left_list' }
>

/** The recipient or their provider reported it as abuse (RFC 5965 §7.3). */
export type EmailComplained = EventHead<'email.complained', AboutMessage & { readonly feedbackType: string }>

/** The recipient unsubscribed by List-Unsubscribe (RFC 2369, RFC 8058) or opt-out report. There may be no contact with that address. */
export type EmailUnsubscribed = EventHead<
  'email.unsubscribed',
  AboutMessage & { readonly source: 'one_click' | 'preferences' }
>

/** A request for the pixel or a tracked link. */
interface Visit extends AboutMessage {
  readonly ip: string
  readonly userAgent: string
  /** A scanner or prefetcher: changes no status, triggers no automation and is not counted. */
  readonly isBot: boolean
}
export type EmailOpened = EventHead<
  'email.opened',
  Visit & {
    /** Inferred from a click; the pixel was not fetched. */
    readonly isInferred?: boolean
  }
>
export type EmailClicked = EventHead<'email.clicked', Visit & { readonly url: string }>

/** An event about a contact; `messageId` is the message it is attributed to, if any. */
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

/** Events about contacts by kind; extended by resources. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface ContactEvents {}

export type AnyEvent = Event | ContactEvents[keyof ContactEvents]
export type EventKind = AnyEvent['kind']
