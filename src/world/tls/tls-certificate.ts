/**
 * The certificate that this server shows: read from PEM files, or self-signed where none is configured, and exchanged for another
 * one while connections go on.
 *
 * Opened by the composition root; SMTP and HTTPS listeners ask for it at each handshake, so that a renewed certificate
 * counts from the next connection on. What cannot be used, is over, or is for another name never takes the place of a
 * certificate that is none of that. The key is never logged and stands in no error.
 * Fails: opening, `reload`, `look` and `take` throw an Error that says what is wrong; the former certificate stays in use.
 */
import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Clock } from '../time/clock.js'
import { makeSelfSigned, type PemPair } from './self-signed-certificate.js'

export interface TlsCertificate {
  secureContext(): SecureContext
  /** The pair in use; another object as soon as it is another one. */
  pair(): PemPair
  /** Validity of the certificate in use, ms since epoch UTC. */
  readonly validFrom: number
  readonly expiresAt: number
  readonly isSelfSigned: boolean
  /** Whether the certificate in use is for this host name. */
  isFor(name: string): boolean
  /** Reads the files again, as after SIGHUP; what was not read from files stays what it is. */
  reload(): Promise<void>
  /** Reads the files again where they are others than before. @returns whether another certificate is in use now */
  look(): Promise<boolean>
  /** Shows this one from now on. */
  take(pair: PemPair, origin: string): void
}

export interface CertificateFiles {
  /** Paths of PEM files: the certificate with its chain, and the private key. Both empty: a self-signed one is made. */
  readonly cert: string
  readonly key: string
  /** The name in the self-signed certificate, and the one that others should be for. */
  readonly hostname: string
}

interface Loaded {
  readonly pair: PemPair
  readonly context: SecureContext
  readonly certificate: X509Certificate
  readonly validFrom: number
  readonly expiresAt: number
}

export async function openTlsCertificate(files: CertificateFiles, clock: Clock): Promise<TlsCertificate> {
  const hasFiles = files.cert !== '' || files.key !== ''
  if (hasFiles && (files.cert === '' || files.key === ''))
    throw new Error('tls.cert and tls.key belong together: only one of them is set')
  let isSelfSigned = !hasFiles
  let seen = await marksOf(files)
  let loaded = hasFiles
    ? await loadFiles(files)
    : load(await makeSelfSigned(files.hostname, clock.now()), 'the self-signed certificate')

  const exchange = (candidate: Loaded, origin: string): boolean => {
    assertNoWorse(candidate, loaded, origin)
    const isOther = candidate.pair.cert !== loaded.pair.cert || candidate.pair.key !== loaded.pair.key
    loaded = candidate
    return isOther
  }
  const assertNoWorse = (candidate: Loaded, current: Loaded, origin: string): void => {
    const now = clock.now()
    if (worthOf(candidate, files.hostname, now) >= worthOf(current, files.hostname, now)) return
    const reason = !isValidAt(candidate, now)
      ? `it is valid from ${candidate.certificate.validFrom} until ${candidate.certificate.validTo}`
      : `it is not for ${files.hostname}`
    throw new Error(`${origin}: the certificate in use is better, ${reason}`)
  }

  return {
    secureContext: () => loaded.context,
    pair: () => loaded.pair,
    get validFrom() {
      return loaded.validFrom
    },
    get expiresAt() {
      return loaded.expiresAt
    },
    get isSelfSigned() {
      return isSelfSigned
    },
    isFor: name => loaded.certificate.checkHost(name) !== undefined,
    async reload() {
      if (!hasFiles) return
      seen = await marksOf(files)
      exchange(await loadFiles(files), inWords(files))
    },
    async look() {
      const marks = await marksOf(files)
      if (!hasFiles || marks === seen) return false
      seen = marks
      return exchange(await loadFiles(files), inWords(files))
    },
    take(pair, origin) {
      const candidate = load(pair, origin)
      // Whatever somebody has signed is better than what nobody did.
      if (!isSelfSigned) assertNoWorse(candidate, loaded, origin)
      loaded = candidate
      isSelfSigned = false
    },
  }
}

const inWords = ({ cert, key }: CertificateFiles): string => `${cert} and ${key}`

function isValidAt({ validFrom, expiresAt }: Loaded, now: number): boolean {
  return validFrom <= now && now < expiresAt
}

/** That it is valid counts for more than whom it is for: who looks at names looks at dates as well. */
function worthOf(loaded: Loaded, hostname: string, now: number): number {
  const isForHost = loaded.certificate.checkHost(hostname) !== undefined
  return (isValidAt(loaded, now) ? 2 : 0) + (isForHost ? 1 : 0)
}

/** What tells whether files are others than before, however they were exchanged (certbot changes what a link leads to). */
async function marksOf({ cert, key }: CertificateFiles): Promise<string> {
  const marks = [cert, key].map(async file => {
    const found = await stat(file).catch(() => undefined)
    return found ? `${found.ino}/${found.size}/${found.ctimeMs}` : ''
  })
  return (await Promise.all(marks)).join(' ')
}

async function loadFiles(files: CertificateFiles): Promise<Loaded> {
  // One after the other, so that the fault that is told is the same each time.
  const cert = await readPem(files.cert)
  const key = await readPem(files.key)
  return load({ cert, key }, inWords(files))
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new Error(`cannot read ${file}: ${messageOf(error)}`, { cause: error })
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
    const certificate = new X509Certificate(pair.cert)
    const validFrom = Date.parse(certificate.validFrom)
    return { pair, context, certificate, validFrom, expiresAt: Date.parse(certificate.validTo) }
  } catch (error) {
    throw new Error(`${name} cannot be used: ${messageOf(error)}`, { cause: error })
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
