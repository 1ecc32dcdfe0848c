/**
 * Tokens that name a message and prove that we made them: `<format>-<key version>-<message id>-<MAC>`.
 *
 * Used by return paths and unsubscribe addresses, which say what the MAC binds. Lower-case letters, digits and hyphens, so that a
 * token comes through hosts that fold case or quote oddly, within the 64 octets of a local part. Pure.
 * Standards: RFC 5321 §4.5.3.1.1 (64 octets), RFC 2104 (HMAC), RFC 4648 §6 (base32).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isUuid } from '../core/ids.js'
import { base32ToUuid, fromBase32, toBase32, uuidToBase32 } from './base32.js'

export interface TokenKey {
  /** Names the key inside the token, so that mail sent before a rotation still comes home. */
  readonly version: number
  /** At least 32 random bytes; may be the same for several forms, since the purpose is part of what is signed. */
  readonly secret: Buffer
}

export interface SignedToken {
  readonly keyVersion: number
  /** UUID, lower case, with hyphens. */
  readonly messageId: string
  /** Ten bytes, not yet verified. */
  readonly mac: Buffer
}

/** What tells tokens of one use from those of another. */
export interface TokenForm {
  /** What it begins with; a new layout gets a new letter or digit, and both are read. */
  readonly format: string
  /** Of a key version in decimal; what is longer would not fit. */
  readonly maxVersionDigits: number
  /** Signed with the rest, so that a MAC made for something else under the same secret is worth nothing here. */
  readonly purpose: string
}

/** 80 bits: one guess in 2^80 succeeds, and every guess costs the guesser a mail. */
const MAC_BYTES = 10
const TOKEN = /^([a-z]\d)-(0|[1-9]\d*)-([a-z2-7]{26})-([a-z2-7]{16})$/
/** No token is longer. */
const MAX_TOKEN = 64

/** @param bound what the MAC is for, the message id among it, in an order of its own */
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

/** @returns undefined for everything that `makeToken` does not make of this form; case does not matter */
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
 * Whether we made the token for just that. Constant time in the MAC.
 *
 * @param keys every key that is still honoured
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
  return createHmac('sha256', key.secret).update(signed).digest().subarray(0, MAC_BYTES)
}
