/**
 * What a mail that came in can come to, and how often it did since the start.
 *
 * Written by the processor, shown by `postroad inbound`. Names are shown to operators: added to, never renamed.
 */

/**
 * With an effect: `bounce`, `complaint`, `unsubscribe`, `report`, `forwarded`.
 * Told before: `bounce_known`, `complaint_known`, `unsubscribe_known`, `report_known`.
 * Without one: `delay`, `success`, `auto_reply`, `not_spam`, `auth_failure`, `other` (nothing that is looked for).
 * Not acted on: `forged` (signed, but not by us), `unconfirmed` (a bounce or complaint about one of our messages, without
 * any proof that its writer had it), `unmatched` (about no message that is known),
 * `foreign_report` (about a domain that is not here), `kept` (for a person, but not forwarded), `failed` (could not be read).
 */
export type InboundResult =
  | 'bounce'
  | 'bounce_known'
  | 'complaint'
  | 'complaint_known'
  | 'unsubscribe'
  | 'unsubscribe_known'
  | 'report'
  | 'report_known'
  | 'foreign_report'
  | 'forwarded'
  | 'kept'
  | 'delay'
  | 'success'
  | 'auto_reply'
  | 'not_spam'
  | 'auth_failure'
  | 'other'
  | 'forged'
  | 'unconfirmed'
  | 'unmatched'
  | 'failed'

/** Since the start. */
export interface InboundCounters {
  /** Mails stored. */
  received: number
  /** Tokens that were not ours, at RCPT and inside mails. */
  forged: number
  /** Findings of processed mails, by result. */
  readonly results: Map<InboundResult, number>
}

export function newCounters(): InboundCounters {
  return { received: 0, forged: 0, results: new Map() }
}
