/**
 * Signed tokens that identify a message: `<format>-<key version>-<message id>-<MAC>`, and their base32 encoding. Tokens consist of
 * lower-case letters, digits and hyphens, so they survive hosts that fold case or quote oddly, and fit the 64 octets of a local part.
 * Creating a token throws if the id is not a UUID.
 * Standards: RFC 5321 §4.5.3.1.1 (64 octets), RFC 2104 (HMAC), RFC 4648 §6 (base32, without padding).
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto'
import { isUuid } from '../core/ids.js'

export interface TokenKey {
  /** Identifies the key in the token, so that tokens outlive a key rotation. */
  readonly version: number
  /** At least 32 random bytes. Token forms may share a secret, since the purpose is signed too. */
  readonly secret: Buffer
}

export interface SignedToken {
  readonly keyVersion: number
  /** UUID, lower case, with hyphens. */
  readonly messageId: string
  /** Ten bytes, unverified. */
  readonly mac: Buffer
}

export interface TokenForm {
  /** Token prefix. A new layout gets a new format; old ones remain readable. */
  readonly format: string
  /** Longer key versions would not fit the token. */
  readonly maxVersionDigits: number
  /** Signed, so that a MAC made for another purpose under the same secret is not valid here. */
  readonly purpose: string
}

/** 80 bits, and every guess costs an attacker a message. */
const MAC_BYTES = 10
const TOKEN = /^([a-z]\d)-(0|[1-9]\d*)-([a-z2-7]{26})-([a-z2-7]{16})$/
const MAX_TOKEN = 64

/** @param bound the values the MAC covers, including the message id */
export function makeToken(
  form: TokenForm,
  messageId: string,
  bound: readonly string[],
  key: TokenKey,
): string {
  if (!isUuid(messageId)) throw new Error(`a signed token needs a UUID, not '${messageId}'`)
  const mac = toBase32(macOf(form, bound, key))
  return `${form.format}-${key.version}-${uuidToBase32(messageId)}-${mac}`
}

/** @returns undefined unless `makeToken` could have produced it; case-insensitive */
export function parseToken({ format, maxVersionDigits }: TokenForm, text: string): SignedToken | undefined {
  if (text.length > MAX_TOKEN) return undefined
  const [, written, version = '', id = '', mac = ''] = TOKEN.exec(text.toLowerCase()) ?? []
  if (written !== format || version.length > maxVersionDigits) return undefined
  const messageId = base32ToUuid(id)
  return messageId === undefined
    ? undefined
    : { keyVersion: Number(version), messageId, mac: fromBase32(mac) }
}

/**
 * Whether we made the token for these values. Constant-time MAC comparison.
 *
 * @param keys all keys still accepted
 */
export function verifyToken(
  form: TokenForm,
  token: SignedToken,
  bound: readonly string[],
  keys: readonly TokenKey[],
): boolean {
  const key = keys.find(({ version }) => version === token.keyVersion)
  if (!key || token.mac.length !== MAC_BYTES) return false
  return timingSafeEqual(token.mac, macOf(form, bound, key))
}

function macOf({ format, purpose }: TokenForm, bound: readonly string[], key: TokenKey): Buffer {
  const signed = [purpose, format, key.version, ...bound].join('\0')
  return createHmac('sha256', keyObject(key.secret)).update(signed).digest().subarray(0, MAC_BYTES)
}

const keyObjects = new WeakMap<Buffer, KeyObject>()

/** Node takes five times as long to use a key given as octets. */
function keyObject(secret: Buffer): KeyObject {
  const known = keyObjects.get(secret)
  if (known) return known
  const made = createSecretKey(secret)
  keyObjects.set(secret, made)
  return made
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

function uuidToBase32(uuid: string): string {
  return toBase32(Buffer.from(uuid.replaceAll('-', ''), 'hex'))
}

/** @param text 26 characters of the alphabet @returns undefined if `uuidToBase32` never produces it */
function base32ToUuid(text: string): string | undefined {
  const bytes = fromBase32(text)
  // 26 characters hold two bits more than a UUID. They must be zero, so that each token has one spelling.
  if (toBase32(bytes) !== text) return undefined
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** RFC 4648 §6 in lower case, without padding: survives hosts that fold case. */
function toBase32(bytes: Buffer): string {
  let text = ''
  let pending = 0
  let bits = 0
  for (const byte of bytes) {
    pending = (pending << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32.charAt((pending >>> (bits - 5)) & 31)
    pending &= 31
  }
  return bits > 0 ? text + BASE32.charAt((pending << (5 - bits)) & 31) : text
}

function fromBase32(text: string): Buffer {
  const bytes: number[] = []
  let pending = 0
  let bits = 0
  for (const character of text) {
    pending = ((pending << 5) | BASE32.indexOf(character)) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((pending >>> bits) & 0xff)
  }
  return Buffer.from(bytes)
}
