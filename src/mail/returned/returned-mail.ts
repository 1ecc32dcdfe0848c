/**
 * The result of parsing a returned mail.
 *
 * Standards: RFC 3464 (delivery status notifications), RFC 5965 (feedback reports), RFC 3834 (automatic responses).
 */
import type { Cause, Permanence, Scope } from '../outcome.js'

/**
 * `bounce`: at least one recipient failed. `delay`: still being retried. `success`: delivered, relayed or expanded (RFC 3464 §2.3.3).
 * `feedback`: abuse or other feedback report. `auto_reply`: vacation, challenge-response, receipt.
 */
export type ReturnedKind = 'bounce' | 'delay' | 'success' | 'feedback' | 'auto_reply' | 'other'

export interface ReturnedRecipient {
  /** The address that failed or complained, without angle brackets or type; empty if redacted. */
  readonly recipient: string
  /** Original-Recipient of a DSN, if different. */
  readonly originalRecipient?: string
  /** RFC 3464 §2.3.3; `failed` for free-text bounces. Absent in feedback and auto-replies. */
  readonly action?: 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded'
  /** RFC 3463 code: stated, or derived from the text. */
  readonly status?: string
  /** SMTP reply code, if the diagnostic quotes one. */
  readonly replyCode?: number
  /** The remote server's text with white space collapsed; at most 1,000 characters. */
  readonly diagnosticCode?: string
  /** The rejecting host. */
  readonly remoteMta?: string
  readonly type?: Permanence
  readonly subtype?: string
  readonly cause?: Cause
  readonly scope?: Scope
  /** RFC 5965 §3.1 and §7.3: abuse, fraud, virus, not-spam, auth-failure, opt-out, other. */
  readonly feedbackType?: string
}

export interface ReturnedOriginal {
  /** Without angle brackets. */
  readonly messageId?: string
  /** The first field of each name (lower case), unfolded and decoded. At most 100. */
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
  /** Name of the recognized format, e.g. `rfc3464`, `qmail`, `exim`, `arf`; for logs and the parser's score. */
  readonly form: string
}
