/**
 * Which of 256 buckets a text falls into: the same for ever, since buckets are kept in the database.
 *
 * An index that begins with a bucket grows at 256 places instead of everywhere, and finds a text among a 256th of the rows.
 * FNV-1a (draft-eastlake-fnv, 32 bits) over UTF-16 code units, its four octets folded into one. Pure.
 * Used by `messages/message-store.ts` for recipients, and by the migration that gave messages their buckets.
 */

/** @returns 0..255 */
export function bucketOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 8) ^ (hash >>> 16) ^ (hash >>> 24)) & 0xff
}
