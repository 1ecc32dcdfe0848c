/**
 * The interface between the queue and the MTA: `mta/` implements it, tests script it.
 *
 * Jobs are complete, so the agent needs no database; outcomes are values, so the queue needs no SMTP.
 */
import type { Merging, RecipientValues } from '../content/rendering/merging.js'
import type { Outcome } from '../mail/outcome.js'
import type { ComposedContent, RelayedContent } from '../mail/compose/compose.js'
import type { DkimKey } from '../mail/dkim/dkim-sign.js'
import type { LoggedSubmission } from '../messages/mail-log.js'
import type { MailOrigin } from '../messages/mail-origin.js'

/** Content shared by all recipients of a submission; the same object for all their jobs while it is cached. */
export type JobContent = (ComposedContent | RelayedContent) & {
  /** Subject, HTML and text contain merge tags. */
  readonly merging?: Merging
}

export interface DeliveryJob {
  readonly messageId: string
  readonly workspaceId: string
  /** Envelope sender: the signed return path of this message and recipient (RFC 5321 §3.6.3); empty for `<>`. */
  readonly envelopeSender: string
  /** Envelope recipient; domain as A-labels, lower case. */
  readonly recipient: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Value of the Date field: when the message was accepted, ms since epoch UTC. */
  readonly acceptedAt: number
  readonly content: JobContent
  /** Merge values of this recipient, if the content has merge tags. */
  readonly mergeValues?: RecipientValues
  /** One signature per key, in this order; none if empty. */
  readonly signingKeys: readonly DkimKey[]
  /** Campaign, automation or batch; absent for a single send or relayed mail. */
  readonly origin?: MailOrigin
  /** Only logged. */
  readonly submission?: LoggedSubmission
  /** When this attempt fell due, ms since epoch UTC; only logged. */
  readonly dueAt?: number
}

export interface DeliveryAgent {
  /**
   * Makes one delivery attempt: renders, signs, routes and sends. Never rejects.
   *
   * @param signal aborts the attempt unless the final dot was sent; the outcome is then `deferred`
   */
  deliver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome>
  /** Closes idle connections. Call it when no delivery is in progress. */
  close(): Promise<void>
}

/** The mail hosts that serve a destination, as pacing sees them. */
export interface SiteFacts {
  /** Same for all destinations that share hosts, e.g. `*.google.com`. */
  readonly name: string
  /** Concurrent deliveries, at least 1. */
  readonly connections: number
  /** 0 = no limit. */
  readonly messagesPerMinute: number
}

/** Finds the site of a recipient domain. Never rejects: if DNS does not answer, the domain is its own site. */
export type LocateSite = (destination: string) => Promise<SiteFacts>
