/**
 * Signed return paths: the envelope sender that brings a bounce back to its message (variable envelope return path).
 *
 * Made when a message is handed to the delivery agent, read by the inbound listener. The local part is
 * `r1-<key version>-<message id>-<MAC>`, at most 64 octets of lower-case letters, digits and hyphens, so that it comes
 * through hosts that fold case or quote oddly. The MAC binds message and recipient; the recipient itself is not in it
 * and has to come from the stored message, so a made-up token finds nothing to be verified against.
 * Pure. Standards: RFC 5321 §4.5.3.1.1 (64 octets), RFC 2104 (HMAC), RFC 4648 §6 (base32).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isUuid } from '../core/ids.js'
import { base32ToUuid, fromBase32, toBase32, uuidToBase32 } from './base32.js'

export interface ReturnPathKey {
  /** Names the key inside the token, so that mail sent before a rotation still comes home; 0 to 999,999. */
  readonly version: number
  /** At least 32 random bytes. */
  readonly secret: Buffer
}

export interface ReturnPathToken {
  readonly keyVersion: number
  /** UUID, lower case, with hyphens. */
  readonly messageId: string
  /** Ten bytes, not yet verified. */
  readonly mac: Buffer
}

/** Of the format; a new layout gets a new letter or digit, and both are read. */
const FORMAT = 'r1'
/** 80 bits: one guess in 2^80 succeeds, and every guess costs the guesser a mail. */
const MAC_BYTES = 10
const TOKEN = /^r1-(0|[1-9]\d{0,5})-([a-z2-7]{26})-([a-z2-7]{16})$/

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
  if (!isUuid(messageId)) throw new Error(`a return path needs a UUID, not '${messageId}'`)
  const id = uuidToBase32(messageId)
  const mac = toBase32(macOf(messageId.toLowerCase(), recipient, key))
  return `${FORMAT}-${key.version}-${id}-${mac}@${domain}`
}

/**
 * @param local what stands before the @, in any case
 * @returns undefined for everything that `makeReturnPath` does not make
 */
export function parseReturnPathLocal(local: string): ReturnPathToken | undefined {
  const match = TOKEN.exec(local.toLowerCase())
  const [, version, id, mac] = match ?? []
  if (version === undefined || id === undefined || mac === undefined) return undefined
  const messageId = base32ToUuid(id)
  if (messageId === undefined) return undefined
  return { keyVersion: Number(version), messageId, mac: fromBase32(mac) }
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
  const key = keys.find(({ version }) => version === token.keyVersion)
  if (!key || token.mac.length !== MAC_BYTES) return false
  return timingSafeEqual(token.mac, macOf(token.messageId, recipient, key))
}

/** Begins with the purpose, so that a MAC made for something else under the same secret is worth nothing here. */
function macOf(messageId: string, recipient: string, key: ReturnPathKey): Buffer {
  const bound = ['return-path', FORMAT, key.version, messageId, recipient.toLowerCase()].join('\0')
  return createHmac('sha256', key.secret).update(bound).digest().subarray(0, MAC_BYTES)
}
