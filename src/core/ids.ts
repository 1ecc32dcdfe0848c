/**
 * Identifiers: UUID version 7 (RFC 9562 §5.7), which sort by creation time, so that indexes grow at their end.
 *
 * Pure: time and random bytes are passed in. Ids of one process sort in creation order, even within a millisecond.
 */

import { createHash } from 'node:crypto'

/**
 * @param nowMs creation time, ms since epoch UTC
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

/** Sorts after every UUID. */
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** A deterministic id of the text (UUID version 8, RFC 9562 §5.8). */
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

/** Creates a new id per call; services take this instead of a clock and a random source. */
export type NewId = () => string

/** Range of the 12-bit counter; it starts in the lower half to leave room for counting. */
const LAST_COUNT = 0xfff
const FIRST_COUNTS = 0x7ff
/** If the clock is set back further than this, ids follow it, because they encode the creation time. */
const MAX_AHEAD_MS = 1_000

/**
 * Ids in creation order: 12 bits count within a millisecond (RFC 9562 §6.2, method 1), the other 62 are random. If the counter runs out,
 * the next millisecond is used early.
 *
 * @param now ms since epoch UTC @param random returns that many random bytes
 */
export function orderedIds(now: () => number, random: (count: number) => Uint8Array): NewId {
  let moment = 0
  let count = 0
  return () => {
    const bytes = Buffer.from(random(10))
    const clock = now()
    if (clock > moment || clock < moment - MAX_AHEAD_MS) {
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

export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)
}

/** Lower bound of ids created at a moment; ids created earlier sort before it. @param moment ms since epoch UTC */
export function firstIdAt(moment: number): string {
  const hex = Math.max(0, moment).toString(16).padStart(12, '0').slice(-12)
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
