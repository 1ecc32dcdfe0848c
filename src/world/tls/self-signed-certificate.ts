/**
 * A self-signed X.509 certificate for a host that has none: enough for opportunistic TLS between mail servers, where
 * nobody looks at names (RFC 7435), and for a first start. ECDSA P-256, valid for ten years.
 *
 * Called by `tls-certificate.ts`. Writes the few DER structures itself: one kind of certificate needs no ASN.1 library.
 * Standards: RFC 5280 §4.1 (certificate), §4.2.1.6 (subjectAltName), RFC 5758 §3.2 (ecdsa-with-SHA256).
 */
import { generateKeyPair, randomBytes, sign } from 'node:crypto'
import { promisify } from 'node:util'

export interface PemPair {
  readonly cert: string
  readonly key: string
}

const generate = promisify(generateKeyPair)

const DAY_MS = 86_400_000
const VALID_DAYS = 3_650
/** Upper bound of commonName (RFC 5280 appendix A.1). */
const MAX_COMMON_NAME = 64

const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
const SEQUENCE = 0x30
const SET = 0x31
/** [2] IMPLICIT IA5String: dNSName. */
const DNS_NAME = 0x82
const EXPLICIT_0 = 0xa0
const EXPLICIT_3 = 0xa3

// Object identifiers, tag and length included.
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex')
const COMMON_NAME = Buffer.from('0603550403', 'hex')
const SUBJECT_ALT_NAME = Buffer.from('0603551d11', 'hex')

/**
 * @param hostname ASCII host name: common name and subjectAltName
 * @param nowMs moment of making, ms since epoch UTC; valid from a day before it, for clocks that are behind
 */
export async function makeSelfSigned(hostname: string, nowMs: number): Promise<PemPair> {
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' })
  const algorithm = der(SEQUENCE, ECDSA_WITH_SHA256)
  const name = distinguishedName(hostname.length <= MAX_COMMON_NAME ? hostname : 'mail server')
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40 // positive, and no leading zero octet
  const certified = der(
    SEQUENCE,
    der(EXPLICIT_0, der(INTEGER, Buffer.from([2]))), // version 3
    der(INTEGER, serial),
    algorithm,
    name,
    der(SEQUENCE, time(nowMs - DAY_MS), time(nowMs + VALID_DAYS * DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(EXPLICIT_3, der(SEQUENCE, subjectAltName(hostname))),
  )
  const signature = sign('sha256', certified, privateKey)
  const certificate = der(SEQUENCE, certified, algorithm, der(BIT_STRING, Buffer.from([0]), signature))
  return {
    cert: pem('CERTIFICATE', certificate),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

function distinguishedName(commonName: string): Buffer {
  return der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, Buffer.from(commonName)))))
}

function subjectAltName(hostname: string): Buffer {
  const names = der(SEQUENCE, der(DNS_NAME, Buffer.from(hostname, 'latin1')))
  return der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, names))
}

/** RFC 5280 §4.1.2.5: two digits of the year until 2049, four from 2050 on. */
function time(ms: number): Buffer {
  const digits = `${new Date(ms).toISOString().replace(/\.\d+/, '').replace(/\D/g, '')}Z`
  return digits < '2050'
    ? der(UTC_TIME, Buffer.from(digits.slice(2)))
    : der(GENERALIZED_TIME, Buffer.from(digits))
}

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
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

function pem(label: string, octets: Buffer): string {
  const lines = octets.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
