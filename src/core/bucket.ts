/**
 * Hashes text into one of 256 buckets. Buckets are stored in the database, so the function must never change.
 *
 * An index prefixed with the bucket grows at 256 places instead of everywhere, and a lookup touches only a 256th of the rows. FNV-1a
 * (draft-eastlake-fnv, 32 bits) over UTF-16 code units, with its four octets XORed. Pure.
 */

/** @returns 0..255 */
export function bucketOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 8) ^ (hash >>> 16) ^ (hash >>> 24)) & 0xff
}
