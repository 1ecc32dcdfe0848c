/**
 * The keys that links are signed and sealed with: of each version of the appliance's secret one key for each purpose.
 *
 * Opened once by whoever makes or reads links and handed to the other files here. What is made for one purpose is worth nothing for
 * another, since no two have a key in common. Derived when first asked for and kept. Pure.
 * Standards: RFC 5869 (HKDF), RFC 2104 (HMAC).
 * Fails: without any key, or with a version that a token has no room for, opening throws a plain Error.
 */
import { createCipheriv, hash, hkdfSync } from 'node:crypto'
import type { TokenKey } from '../signed-token.js'

/**
 * `message`: pixel, view and the head of click links. `link`: the URL of a click link. `subscriber`: unsubscribe and preferences.
 * Those of one purpose share an HMAC and have a part of it each, which the other's says nothing of.
 */
export type LinkPurpose = 'message' | 'link' | 'subscriber' | 'confirm'

export interface LinkKey {
  readonly version: number
  /** HMAC-SHA256, 32 octets. */
  mac(octets: Buffer): Buffer
  /** Enciphers 16 octets each with AES-256; used by what is sealed. */
  encipherBlocks(blocks: Buffer): Buffer
}

export interface LinkKeys {
  /** The one that signs. */
  newest(purpose: LinkPurpose): LinkKey
  /** One that verifies. @returns undefined where there never was such a version */
  find(purpose: LinkPurpose, version: number): LinkKey | undefined
}

/** Of a key version in a token: two octets. */
const MAX_VERSION = 0xffff

/** @param secrets every version there ever was, in any order: links in mail are followed years later */
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
      if (!key) throw new Error('the newest secret of links is gone')
      return key
    },
  }
}

function derive({ version, secret }: TokenKey, purpose: LinkPurpose): LinkKey {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', `postroad link ${purpose}`, 64))
  // Kept, since making one takes several times as long as using it; with whole blocks it holds nothing back.
  const cipher = createCipheriv('aes-256-ecb', bytes.subarray(32), null).setAutoPadding(false)
  return { version, mac: hmacSha256(bytes.subarray(0, 32)), encipherBlocks: blocks => cipher.update(blocks) }
}

/** Of SHA-256. */
const BLOCK_OCTETS = 64

/** RFC 2104 §2: two hashes of what is not long, each in one go, take half the time of an Hmac object. @param key a block at most */
function hmacSha256(key: Buffer): (octets: Buffer) => Buffer {
  const padded = Buffer.concat([key], BLOCK_OCTETS)
  const inner = padded.map(octet => octet ^ 0x36)
  const outer = padded.map(octet => octet ^ 0x5c)
  return octets => sha256(Buffer.concat([outer, sha256(Buffer.concat([inner, octets]))]))
}

function sha256(octets: Buffer): Buffer {
  return hash('sha256', octets, 'buffer')
}
