/**
 * Results of inbound mail, and counters since the start.
 *
 * Shown by `postroad inbound`: names may be added, never renamed.
 */

/**
 * With an effect: `bounce`, `complaint`, `unsubscribe`, `report`, `forwarded`. Repeats: `bounce_known`,
 * `complaint_known`, `unsubscribe_known`, `report_known`. No effect: `delay`, `success`, `auto_reply`, `not_spam`,
 * `auth_failure`, `other` (none of these). Not acted on: `forged` (has a token, but not ours), `unconfirmed` (a bounce
 * or complaint about one of our messages without proof), `unmatched` (about no known message), `foreign_report` (about
 * a domain that is not here), `kept` (for a person, but not forwarded), `failed` (unreadable).
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

export interface InboundCounters {
  received: number
  /** Invalid tokens, in addresses and inside mails. */
  forged: number
  readonly results: Map<InboundResult, number>
}

export function newCounters(): InboundCounters {
  return { received: 0, forged: 0, results: new Map() }
}
