/**
 * Header fields that submitters may not set, because this server or servers on the way write them.
 *
 * Standards: RFC 5322 §3.6, RFC 5321 §4.4, RFC 6376, RFC 7208 §9.1, RFC 8601, RFC 8617.
 */

/** Repeats the local part of the return path; `inbound/` reads it from returned mail. */
export const TOKEN_FIELD = 'X-Postroad-ID'

/** Control fields of submitters (and the token), lower case. */
export const POSTROAD_PREFIX = 'x-postroad-'

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

/** Trace fields, and fields added to a finished message here or on the way. */
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

export function isComposedField(name: string): boolean {
  return COMPOSED.has(name.toLowerCase())
}

export function isServerField(name: string): boolean {
  const lower = name.toLowerCase()
  return COMPOSED.has(lower) || ADDED.has(lower) || FAMILIES.some(family => lower.startsWith(family))
}
