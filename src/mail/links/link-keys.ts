/**
 * Keys for signing and sealing links: one per version of the link secret and purpose.
 *
 * Keys are derived on first use and cached. Separate keys per purpose keep a token for one purpose invalid for
 * another.
 * Standards: RFC 5869 (HKDF), RFC 2104 (HMAC). Throws if there is no key, or a version does not fit a token.
 */
import { createCipheriv, hash, hkdfSync } from 'node:crypto'
import type { TokenKey } from '../signed-token.js'

/**
 * `message`: pixel, view and the token of click links. `link`: the URL part of click links. `subscriber`: unsubscribe
 * and preferences. Uses of one purpose take different parts of one HMAC, which are independent.
 */
export type LinkPurpose = 'message' | 'link' | 'subscriber' | 'confirm'

export interface LinkKey {
  readonly version: number
  /** HMAC-SHA256, 32 octets. */
  mac(octets: Buffer): Buffer
  /** Encrypts blocks of 16 octets with AES-256; used for sealed tokens. */
  encipherBlocks(blocks: Buffer): Buffer
}

export interface LinkKeys {
  /** The signing key. */
  newest(purpose: LinkPurpose): LinkKey
  /** A verification key. @returns undefined if the version never existed */
  find(purpose: LinkPurpose, version: number): LinkKey | undefined
}

/** Key versions take two octets in a token. */
const MAX_VERSION = 0xffff

/** @param secrets all versions ever used, since links are followed years later */
export function openLinkKeys(secrets: readonly TokenKey[]): LinkKeys {
  const newest = secrets.reduce((most, { version }) => Math.max(most, version), -1)
  if (newest < 0 || newest > MAX_VERSION)
    throw new Error(`links need a secret with a version of 0 to ${MAX_VERSION}`)
  const known = new Map<string, LinkKey>()
  function find(purpose: LinkPurpose, version: number): LinkKey | undefined {
    const name = `${purpose} ${version}`
    const found = known.get(name)
    if (found) return found
    const secret = secrets.find(one => one.version === version)
    if (!secret) return undefined
    const key = derive(secret, purpose)
    known.set(name, key)
    return key
  }
  return {
    find,
    newest(purpose) {
      const key = find(purpose, newest)
      if (!key) throw new Error('the newest link secret is missing')
      return key
    },
  }
}

function derive({ version, secret }: TokenKey, purpose: LinkPurpose): LinkKey {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', `postroad link ${purpose}`, 64))
  // Reused, since creating a cipher takes several times longer than using it; with whole blocks it buffers nothing.
  const cipher = createCipheriv('aes-256-ecb', bytes.subarray(32), null).setAutoPadding(false)
  return { version, mac: hmacSha256(bytes.subarray(0, 32)), encipherBlocks: blocks => cipher.update(blocks) }
}

/** Of SHA-256. */
const BLOCK_OCTETS = 64

/**
 * RFC 2104 §2. Two one-shot hashes of a short input take half the time of an Hmac object. @param key at most one
 * block
 */
function hmacSha256(key: Buffer): (octets: Buffer) => Buffer {
  const padded = Buffer.concat([key], BLOCK_OCTETS)
  const inner = padded.map(octet => octet ^ 0x36)
  const outer = padded.map(octet => octet ^ 0x5c)
  return octets => sha256(Buffer.concat([outer, sha256(Buffer.concat([inner, octets]))]))
}

function sha256(octets: Buffer): Buffer {
  return hash('sha256', octets, 'buffer')
}
