/**
 * Signed unsubscribe tokens: what tells who wants no more mail, without a login and for ever.
 *
 * Made for the `mailto:` and the link of List-Unsubscribe, read by whatever takes them. The token is
 * `u1-<key version>-<message id>-<MAC>`: behind `unsubscribe+` it still is a local part of at most 64 octets. The MAC binds
 * workspace, message and recipient; workspace and recipient come from the stored message. It never expires (people
 * unsubscribe years later), so the keys of every version stay honoured.
 * Pure. Standards: RFC 2369 §3.2, RFC 8058 (what it is used for); RFC 2104 (HMAC), RFC 5321 §4.5.3.1.1 (64 octets).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isUuid } from '../core/ids.js'
import { base32ToUuid, fromBase32, toBase32, uuidToBase32 } from './base32.js'

export interface UnsubscribeKey {
  /** 0 to 99,999. */
  readonly version: number
  /** At least 32 random bytes; may be the same that signs other things, since the purpose is part of what is signed. */
  readonly secret: Buffer
}

export interface UnsubscribeToken {
  readonly keyVersion: number
  /** UUID, lower case, with hyphens. */
  readonly messageId: string
  /** Ten bytes, not yet verified. */
  readonly mac: Buffer
}

/** Whose wish it is: as stored with the message, never as a request says. */
export interface Subscriber {
  readonly workspaceId: string
  readonly messageId: string
  /** Compared without regard to case. */
  readonly recipient: string
}

const FORMAT = 'u1'
/** As in a return path: one guess in 2^80. */
const MAC_BYTES = 10
const TOKEN = /^u1-(0|[1-9]\d{0,4})-([a-z2-7]{26})-([a-z2-7]{16})$/

/** Before the token, in the local part of the address that unsubscribes. */
export const UNSUBSCRIBE_PREFIX = 'unsubscribe+'

export function makeUnsubscribeToken(subscriber: Subscriber, key: UnsubscribeKey): string {
  if (!isUuid(subscriber.messageId))
    throw new Error(`an unsubscribe token needs a UUID, not '${subscriber.messageId}'`)
  const id = uuidToBase32(subscriber.messageId)
  return `${FORMAT}-${key.version}-${id}-${toBase32(macOf(subscriber, key))}`
}

/** @returns undefined for everything that `makeUnsubscribeToken` does not make; case does not matter */
export function parseUnsubscribeToken(text: string): UnsubscribeToken | undefined {
  const [, version, id, mac] = TOKEN.exec(text.toLowerCase()) ?? []
  if (version === undefined || id === undefined || mac === undefined) return undefined
  const messageId = base32ToUuid(id)
  return messageId === undefined
    ? undefined
    : { keyVersion: Number(version), messageId, mac: fromBase32(mac) }
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
  const key = keys.find(({ version }) => version === token.keyVersion)
  if (!key || token.mac.length !== MAC_BYTES || token.messageId !== subscriber.messageId.toLowerCase())
    return false
  return timingSafeEqual(token.mac, macOf(subscriber, key))
}

/** Begins with the purpose, so that a MAC made for something else under the same secret is worth nothing here. */
function macOf({ workspaceId, messageId, recipient }: Subscriber, key: UnsubscribeKey): Buffer {
  const parts = [
    'unsubscribe',
    FORMAT,
    key.version,
    workspaceId,
    messageId.toLowerCase(),
    recipient.toLowerCase(),
  ]
  return createHmac('sha256', key.secret).update(parts.join('\0')).digest().subarray(0, MAC_BYTES)
}
