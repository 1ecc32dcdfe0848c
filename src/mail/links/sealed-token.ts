/**
 * Tokens that carry what they say, sealed: `<header 3><synthetic IV 16><ciphertext>`, in which nobody but us reads anything.
 *
 * Made for what has to work without any row in the database: unsubscribing, preferences, confirming. The IV is the MAC of what is
 * sealed, and the cipher runs from it: the same content has the same token each time (a retry sends the same mail), nothing repeats
 * where the content differs, and what was changed does not open. Pure.
 * Standards: the SIV construction of RFC 5297, with HMAC-SHA256 (RFC 2104) as its PRF and AES-256-CTR (NIST SP 800-38A).
 * Fails: reading never throws; making one throws a plain Error for what is too long.
 */
import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto'
import type { LinkKey, LinkKeys, LinkPurpose } from './link-keys.js'
import { HEADER_BYTES, readTokenBytes, tokenHeader } from './token-bytes.js'

const IV_BYTES = 16
const CONTENT_AT = HEADER_BYTES + IV_BYTES
const CIPHER = 'aes-256-ctr'
/** Room for two ids, a moment and the longest address. */
export const MAX_SEALED_OCTETS = 512

/** @param content at most `MAX_SEALED_OCTETS`; its length can be told from the token */
export function sealToken(keys: LinkKeys, purpose: LinkPurpose, content: Buffer): string {
  if (content.length > MAX_SEALED_OCTETS) throw new Error(`a link cannot carry ${content.length} octets`)
  const key = keys.newest(purpose)
  const header = tokenHeader(key.version)
  const iv = syntheticIv(key, header, content)
  const cipher = createCipheriv(CIPHER, key.cipher, iv)
  return Buffer.concat([header, iv, cipher.update(content), cipher.final()]).toString('base64url')
}

/** @returns what was sealed; undefined where we did not seal it for this purpose */
export function openToken(keys: LinkKeys, purpose: LinkPurpose, text: string): Buffer | undefined {
  const token = readTokenBytes(text, CONTENT_AT, CONTENT_AT + MAX_SEALED_OCTETS)
  const key = token && keys.find(purpose, token.keyVersion)
  if (!token || !key) return undefined
  const header = token.bytes.subarray(0, HEADER_BYTES)
  const iv = token.bytes.subarray(HEADER_BYTES, CONTENT_AT)
  const decipher = createDecipheriv(CIPHER, key.cipher, iv)
  const content = Buffer.concat([decipher.update(token.bytes.subarray(CONTENT_AT)), decipher.final()])
  return timingSafeEqual(iv, syntheticIv(key, header, content)) ? content : undefined
}

function syntheticIv({ mac }: LinkKey, header: Buffer, content: Buffer): Buffer {
  return createHmac('sha256', mac).update(header).update(content).digest().subarray(0, IV_BYTES)
}
