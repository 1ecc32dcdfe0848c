/**
 * The certificate that this server shows: read from PEM files, or self-signed where none is configured, and read again
 * when the files have been renewed.
 *
 * Opened by the composition root; the SMTP listeners ask `secureContext()` at each handshake, so a renewed certificate
 * counts from the next connection on. The key is never logged and stands in no error.
 * Fails: opening and `reload` throw an Error that names the file and what is wrong; after a failed reload the former
 * certificate stays in use.
 */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Clock } from '../time/clock.js'
import { makeSelfSigned, type PemPair } from './self-signed-certificate.js'

export interface TlsCertificate {
  secureContext(): SecureContext
  /** End of validity, ms since epoch UTC, of the certificate in use. */
  readonly expiresAt: number
  readonly isSelfSigned: boolean
  /** Reads the files again, as after SIGHUP; a self-signed certificate stays what it is. */
  reload(): Promise<void>
}

export interface CertificateFiles {
  /** Paths of PEM files: the certificate with its chain, and the private key. Both empty: a self-signed one is made. */
  readonly cert: string
  readonly key: string
  /** The name in the self-signed certificate. */
  readonly hostname: string
}

interface Loaded {
  readonly context: SecureContext
  readonly expiresAt: number
}

export async function openTlsCertificate(files: CertificateFiles, clock: Clock): Promise<TlsCertificate> {
  const isSelfSigned = files.cert === '' && files.key === ''
  if (!isSelfSigned && (files.cert === '' || files.key === ''))
    throw new Error('tls.cert and tls.key belong together: only one of them is set')
  let loaded = isSelfSigned
    ? load(await makeSelfSigned(files.hostname, clock.now()), 'the self-signed certificate')
    : await loadFiles(files)
  return {
    isSelfSigned,
    secureContext: () => loaded.context,
    get expiresAt() {
      return loaded.expiresAt
    },
    async reload() {
      if (!isSelfSigned) loaded = await loadFiles(files)
    },
  }
}

async function loadFiles(files: CertificateFiles): Promise<Loaded> {
  // One after the other, so that the fault that is told is the same each time.
  const cert = await readPem(files.cert)
  const key = await readPem(files.key)
  return load({ cert, key }, `${files.cert} and ${files.key}`)
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new Error(`cannot read ${file}: ${inWords(error)}`, { cause: error })
  }
}

/** For `config check`. @throws Error saying what is wrong with the pair */
export function assertUsable({ cert, key }: PemPair): void {
  createSecureContext({ cert, key })
}

function load(pair: PemPair, name: string): Loaded {
  try {
    // OpenSSL refuses a key that is not the certificate's.
    const context = createSecureContext({ cert: pair.cert, key: pair.key })
    return { context, expiresAt: Date.parse(new X509Certificate(pair.cert).validTo) }
  } catch (error) {
    throw new Error(`${name} cannot be used: ${inWords(error)}`, { cause: error })
  }
}

function inWords(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
