/**
 * Signed unsubscribe tokens, which identify a subscriber without a login. `unsubscribe+<token>` fits the 64 octets of a local part. The MAC
 * covers workspace, message and recipient; workspace and recipient come from the stored message. Tokens never expire, since people
 * unsubscribe years later, so all key versions stay valid.
 * Standards: RFC 2369 §3.2, RFC 8058, and those of `signed-token.ts`. Creating one throws if the id is not a UUID.
 */
import {
  makeToken,
  parseToken,
  verifyToken,
  type SignedToken,
  type TokenForm,
  type TokenKey,
} from './signed-token.js'

/** Versions 0 to 99,999. */
export type UnsubscribeKey = TokenKey
export type UnsubscribeToken = SignedToken

/** As stored with the message, never as claimed by a request. */
export interface Subscriber {
  readonly workspaceId: string
  readonly messageId: string
  /** Case-insensitive. */
  readonly recipient: string
}

const FORM: TokenForm = { format: 'u1', maxVersionDigits: 5, purpose: 'unsubscribe' }

export const UNSUBSCRIBE_PREFIX = 'unsubscribe+'

export function makeUnsubscribeToken(subscriber: Subscriber, key: UnsubscribeKey): string {
  return makeToken(FORM, subscriber.messageId, boundTo(subscriber), key)
}

/** @returns undefined unless `makeUnsubscribeToken` could have produced it; case-insensitive */
export function parseUnsubscribeToken(text: string): UnsubscribeToken | undefined {
  return parseToken(FORM, text)
}

/**
 * Whether we made the token for this recipient of this message. Constant-time MAC comparison.
 *
 * @param keys all keys ever used
 */
export function verifyUnsubscribeToken(
  token: UnsubscribeToken,
  subscriber: Subscriber,
  keys: readonly UnsubscribeKey[],
): boolean {
  const isAbout = token.messageId === subscriber.messageId.toLowerCase()
  return isAbout && verifyToken(FORM, token, boundTo(subscriber), keys)
}

function boundTo({ workspaceId, messageId, recipient }: Subscriber): string[] {
  return [workspaceId, messageId.toLowerCase(), recipient.toLowerCase()]
}
