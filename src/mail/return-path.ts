/**
 * Signed return paths: the envelope sender that brings a bounce back to its message (variable envelope return path).
 *
 * Made when a message is handed to the delivery agent, read by the inbound listener. The local part is a signed token. The MAC
 * binds message and recipient; the recipient itself is not in it and has to come from the stored message, so a made-up token finds
 * nothing to be verified against. Pure. Standards: those of `signed-token.ts`.
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

/** Its version is 0 to 999,999. */
export type ReturnPathKey = TokenKey
export type ReturnPathToken = SignedToken

const FORM: TokenForm = { format: 'r1', maxVersionDigits: 6, purpose: 'return-path' }

export interface ReturnPathParts {
  readonly messageId: string
  /** Envelope recipient; compared without regard to case. */
  readonly recipient: string
  readonly key: ReturnPathKey
  /** Host that takes bounces, e.g. `bounce.mail.example.com`. */
  readonly domain: string
}

/** @returns the whole envelope sender, `local@domain` */
export function makeReturnPath({ messageId, recipient, key, domain }: ReturnPathParts): string {
  return `${makeToken(FORM, messageId, boundTo(messageId, recipient), key)}@${domain}`
}

/**
 * @param local what stands before the @, in any case
 * @returns undefined for everything that `makeReturnPath` does not make
 */
export function parseReturnPathLocal(local: string): ReturnPathToken | undefined {
  return parseToken(FORM, local)
}

/**
 * Whether the token was made by us for this recipient of this message. Constant time in the MAC.
 *
 * @param keys every key that is still honoured
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
