/**
 * What a mail that comes back says: which recipients failed and why, or that somebody complained, or neither.
 *
 * Made by `read-returned-mail.ts`; read by the inbound listener, which finds the message it is about, and by
 * `postroad bounce parse`. Values only.
 * Standards: RFC 3464 (delivery status notifications), RFC 5965 (feedback reports), RFC 3834 (automatic responses).
 */
import type { Cause, Permanence, Scope } from '../outcome.js'

/**
 * `bounce`: at least one recipient failed. `delay`: still being tried, no bounce. `success`: delivered, relayed or
 * expanded (RFC 3464 §2.3.3). `feedback`: an abuse or other feedback report. `auto_reply`: vacation, challenge, receipt.
 */
export type ReturnedKind = 'bounce' | 'delay' | 'success' | 'feedback' | 'auto_reply' | 'other'

export interface ReturnedRecipient {
  /** The address that failed or complained, without angle brackets or type; empty where it was redacted. */
  readonly recipient: string
  /** The address as it was first given, where a DSN tells it (Original-Recipient) and it differs. */
  readonly originalRecipient?: string
  /** RFC 3464 §2.3.3; `failed` for free-text bounces. Absent in feedback and auto-replies. */
  readonly action?: 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded'
  /** RFC 3463 code: stated, or the one that fits what was said. */
  readonly status?: string
  /** Three-digit SMTP reply code, where the diagnostic quotes one. */
  readonly replyCode?: number
  /** What the remote system said, white space folded to one blank; at most 1,000 characters. */
  readonly diagnosticCode?: string
  /** Host that refused it. */
  readonly remoteMta?: string
  readonly type?: Permanence
  readonly subtype?: string
  readonly cause?: Cause
  readonly scope?: Scope
  /** RFC 5965 §3.1 and §7.3: abuse, fraud, virus, not-spam, auth-failure, opt-out, other. */
  readonly feedbackType?: string
}

/** The original message as far as it was returned. */
export interface ReturnedOriginal {
  /** Message-ID without angle brackets. */
  readonly messageId?: string
  /** Header fields by lower-case name, first of each; unfolded and decoded. At most 100. */
  readonly header: ReadonlyMap<string, string>
}

export interface ReturnedMail {
  readonly kind: ReturnedKind
  readonly recipients: readonly ReturnedRecipient[]
  readonly original?: ReturnedOriginal
  /** Original-Envelope-Id (RFC 3464 §2.2.1). */
  readonly envelopeId?: string
  /** Original-Mail-From of a feedback report (RFC 5965 §3.2), without angle brackets. */
  readonly originalSender?: string
  /** Name of the form that was recognised, e.g. `rfc3464`, `qmail`, `exim`, `arf`; for logs and the score. */
  readonly form: string
}
