/**
 * Tokens that carry what they say, sealed: `<header 3><synthetic IV 16><ciphertext>`, in which nobody but us reads anything.
 *
 * Made for what has to work without any row in the database: unsubscribing, preferences, confirming. The IV is the MAC of what is
 * sealed, and the cipher runs from it: the same content has the same token each time (a retry sends the same mail), nothing repeats
 * where the content differs, and what was changed does not open. One HMAC gives the IVs of two tokens, each worth nothing for
 * the other's use. Pure.
 * Standards: the SIV construction of RFC 5297, with HMAC-SHA256 (RFC 2104) as its PRF and AES-256 in counter mode
 * (NIST SP 800-38A §6.5).
 * Fails: reading never throws; making one throws a plain Error for what is too long.
 */
import { timingSafeEqual } from 'node:crypto'
import type { LinkKey, LinkKeys, LinkPurpose } from './link-keys.js'
import { HEADER_BYTES, readTokenBytes, tokenHeader } from './token-bytes.js'

/** Which half of the HMAC is the IV. */
export type SealedUse = 0 | 1

const BLOCK = 16
const CONTENT_AT = HEADER_BYTES + BLOCK
/** Room for two ids, a moment and the longest address. */
const MAX_SEALED_OCTETS = 512

/** One content that is sealed for one use or both. */
export class SealedContent {
  private readonly key: LinkKey
  private readonly header: Buffer
  private readonly content: Buffer
  private readonly digest: Buffer

  /** @param content at most `MAX_SEALED_OCTETS`; its length can be told from the token */
  constructor(keys: LinkKeys, purpose: LinkPurpose, content: Buffer) {
    if (content.length > MAX_SEALED_OCTETS) throw new Error(`a link cannot carry ${content.length} octets`)
    this.key = keys.newest(purpose)
    this.header = tokenHeader(this.key.version)
    this.content = content
    this.digest = digestOf(this.key, this.header, content)
  }

  token(use: SealedUse): string {
    const iv = ivIn(this.digest, use)
    return Buffer.concat([this.header, iv, applyCtr(this.key, iv, this.content)]).toString('base64url')
  }
}

/** @returns what was sealed; undefined where we did not seal it for this use */
export function unsealToken(
  keys: LinkKeys,
  purpose: LinkPurpose,
  use: SealedUse,
  text: string,
): Buffer | undefined {
  const token = readTokenBytes(text, CONTENT_AT, CONTENT_AT + MAX_SEALED_OCTETS)
  const key = token && keys.find(purpose, token.keyVersion)
  if (!token || !key) return undefined
  const header = token.bytes.subarray(0, HEADER_BYTES)
  const iv = token.bytes.subarray(HEADER_BYTES, CONTENT_AT)
  const content = applyCtr(key, iv, token.bytes.subarray(CONTENT_AT))
  return timingSafeEqual(iv, ivIn(digestOf(key, header, content), use)) ? content : undefined
}

function digestOf(key: LinkKey, header: Buffer, content: Buffer): Buffer {
  return key.mac(Buffer.concat([header, content]))
}

function ivIn(digest: Buffer, use: SealedUse): Buffer {
  return digest.subarray(use * BLOCK, (use + 1) * BLOCK)
}

/** Enciphers what is plain and deciphers what is not. The last octets of the IV count blocks, of which there are few. */
function applyCtr(key: LinkKey, iv: Buffer, octets: Buffer): Buffer {
  const counters = Buffer.alloc(Math.ceil(octets.length / BLOCK) * BLOCK)
  for (let at = 0; at < counters.length; at += BLOCK) {
    iv.copy(counters, at)
    const last = at + BLOCK - 4
    counters.writeUInt32BE((counters.readUInt32BE(last) + at / BLOCK) >>> 0, last)
  }
  const stream = key.encipherBlocks(counters)
  for (let at = 0; at < octets.length; at += 1) stream[at] = (stream[at] ?? 0) ^ (octets[at] ?? 0)
  return stream.subarray(0, octets.length)
}
