/**
 * Header fields that are not the submitter's to give: what this server writes into a mail, and what servers on its way do.
 *
 * Read by whoever takes fields from a caller, by the composer, and by the reader and editor of submitted headers. Pure.
 * Standards: RFC 5322 §3.6, RFC 5321 §4.4, RFC 6376, RFC 7208 §9.1, RFC 8601, RFC 8617.
 */

/** Holds what stands before the @ of the return path; written when a mail leaves, read again by `inbound/`. */
export const TOKEN_FIELD = 'X-Postroad-ID'

/** Fields between a submitter and this server alone (and the token), lower case. */
export const POSTROAD_PREFIX = 'x-postroad-'

/** Fields that the composer writes itself; a second one of these would be a second opinion. */
const COMPOSED: ReadonlySet<string> = new Set([
  'from',
  'to',
  'cc',
  'bcc',
  'reply-to',
  'subject',
  'date',
  'message-id',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
])

/** Fields that are added to a finished mail, here or on the way, or that tell of its way. */
const ADDED: ReadonlySet<string> = new Set([
  'sender',
  'return-path',
  'received',
  'received-spf',
  'dkim-signature',
  'domainkey-signature',
  'authentication-results',
  'delivered-to',
  'errors-to',
  'disposition-notification-to',
  'feedback-id',
])

const FAMILIES: readonly string[] = ['list-unsubscribe', 'content-', 'resent-', 'arc-', POSTROAD_PREFIX]

/** @param name in any case */
export function isComposedField(name: string): boolean {
  return COMPOSED.has(name.toLowerCase())
}

/** Whether a caller may not give it. @param name in any case */
export function isServerField(name: string): boolean {
  const lower = name.toLowerCase()
  return COMPOSED.has(lower) || ADDED.has(lower) || FAMILIES.some(family => lower.startsWith(family))
}
