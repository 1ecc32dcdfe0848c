/**
 * Certificate signing requests (CSR) and their keys, for ACME.
 *
 * Names go into subjectAltName; the subject is empty, since clients ignore it (RFC 9525 §2).
 * Standards: RFC 2986 (PKCS #10), RFC 2985 §5.4.2 (extensionRequest), RFC 5758 §3.2.
 */
import { generateKeyPair, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import {
  BIT_STRING,
  CONSTRUCTED_0,
  der,
  ECDSA_WITH_SHA256,
  INTEGER,
  SEQUENCE,
  SET,
  subjectAltNames,
} from './der.js'

const generate = promisify(generateKeyPair)

const EXTENSION_REQUEST = Buffer.from('06092a864886f70d01090e', 'hex')

/** ECDSA P-256, supported by every TLS 1.2 client. */
export function makeCertificateKey(): Promise<{ publicKey: KeyObject; privateKey: KeyObject }> {
  return generate('ec', { namedCurve: 'P-256' })
}

/** @param names in ASCII @returns DER */
export function makeCertificateRequest(
  names: readonly string[],
  { publicKey, privateKey }: { readonly publicKey: KeyObject; readonly privateKey: KeyObject },
): Buffer {
  const extensions = der(SEQUENCE, subjectAltNames(names))
  const requested = der(
    SEQUENCE,
    der(INTEGER, Buffer.from([0])),
    der(SEQUENCE),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(CONSTRUCTED_0, der(SEQUENCE, EXTENSION_REQUEST, der(SET, extensions))),
  )
  const signature = sign('sha256', requested, privateKey)
  return der(
    SEQUENCE,
    requested,
    der(SEQUENCE, ECDSA_WITH_SHA256),
    der(BIT_STRING, Buffer.from([0]), signature),
  )
}
