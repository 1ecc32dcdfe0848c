/**
 * Which RFC 3463 code to report for a recipient, from what was stated, quoted and understood.
 *
 * Called by the assessment of returned mail. Pure; classifies nothing itself.
 * Standards: RFC 3463 §2 (classes), §3 (codes), RFC 3464 §2.3.4 (Status field, which allows a comment behind the code).
 * Fails: never.
 */
import type { Permanence } from '../outcome.js'
import type { Subtype } from '../classify/classify-subtypes.js'

const STATUS = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?!\d|\.\d)/

/** Value of a Status field: `5.1.1`, `5.1.1 (bad destination mailbox address)`; several sites write `Status: 550 5.1.1`. */
export function readStatus(value: string): string | undefined {
  return STATUS.exec(value.slice(0, 200))?.[1]
}

/** Says no more than the class (X.0.0), or only that time ran out (X.4.7): what was quoted beside it says more. */
export function isUnspecific(status: string): boolean {
  return /^.\.(?:0\.0|4\.7)$/.test(status)
}

/**
 * The stated code, unless another that is quoted says more. A class that contradicts the stated one is not taken: the
 * relay that reports knows what came of it.
 */
export function chooseStatus(
  stated: string | undefined,
  quoted: readonly (string | undefined)[],
): string | undefined {
  const known = quoted.filter(code => code !== undefined)
  if (stated === undefined) return known.find(code => !isUnspecific(code)) ?? known[0]
  if (!isUnspecific(stated)) return stated
  // The remote system said no more than that itself.
  if (stated.endsWith('.0.0') && known[0] === stated) return stated
  return known.find(code => !isUnspecific(code) && code.startsWith(stated.charAt(0))) ?? stated
}

/** Second and third digit that RFC 3463 has for what was said; the class follows the permanence. */
const DETAIL_OF_SUBTYPE: Partial<Record<Subtype, string>> = {
  no_such_mailbox: '1.1',
  bad_destination: '1.2',
  bad_address_syntax: '1.3',
  mailbox_moved: '1.6',
  domain_accepts_no_mail: '1.10',
  sender_refused: '1.8',
  mailbox_disabled: '2.1',
  mailbox_unavailable: '2.0',
  mailbox_full: '2.2',
  message_too_big: '3.4',
  system_full: '3.1',
  server_busy: '3.2',
  system_failure: '3.0',
  network_failure: '4.1',
  routing_loop: '4.6',
  expired: '4.7',
  too_many_recipients: '5.3',
  protocol_error: '5.0',
  content_refused: '6.0',
  relay_denied: '7.1',
  greylisted: '7.1',
  rate_limited: '7.0',
  too_many_connections: '7.0',
  blocklisted: '7.1',
  bad_reputation: '7.1',
  bad_sender_reputation: '7.1',
  spam_content: '7.1',
  virus_content: '7.1',
  policy_refused: '7.1',
  recipient_refused: '7.1',
  authentication_policy: '7.26',
  reverse_dns: '7.25',
  tls_required: '7.10',
  authentication_required: '7.0',
  authentication_failed: '7.8',
}

/**
 * For a mail that states none.
 *
 * @param replyCode 0 where none is quoted; its first digit is the class, whatever we make of it (RFC 3463 §2)
 */
export function fittingStatus(subtype: Subtype, permanence: Permanence, replyCode: number): string {
  const isTransient = replyCode === 0 ? permanence === 'transient' : replyCode < 500
  return `${isTransient ? 4 : 5}.${DETAIL_OF_SUBTYPE[subtype] ?? '0.0'}`
}
