/**
 * Keys for signing and sealing links: one per version of the link secret and purpose.
 *
 * Keys are derived on first use and cached. Separate keys per purpose keep a token for one purpose invalid for
 * another.
 * Standards: RFC 5869 (HKDF), RFC 2104 (HMAC), NIST SP 800-38D (GCM). Throws if there is no key, or a version does not fit a token.
 */
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, hkdfSync } from 'node:crypto'
import type { TokenKey } from '../signed-token.js'

/**
 * `message`: pixel, view and the token of click links. `link`: the URL part of click links. `subscriber`: unsubscribe
 * and preferences. Uses of `message` take different parts of one HMAC, which are independent.
 */
export type LinkPurpose = 'message' | 'link' | 'subscriber' | 'confirm'

export interface LinkKey {
  readonly version: number
  /** HMAC-SHA256, 32 octets. */
  mac(octets: Buffer): Buffer
  /**
   * Encrypts and authenticates with AES-256-GCM.
   *
   * @param nonce 12 octets, never used for different content @param bound authenticated, but not in the result
   * @returns ciphertext and tag
   */
  seal(nonce: Buffer, bound: Buffer, content: Buffer): Buffer
  /** @returns undefined unless `seal` made it with the same nonce and bound octets */
  open(nonce: Buffer, bound: Buffer, sealed: Buffer): Buffer | undefined
}

export interface LinkKeys {
  /** The signing key. */
  newest(purpose: LinkPurpose): LinkKey
  /** A verification key. @returns undefined if the version never existed */
  find(purpose: LinkPurpose, version: number): LinkKey | undefined
}

/** NIST SP 800-38D §5.2.1.2. */
export const SEAL_TAG_OCTETS = 12
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
  // As key objects: Node takes five times as long to use a key given as octets.
  const macKey = createSecretKey(bytes.subarray(0, 32))
  const sealKey = createSecretKey(bytes.subarray(32))
  const options = { authTagLength: SEAL_TAG_OCTETS }
  return {
    version,
    mac: octets => createHmac('sha256', macKey).update(octets).digest(),
    seal(nonce, bound, content) {
      const cipher = createCipheriv('aes-256-gcm', sealKey, nonce, options).setAAD(bound)
      return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()])
    },
    open(nonce, bound, sealed) {
      const end = sealed.length - SEAL_TAG_OCTETS
      const decipher = createDecipheriv('aes-256-gcm', sealKey, nonce, options).setAAD(bound)
      decipher.setAuthTag(sealed.subarray(end))
      try {
        return Buffer.concat([decipher.update(sealed.subarray(0, end)), decipher.final()])
      } catch {
        return undefined
      }
    },
  }
}
