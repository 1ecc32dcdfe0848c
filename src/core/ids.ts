/**
 * Identifiers: UUID version 7 (RFC 9562 §5.7), so that rows made later sort later and an index grows at its end.
 *
 * Pure: the moment and the random bytes are handed in. What one process makes sorts in the order in which it was made, also
 * within a millisecond.
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

/** Of the 12 bits beside the moment; it begins in the lower half, so that there is room to count. */
const LAST_COUNT = 0xfff
const FIRST_COUNTS = 0x7ff
/** A clock that is set back by more is believed: identifiers tell when something was made. */
const MOST_AHEAD_MS = 1_000

/**
 * Identifiers in the order of their making: within a millisecond 12 bits count (RFC 9562 §6.2, method 1), the other 62 are
 * random. Where they run out, the next millisecond is begun early.
 *
 * @param now ms since epoch UTC @param random gives so many random bytes
 */
export function orderedIds(now: () => number, random: (count: number) => Uint8Array): NewId {
  let moment = 0
  let count = 0
  return () => {
    const bytes = Buffer.from(random(10))
    const clock = now()
    if (clock > moment || clock < moment - MOST_AHEAD_MS) {
      moment = clock
      count = bytes.readUInt16BE(0) & FIRST_COUNTS
    } else if (count < LAST_COUNT) count += 1
    else {
      moment += 1
      count = bytes.readUInt16BE(0) & FIRST_COUNTS
    }
    bytes.writeUInt16BE(count, 0)
    return uuidv7(moment, bytes)
  }
}

/** Whether the text is a UUID of any version; used before asking the database for it. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)
}

/** The least identifier of a moment: what was made before it has a lesser one. @param moment ms since epoch UTC */
export function firstIdAt(moment: number): string {
  const hex = Math.max(0, moment).toString(16).padStart(12, '0').slice(-12)
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
