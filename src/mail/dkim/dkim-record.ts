/**
 * DKIM key records: builds, parses and compares the TXT record of `<selector>._domainkey.<domain>`.
 *
 * Pure; performs no lookups. Text that is not a record parses to undefined.
 * Standards: RFC 6376 §3.6.1 (record), §3.2 (tag list); RFC 8463 §4 (Ed25519); RFC 8301 (SHA-256 only).
 */
import type { KeyObject } from 'node:crypto'
import { trimEnd } from '../../core/trim.js'

export interface DkimRecord {
  /** `k=`, lower case; defaults to rsa. */
  readonly algorithm: string
  /** `p=` without white space; empty if the key was revoked. */
  readonly publicKey: string
  /** `h=`, lower case; undefined allows all hashes. */
  readonly hashes: readonly string[] | undefined
  /** `s=`, lower case. */
  readonly services: readonly string[]
}

/**
 * A public key as the value of `p=`.
 *
 * @returns base64 of the SubjectPublicKeyInfo for RSA (RFC 6376 §3.6.1), of the 32 key bytes for Ed25519 (RFC 8463 §4)
 */
export function publicKeyText(publicKey: KeyObject): string {
  const der = publicKey.export({ type: 'spki', format: 'der' })
  // An Ed25519 SubjectPublicKeyInfo is a fixed 12-byte header and the key (RFC 8410 §4).
  return (publicKey.asymmetricKeyType === 'ed25519' ? der.subarray(-32) : der).toString('base64')
}

/** @returns the record text; for RSA longer than 255 octets, so it needs several strings in DNS (RFC 6376 §3.6.2.2) */
export function dkimRecord(algorithm: 'rsa' | 'ed25519', publicKeyBase64: string): string {
  return `v=DKIM1; k=${algorithm}; p=${publicKeyBase64}`
}

/**
 * Lenient: tags in any order, any white space, `v=` optional, unknown tags ignored.
 *
 * @param txt the strings of one TXT record, concatenated
 */
export function parseDkimRecord(txt: string): DkimRecord | undefined {
  const tags = new Map<string, string>()
  for (const part of txt.split(';')) {
    const equals = part.indexOf('=')
    if (equals > 0) tags.set(part.slice(0, equals).trim().toLowerCase(), part.slice(equals + 1).trim())
  }
  const publicKey = tags.get('p')
  if (publicKey === undefined || (tags.get('v') ?? 'DKIM1') !== 'DKIM1') return undefined
  return {
    algorithm: (tags.get('k') ?? 'rsa').toLowerCase(),
    publicKey: publicKey.replace(/\s+/g, ''),
    hashes: tags.has('h') ? colonList(tags.get('h')) : undefined,
    services: colonList(tags.get('s') ?? '*'),
  }
}

/**
 * Whether signatures of the key verify against this record: same key and algorithm, allowed for SHA-256 and email, not revoked.
 *
 * @param publicKeyBase64 as returned by `publicKeyText`
 */
export function recordMatchesKey(txt: string, publicKeyBase64: string): boolean {
  const record = parseDkimRecord(txt)
  if (!record || record.publicKey === '') return false
  const algorithm = Buffer.byteLength(publicKeyBase64, 'base64') === 32 ? 'ed25519' : 'rsa'
  return (
    withoutPadding(record.publicKey) === withoutPadding(publicKeyBase64) &&
    record.algorithm === algorithm &&
    (record.hashes?.includes('sha256') ?? true) &&
    record.services.some(service => service === '*' || service === 'email')
  )
}

function colonList(text = ''): string[] {
  return text.split(':').map(item => item.trim().toLowerCase())
}

function withoutPadding(base64: string): string {
  return trimEnd(base64, '=')
}
