/**
 * The kinds of refusal, and what each one means for the recipient, for our pace and for the bounce that is reported.
 *
 * Read by the classifier and its rules; `mta/` uses the names for failures it finds itself. Pure data.
 * Subtypes are shown to users (bounce `subtype`): they are added to, never renamed.
 */
import type { Cause, Permanence, Scope } from '../outcome.js'

interface Meaning {
  readonly cause: Cause
  readonly scope: Scope
  /** What a 5xx of this kind is. A 4xx is transient whatever it says (RFC 5321 §4.2.1). */
  readonly permanence: Permanence
}

function meaning(cause: Cause, scope: Scope, permanence: Permanence = 'permanent'): Meaning {
  return { cause, scope, permanence }
}

export const SUBTYPES = {
  // The recipient's own: these, and no others, say something about the address.
  no_such_mailbox: meaning('recipient', 'address'),
  bad_address_syntax: meaning('recipient', 'address'),
  mailbox_disabled: meaning('recipient', 'address'),
  mailbox_moved: meaning('recipient', 'address'),
  // RFC 3463 §3.3 on X.2.2: "should be used as a persistent transient failure"; the owner can make room.
  mailbox_full: meaning('recipient', 'address', 'transient'),
  bad_destination: meaning('recipient', 'domain'),
  domain_accepts_no_mail: meaning('recipient', 'domain'),

  // About one recipient, but not to be held against the address.
  mailbox_unavailable: meaning('transient', 'address', 'transient'),
  recipient_rate_limited: meaning('transient', 'address', 'transient'),
  recipient_refused: meaning('policy', 'address'),
  // A greylist knows the triple of host, sender and recipient: others may pass, so the source is not slowed down.
  greylisted: meaning('transient', 'address', 'transient'),
  // RFC 5321 §4.5.3.1.10: also when it comes as 552. The next transaction may take this recipient.
  too_many_recipients: meaning('transient', 'address', 'transient'),

  // Our host: too fast, too much, or not trusted.
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

  // Our sender address or what it sent.
  authentication_policy: meaning('policy', 'sender'),
  sender_refused: meaning('policy', 'sender'),
  spam_content: meaning('content', 'sender'),
  virus_content: meaning('content', 'sender'),
  content_refused: meaning('content', 'sender'),
  message_too_big: meaning('content', 'domain'),
  // What the message needs and their server does not have; the next server may.
  smtputf8_unsupported: meaning('content', 'domain'),
  '8bitmime_unsupported': meaning('content', 'domain'),

  // Their system.
  relay_denied: meaning('config', 'domain'),
  routing_loop: meaning('config', 'domain'),
  server_busy: meaning('transient', 'domain', 'transient'),
  // RFC 3463 §3.4 on X.3.1: a persistent transient failure, like a full mailbox.
  system_full: meaning('transient', 'domain', 'transient'),
  // A permanent refusal that says nothing of the recipient: nobody can know what the next try brings.
  system_failure: meaning('transient', 'domain', 'undetermined'),
  network_failure: meaning('transient', 'domain', 'transient'),
  // What a relay reports when it gave up: the last obstacle was a passing one, never a dead mailbox.
  expired: meaning('transient', 'domain', 'transient'),

  // No rule knew it. Not held against the recipient.
  unclassified: meaning('policy', 'source'),
  unclassified_delay: meaning('transient', 'domain', 'transient'),
} as const satisfies Record<string, Meaning>

export type Subtype = keyof typeof SUBTYPES
