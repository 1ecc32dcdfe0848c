/**
 * Signed unsubscribe tokens: what tells who wants no more mail, without a login and for ever.
 *
 * Made for the `mailto:` and the link of List-Unsubscribe, read by whatever takes them. Behind `unsubscribe+` a token still is a
 * local part of at most 64 octets. The MAC binds workspace, message and recipient; workspace and recipient come from the stored
 * message. It never expires (people unsubscribe years later), so the keys of every version stay honoured.
 * Pure. Standards: RFC 2369 §3.2, RFC 8058 (what it is used for), and those of `signed-token.ts`.
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import {
  makeToken,
  parseToken,
  verifyToken,
  type SignedToken,
  type TokenForm,
  type TokenKey,
} from './signed-token.js'

/** Its version is 0 to 99,999. */
export type UnsubscribeKey = TokenKey
export type UnsubscribeToken = SignedToken

/** Whose wish it is: as stored with the message, never as a request says. */
export interface Subscriber {
  readonly workspaceId: string
  readonly messageId: string
  /** Compared without regard to case. */
  readonly recipient: string
}

const FORM: TokenForm = { format: 'u1', maxVersionDigits: 5, purpose: 'unsubscribe' }

/** Before the token, in the local part of the address that unsubscribes. */
export const UNSUBSCRIBE_PREFIX = 'unsubscribe+'

export function makeUnsubscribeToken(subscriber: Subscriber, key: UnsubscribeKey): string {
  return makeToken(FORM, subscriber.messageId, boundTo(subscriber), key)
}

/** @returns undefined for everything that `makeUnsubscribeToken` does not make; case does not matter */
export function parseUnsubscribeToken(text: string): UnsubscribeToken | undefined {
  return parseToken(FORM, text)
}

/**
 * Whether the token was made by us for this recipient of this message. Constant time in the MAC.
 *
 * @param keys every key there ever was
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
