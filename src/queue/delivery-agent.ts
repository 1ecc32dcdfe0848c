/**
 * The interface between the queue and whatever delivers: `mta/` implements it, tests script it.
 *
 * The queue hands over a job that is complete, so that the agent needs no database, and gets an Outcome back, so that
 * the queue needs no SMTP.
 */
import type { Merging, OwnValues } from '../content/rendering/merging.js'
import type { Outcome } from '../mail/outcome.js'
import type { ComposedContent, RelayedContent } from '../mail/compose/compose.js'
import type { DkimKey } from '../mail/dkim/dkim-sign.js'
import type { LoggedSubmission } from '../messages/mail-log.js'
import type { MailOrigin } from '../messages/mail-origin.js'

/** What the recipients of a content share: the same object for all their jobs, as long as it is remembered. */
export type JobContent = (ComposedContent | RelayedContent) & {
  /** Subject, html and text are still to be filled in. */
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
  /** Becomes the Date field: the moment the message was accepted, ms since epoch UTC. */
  readonly acceptedAt: number
  readonly content: JobContent
  /** What it is filled from, where its content is filled in for each recipient. */
  readonly mergeValues?: OwnValues
  /** One signature per key, in this order; empty leaves the mail unsigned. */
  readonly signingKeys: readonly DkimKey[]
  /** What the mail is part of; absent for a single send or relayed mail. */
  readonly origin?: MailOrigin
  /** For the log; no agent needs it. */
  readonly submission?: LoggedSubmission
  /** When this attempt fell due, ms since epoch UTC; for the log. */
  readonly dueAt?: number
}

export interface DeliveryAgent {
  /**
   * One attempt: render, sign, route, speak SMTP. Never rejects.
   *
   * @param signal aborts what is not past the final dot; the outcome is then `deferred`
   */
  deliver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome>
  /** Ends idle connections. Call it when no delivery is under way. */
  close(): Promise<void>
}

/** Where mail for a destination goes, as far as pacing is concerned. */
export interface SiteFacts {
  /** Equal for destinations that share hosts, e.g. `*.google.com`. */
  readonly name: string
  /** Deliveries at a time, >= 1. */
  readonly connections: number
  /** 0 = no limit. */
  readonly messagesPerMinute: number
}

/** Finds the site of a destination (a recipient domain). Never rejects: a domain DNS is silent about is its own site. */
export type LocateSite = (destination: string) => Promise<SiteFacts>
