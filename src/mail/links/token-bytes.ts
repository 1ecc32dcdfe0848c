/**
 * The octets that tokens in links are made of: `<layout><key version>` in front of each, and ids in their 16 octets.
 *
 * Called by the other files here. In a URL a token is base64url, of which each token has one spelling. Pure.
 * Standards: RFC 4648 §5 (base64url, without padding), RFC 9562 §4 (UUID).
 * Fails: reading never throws; writing throws a plain Error for what is no UUID.
 */
import { isUuid } from '../../core/ids.js'

/** In front of every token; a new layout gets a new number, and both are read. */
const LAYOUT = 1
/** Layout and key version. */
export const HEADER_BYTES = 3
export const UUID_BYTES = 16

/** @param keyVersion 0 to 65,535 */
export function tokenHeader(keyVersion: number): Buffer {
  return Buffer.from([LAYOUT, keyVersion >>> 8, keyVersion & 0xff])
}

export function uuidToBytes(uuid: string): Buffer {
  if (!isUuid(uuid)) throw new Error(`a link needs a UUID, not '${uuid}'`)
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

/** @param bytes 16 or more, of which the first 16 count @returns lower case, with hyphens */
export function bytesToUuid(bytes: Buffer): string {
  const hex = bytes.toString('hex', 0, UUID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export interface TokenBytes {
  readonly keyVersion: number
  /** With the header. */
  readonly bytes: Buffer
}

/** @returns undefined where the text is no spelling of ours, or out of bounds: octets, header included */
export function readTokenBytes(text: string, least: number, most: number): TokenBytes | undefined {
  // First, so that everything below works on a short text.
  if (text.length > Math.ceil((most * 4) / 3)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length < least || bytes.length > most || bytes[0] !== LAYOUT) return undefined
  // The decoder passes over what is not of its alphabet, and over bits that fill no octet.
  if (bytes.toString('base64url') !== text) return undefined
  return { keyVersion: bytes.readUInt16BE(1), bytes }
}
