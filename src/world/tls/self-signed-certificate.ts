/**
 * Self-signed X.509 certificates: enough for opportunistic TLS between mail servers (RFC 7435) and a first start. ECDSA P-256, ten years.
 *
 * Standards: RFC 5280 §4.1 (certificate), §4.2.1.6 (subjectAltName), RFC 5758 §3.2 (ecdsa-with-SHA256).
 */
import { randomBytes, sign, type KeyObject } from 'node:crypto'
import { makeCertificateKey } from './certificate-request.js'
import {
  BIT_STRING,
  CONSTRUCTED_0,
  CONSTRUCTED_3,
  der,
  derTime,
  ECDSA_WITH_SHA256,
  INTEGER,
  pem,
  SEQUENCE,
  SET,
  subjectAltNames,
  UTF8_STRING,
} from './der.js'

export interface PemPair {
  /** Followed by its chain, if any. */
  readonly cert: string
  readonly key: string
}

const DAY_MS = 86_400_000
const VALID_DAYS = 3_650
/** Maximum length (RFC 5280 appendix A.1). */
const MAX_COMMON_NAME = 64
const COMMON_NAME = Buffer.from('0603550403', 'hex')

/**
 * @param hostname ASCII; used as common name and subjectAltName
 * @param nowMs ms since epoch UTC; valid from a day earlier, for clocks that are behind
 */
export async function makeSelfSigned(hostname: string, nowMs: number): Promise<PemPair> {
  const { publicKey, privateKey } = await makeCertificateKey()
  const cert = signCertificate({
    subject: hostname,
    issuer: hostname,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    extensions: [subjectAltNames([hostname])],
    from: nowMs - DAY_MS,
    until: nowMs + VALID_DAYS * DAY_MS,
    signer: privateKey,
  })
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
}

export interface CertificateText {
  readonly subject: string
  readonly issuer: string
  /** SubjectPublicKeyInfo in DER. */
  readonly publicKey: Buffer
  readonly extensions: readonly Buffer[]
  /** Ms since epoch UTC. */
  readonly from: number
  readonly until: number
  /** ECDSA P-256. */
  readonly signer: KeyObject
}

/** @returns PEM */
export function signCertificate(text: CertificateText): string {
  const algorithm = der(SEQUENCE, ECDSA_WITH_SHA256)
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40 // positive, and no leading zero octet
  const certified = der(
    SEQUENCE,
    der(CONSTRUCTED_0, der(INTEGER, Buffer.from([2]))), // version 3
    der(INTEGER, serial),
    algorithm,
    distinguishedName(text.issuer),
    der(SEQUENCE, derTime(text.from), derTime(text.until)),
    distinguishedName(text.subject),
    text.publicKey,
    der(CONSTRUCTED_3, der(SEQUENCE, ...text.extensions)),
  )
  const signature = sign('sha256', certified, text.signer)
  return pem('CERTIFICATE', der(SEQUENCE, certified, algorithm, der(BIT_STRING, Buffer.from([0]), signature)))
}

function distinguishedName(name: string): Buffer {
  const commonName = name.length <= MAX_COMMON_NAME ? name : 'mail server'
  return der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, Buffer.from(commonName)))))
}
