/**
 * Rejection subtypes and the shape of classifier rules.
 *
 * `mta/` uses the same names for failures it detects itself. Users see subtypes in bounces: add new ones, never rename.
 */
import type { Cause, Permanence, Scope, Stage } from '../outcome.js'

interface Meaning {
  readonly cause: Cause
  readonly scope: Scope
  /** Of a 5xx with this subtype; a 4xx is always transient (RFC 5321 §4.2.1). */
  readonly permanence: Permanence
}

function meaning(cause: Cause, scope: Scope, permanence: Permanence = 'permanent'): Meaning {
  return { cause, scope, permanence }
}

export const SUBTYPES = {
  // The only subtypes that count against the recipient's address.
  no_such_mailbox: meaning('recipient', 'address'),
  bad_address_syntax: meaning('recipient', 'address'),
  mailbox_disabled: meaning('recipient', 'address'),
  mailbox_moved: meaning('recipient', 'address'),
  // RFC 3463 §3.3 on X.2.2: "should be used as a persistent transient failure".
  mailbox_full: meaning('recipient', 'address', 'transient'),
  bad_destination: meaning('recipient', 'domain'),
  domain_accepts_no_mail: meaning('recipient', 'domain'),

  // About one recipient, but not counted against the address.
  mailbox_unavailable: meaning('transient', 'address', 'transient'),
  recipient_rate_limited: meaning('transient', 'address', 'transient'),
  recipient_refused: meaning('policy', 'address'),
  // Greylisting applies to a triple of host, sender and recipient, so the source is not slowed down.
  greylisted: meaning('transient', 'address', 'transient'),
  // RFC 5321 §4.5.3.1.10: even as 552. The next transaction may include the recipient.
  too_many_recipients: meaning('transient', 'address', 'transient'),

  // Our host: rate or reputation.
  rate_limited: meaning('transient', 'source', 'transient'),
  too_many_connections: meaning('transient', 'source', 'transient'),
  blocklisted: meaning('reputation', 'source'),
  bad_reputation: meaning('reputation', 'source'),
  bad_sender_reputation: meaning('reputation', 'sender'),
  reverse_dns: meaning('config', 'source'),
  helo_refused: meaning('config', 'source'),
  tls_required: meaning('config', 'source'),
  authentication_required: meaning('config', 'source'),
  authentication_failed: meaning('config', 'source'),
  protocol_error: meaning('config', 'source'),
  policy_refused: meaning('policy', 'source'),

  // Our sender address or content.
  authentication_policy: meaning('policy', 'sender'),
  sender_refused: meaning('policy', 'sender'),
  spam_content: meaning('content', 'sender'),
  virus_content: meaning('content', 'sender'),
  content_refused: meaning('content', 'sender'),
  message_too_big: meaning('content', 'domain'),
  // The message needs an extension that the server lacks; another server may offer it.
  smtputf8_unsupported: meaning('content', 'domain'),
  '8bitmime_unsupported': meaning('content', 'domain'),

  // The receiving system.
  relay_denied: meaning('config', 'domain'),
  routing_loop: meaning('config', 'domain'),
  server_busy: meaning('transient', 'domain', 'transient'),
  // RFC 3463 §3.4 on X.3.1: a persistent transient failure.
  system_full: meaning('transient', 'domain', 'transient'),
  // Permanent, but unrelated to the recipient: a retry may or may not succeed.
  system_failure: meaning('transient', 'domain', 'undetermined'),
  network_failure: meaning('transient', 'domain', 'transient'),
  // A relay gave up because of a transient error, which says nothing about the mailbox.
  expired: meaning('transient', 'domain', 'transient'),

  // No rule matched. Not counted against the recipient.
  unclassified: meaning('policy', 'source'),
  unclassified_delay: meaning('transient', 'domain', 'transient'),
} as const satisfies Record<string, Meaning>

export type Subtype = keyof typeof SUBTYPES

/** A classifier rule. All given conditions must match. */
export interface ReplyRule {
  /** Matched against the reply code; '' if the diagnostic has none. */
  readonly code?: RegExp
  /** Matched against the enhanced code, e.g. `5.7.1`; may be empty. */
  readonly enhanced?: RegExp
  /** Matched against the normalized text; one must match. */
  readonly text?: readonly RegExp[]
  /** Excludes the rule if it matches the normalized text. */
  readonly unless?: RegExp
  /** Stages of the session; never matches a reply of unknown stage. */
  readonly stage?: readonly Stage[]
  readonly subtype: Subtype
  readonly scope?: Scope
}
