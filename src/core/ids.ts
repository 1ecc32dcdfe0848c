/**
 * Identifiers: UUID version 7 (RFC 9562 §5.7), so that rows made later sort later and an index grows at its end.
 *
 * Pure: the moment and the random bytes are handed in. Within one millisecond the order is random.
 */

import { createHash } from 'node:crypto'

/**
 * @param nowMs moment of creation, ms since epoch UTC
 * @param random 10 random bytes
 * @returns lower-case UUID text, 36 characters
 */
export function uuidv7(nowMs: number, random: Uint8Array): string {
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(nowMs, 0, 6)
  bytes.set(random.subarray(0, 10), 6)
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return inGroups(bytes)
}

/** Always the same for the same text, and nobody else's (UUID version 8, RFC 9562 §5.8). */
export function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16)
  bytes[6] = 0x80 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return inGroups(bytes)
}

function inGroups(bytes: Buffer): string {
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Makes one new identifier per call; services take this instead of a clock and a source of randomness. */
export type NewId = () => string

/** Whether the text is a UUID of any version; used before asking the database for it. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)
}

/** The least identifier of a moment: what was made before it has a lesser one. @param moment ms since epoch UTC */
export function firstIdAt(moment: number): string {
  const hex = Math.max(0, moment).toString(16).padStart(12, '0').slice(-12)
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
