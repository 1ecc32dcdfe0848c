/**
 * Base32 in lower case: octets as letters and digits that come through hosts which fold case.
 *
 * Called by what puts a signed token into the local part of an address. Pure. Standard: RFC 4648 §6, without padding.
 * Fails: never throws.
 */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** @param uuid with hyphens, any case @returns 26 characters */
export function uuidToBase32(uuid: string): string {
  return toBase32(Buffer.from(uuid.replaceAll('-', ''), 'hex'))
}

/** @param text 26 characters of the alphabet @returns undefined where `uuidToBase32` does not make it */
export function base32ToUuid(text: string): string | undefined {
  const bytes = fromBase32(text)
  // 26 characters hold two bits more than a UUID; only zeros there, so that every token has one spelling.
  if (toBase32(bytes) !== text) return undefined
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** RFC 4648 §6 in lower case, without padding. */
export function toBase32(bytes: Buffer): string {
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

/** @param text characters of the alphabet only, lower case; bits that fill no byte are dropped */
export function fromBase32(text: string): Buffer {
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
