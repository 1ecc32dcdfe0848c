/**
 * Writes the DER structures needed for certificates and CSRs, and reads one extension. Pure.
 *
 * Standards: X.690 §8, §10; RFC 5280 §4.2.1.1 (key identifiers), §4.2.1.6 (names). Unreadable input gives `undefined`.
 */
export const INTEGER = 0x02
export const BIT_STRING = 0x03
export const OCTET_STRING = 0x04
export const UTF8_STRING = 0x0c
export const UTC_TIME = 0x17
export const GENERALIZED_TIME = 0x18
export const SEQUENCE = 0x30
export const SET = 0x31
export const CONSTRUCTED_0 = 0xa0
export const CONSTRUCTED_3 = 0xa3
/** [2] IMPLICIT IA5String: dNSName. */
const DNS_NAME = 0x82
/** [0] IMPLICIT OCTET STRING: keyIdentifier. */
const KEY_IDENTIFIER = 0x80

// Object identifiers, tag and length included.
export const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex')
const SUBJECT_ALT_NAME = Buffer.from('0603551d11', 'hex')
const AUTHORITY_KEY_IDENTIFIER = Buffer.from('0603551d23', 'hex')

export function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), content])
}

export function subjectAltNames(names: readonly string[]): Buffer {
  const list = der(SEQUENCE, ...names.map(name => der(DNS_NAME, Buffer.from(name, 'latin1'))))
  return der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, list))
}

export function authorityKeyIdentifier(octets: Buffer): Buffer {
  const list = der(SEQUENCE, der(KEY_IDENTIFIER, octets))
  return der(SEQUENCE, AUTHORITY_KEY_IDENTIFIER, der(OCTET_STRING, list))
}

/** @param certificate DER @returns undefined if it has none in the usual short form */
export function readAuthorityKeyIdentifier(certificate: Buffer): Buffer | undefined {
  const at = certificate.indexOf(AUTHORITY_KEY_IDENTIFIER)
  if (at < 0) return undefined
  // OCTET STRING, SEQUENCE, [0], each shorter than 128 octets.
  const rest = certificate.subarray(at + AUTHORITY_KEY_IDENTIFIER.length)
  const [octetString, , sequence, , identifier, length = 0] = rest
  if (octetString !== OCTET_STRING || sequence !== SEQUENCE || identifier !== KEY_IDENTIFIER) return undefined
  return length < 0x80 && rest.length >= 6 + length ? rest.subarray(6, 6 + length) : undefined
}

export function pem(label: string, octets: Buffer): string {
  const lines = octets.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}

/** RFC 5280 §4.1.2.5: two-digit years until 2049, four digits from 2050. */
export function derTime(ms: number): Buffer {
  const digits = `${new Date(ms).toISOString().replace(/\.\d+/, '').replace(/\D/g, '')}Z`
  return digits < '2050'
    ? der(UTC_TIME, Buffer.from(digits.slice(2)))
    : der(GENERALIZED_TIME, Buffer.from(digits))
}
