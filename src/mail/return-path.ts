/**
 * Signed return paths (VERP): envelope senders that match a bounce to its message.
 *
 * The local part is a signed token. Its MAC binds message and recipient, but it does not contain the recipient, which comes from the stored
 * message; a forged token therefore matches nothing.
 * Standards: those of `signed-token.ts`. Creating one throws if the id is not a UUID.
 */
import {
  makeToken,
  parseToken,
  verifyToken,
  type SignedToken,
  type TokenForm,
  type TokenKey,
} from './signed-token.js'

/** Versions 0 to 999,999. */
export type ReturnPathKey = TokenKey
export type ReturnPathToken = SignedToken

const FORM: TokenForm = { format: 'r1', maxVersionDigits: 6, purpose: 'return-path' }

export interface ReturnPathParts {
  readonly messageId: string
  /** Envelope recipient, case-insensitive. */
  readonly recipient: string
  readonly key: ReturnPathKey
  /** Bounce host, e.g. `bounce.mail.example.com`. */
  readonly domain: string
}

/** @returns the envelope sender, `local@domain` */
export function makeReturnPath({ messageId, recipient, key, domain }: ReturnPathParts): string {
  return `${makeToken(FORM, messageId, boundTo(messageId, recipient), key)}@${domain}`
}

/**
 * @param local the local part, any case
 * @returns undefined unless `makeReturnPath` could have produced it
 */
export function parseReturnPathLocal(local: string): ReturnPathToken | undefined {
  return parseToken(FORM, local)
}

/**
 * Whether we made the token for this message and recipient. Constant-time MAC comparison.
 *
 * @param keys all keys still accepted
 */
export function verifyReturnPath(
  token: ReturnPathToken,
  recipient: string,
  keys: readonly ReturnPathKey[],
): boolean {
  return verifyToken(FORM, token, boundTo(token.messageId, recipient), keys)
}

function boundTo(messageId: string, recipient: string): string[] {
  return [messageId.toLowerCase(), recipient.toLowerCase()]
}
