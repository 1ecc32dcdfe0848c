/**
 * Whether a message is signed or encrypted by its author, so that its body is not ours to change.
 *
 * Called by submission before a footer or tracking is thought of. Looks at what the message as a whole is; a signed
 * message that is attached to another one is not meant. Pure.
 * Standards: RFC 1847 (multipart/signed, multipart/encrypted), RFC 8551 (S/MIME), RFC 3156 and RFC 9580 §6 (OpenPGP).
 * Fails: never throws.
 */
import { decodeTransfer } from '../mime/transfer-encoding.js'
import { findField, fieldText, type RelayedHeader } from './relayed-header.js'

/** `pgp-text`: armour in the text itself. */
export type Protection = 'signed' | 'encrypted' | 'smime' | 'pgp-text'

/** Media types that protect what is in them. */
const PROTECTING_TYPES: ReadonlyMap<string, Protection> = new Map([
  ['multipart/signed', 'signed'],
  ['multipart/encrypted', 'encrypted'],
  ['application/pkcs7-mime', 'smime'],
  ['application/x-pkcs7-mime', 'smime'],
])

/** RFC 9580 §6.2, §7. Key blocks and detached signatures beside a text protect nothing of it. */
const ARMOUR = ['-----BEGIN PGP MESSAGE-----', '-----BEGIN PGP SIGNED MESSAGE-----'] as const
/** Octets of a base64 text that are decoded to look for armour. */
const MAX_DECODED = 262_144

/** @param type lower case */
export function isProtectingType(type: string): boolean {
  return PROTECTING_TYPES.has(type)
}

/** @returns how it is protected; undefined where it is not */
export function protectionOf(header: RelayedHeader, message: Buffer): Protection | undefined {
  const { value } = header.contentType
  const byType = PROTECTING_TYPES.get(value)
  if (byType) return byType
  const body = message.subarray(header.bodyStart)
  return hasArmour(body) || (value.startsWith('text/') && hasArmour(decoded(header, body)))
    ? 'pgp-text'
    : undefined
}

/** Whether somebody signed it with DKIM already. Such a signature is left; changing what it covers is the sender's risk. */
export function hasDkimSignature(header: RelayedHeader): boolean {
  return findField(header, 'dkim-signature') !== undefined
}

/** At the start of a line. Quoted-printable leaves the line as it is: there is no `=` in it. */
export function hasArmour(body: Buffer): boolean {
  return ARMOUR.some(line => {
    let at = body.indexOf(line, 0, 'latin1')
    while (at > 0 && body[at - 1] !== 0x0a) at = body.indexOf(line, at + 1, 'latin1')
    return at >= 0
  })
}

function decoded(header: RelayedHeader, body: Buffer): Buffer {
  const field = findField(header, 'content-transfer-encoding')
  if (!field || fieldText(header, field).toLowerCase() !== 'base64') return Buffer.alloc(0)
  return decodeTransfer(body.subarray(0, MAX_DECODED), 'base64')
}
