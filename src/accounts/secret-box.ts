/**
 * Seals secrets with AES-256-GCM before they are stored, so that a copy of the database contains no usable secret.
 *
 * A seal is bound to its location (table, column, row), so that write access to the database does not allow swapping secrets.
 * Standards: NIST SP 800-38D (GCM; 96-bit random nonces, 128-bit tags).
 * Fails: `open` throws `SealError`, whose text names the location and contains no key or secret.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Random } from '../world/random.js'

export interface SecretBox {
  /** @param place location in the database, e.g. `dkim_keys/private_key/<id>` */
  seal(text: string, place: string): string
  /** Plain text is returned unchanged. @throws SealError */
  open(text: string, place: string): string
}

/** A stored secret cannot be opened: missing or wrong key, or it was modified or moved. */
export class SealError extends Error {
  override readonly name = 'SealError'
}

/** Prefix of sealed text, with the format version. */
const MARK = 'sealed:1:'
const NONCE_BYTES = 12
const TAG_BYTES = 16

export function isSealed(text: string): boolean {
  return text.startsWith('sealed:')
}

/** For a server without `secrets.key`: stores secrets as plain text. */
export const plainBox: SecretBox = {
  seal: text => text,
  open(text, place) {
    if (isSealed(text)) throw new SealError(`${place} is sealed, and secrets.key is not set`)
    return text
  },
}

/** @param key 32 bytes */
export function secretBox(key: Buffer, random: Random): SecretBox {
  return {
    /** `sealed:1:<nonce>.<ciphertext>.<tag>`, each part base64url. */
    seal(text, place) {
      const nonce = random.bytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(Buffer.from(place))
      const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return MARK + [nonce, ciphertext, cipher.getAuthTag()].map(part => part.toString('base64url')).join('.')
    },
    open(text, place) {
      if (!isSealed(text)) return text
      if (!text.startsWith(MARK)) throw new SealError(`${place} was sealed by a newer version`)
      const parts = text.slice(MARK.length).split('.')
      const [nonce, ciphertext, tag] = parts.map(part => Buffer.from(part, 'base64url'))
      if (parts.length !== 3 || nonce?.length !== NONCE_BYTES || tag?.length !== TAG_BYTES || !ciphertext)
        throw new SealError(`${place} is damaged`)
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
        decipher.setAAD(Buffer.from(place)).setAuthTag(tag)
        return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString('utf8')
      } catch {
        throw new SealError(`${place} does not open: secrets.key is another key, or the value was modified`)
      }
    },
  }
}
