/**
 * The server's TLS certificate: loaded from PEM files, issued by ACME or self-signed, and replaceable at runtime.
 *
 * Listeners look it up at each handshake, so a renewed one applies to the next connection. An unreadable, expired or mismatched
 * certificate never replaces a valid one. The key appears in no log and no error.
 * Opening, `reload`, `reloadIfChanged` and `use` throw an error that says what is wrong; the current certificate stays in use then.
 */
import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Clock } from '../time/clock.js'
import { makeSelfSigned, type PemPair } from './self-signed-certificate.js'
import { SERVER_TLS } from './server-tls.js'

export interface TlsCertificate {
  secureContext(): SecureContext
  /** The current pair; a new object when it changed. */
  pair(): PemPair
  /** Ms since epoch UTC. */
  readonly validFrom: number
  readonly expiresAt: number
  readonly isSelfSigned: boolean
  isFor(name: string): boolean
  /** Reloads the files; does nothing without files. */
  reload(): Promise<void>
  /** @returns whether the certificate changed */
  reloadIfChanged(): Promise<boolean>
  /** Replaces the certificate. @param origin names the source in errors */
  use(pair: PemPair, origin: string): void
}

export interface CertificateFiles {
  /** Paths of PEM files (certificate with chain, private key); both empty for a self-signed one. */
  readonly cert: string
  readonly key: string
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
    throw new Error('tls.cert and tls.key must be set together; only one of them is set')
  let isSelfSigned = !hasFiles
  let seen = await fingerprintOf(files)
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
    if (rankOf(candidate, files.hostname, now) >= rankOf(current, files.hostname, now)) return
    const reason = !isValidAt(candidate, now)
      ? `it is valid from ${candidate.certificate.validFrom} until ${candidate.certificate.validTo}`
      : `it is not for ${files.hostname}`
    throw new Error(`${origin}: not used because ${reason}; the current certificate stays in use`)
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
      seen = await fingerprintOf(files)
      exchange(await loadFiles(files), describeFiles(files))
    },
    async reloadIfChanged() {
      const marks = await fingerprintOf(files)
      if (!hasFiles || marks === seen) return false
      seen = marks
      return exchange(await loadFiles(files), describeFiles(files))
    },
    use(pair, origin) {
      const candidate = load(pair, origin)
      // Any issued certificate is better than a self-signed one.
      if (!isSelfSigned) assertNoWorse(candidate, loaded, origin)
      loaded = candidate
      isSelfSigned = false
    },
  }
}

const describeFiles = ({ cert, key }: CertificateFiles): string => `${cert} and ${key}`

function isValidAt({ validFrom, expiresAt }: Loaded, now: number): boolean {
  return validFrom <= now && now < expiresAt
}

/** Validity outranks the name: clients that check names check dates too. */
function rankOf(loaded: Loaded, hostname: string, now: number): number {
  const isForHost = loaded.certificate.checkHost(hostname) !== undefined
  return (isValidAt(loaded, now) ? 2 : 0) + (isForHost ? 1 : 0)
}

/** Changes when a file is replaced, written or, with certbot, its symlink is redirected. */
async function fingerprintOf({ cert, key }: CertificateFiles): Promise<string> {
  const marks = [cert, key].map(async file => {
    const found = await stat(file).catch(() => undefined)
    return found ? `${found.ino}/${found.size}/${found.ctimeMs}` : ''
  })
  return (await Promise.all(marks)).join(' ')
}

async function loadFiles(files: CertificateFiles): Promise<Loaded> {
  // Sequential, so the reported error is deterministic.
  const cert = await readPem(files.cert)
  const key = await readPem(files.key)
  return load({ cert, key }, describeFiles(files))
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new Error(`cannot read ${file}: ${messageOf(error)}`, { cause: error })
  }
}

/** For `config check`. @throws Error if certificate and key cannot be used */
export function assertUsable({ cert, key }: PemPair): void {
  createSecureContext({ ...SERVER_TLS, cert, key })
}

function load(pair: PemPair, name: string): Loaded {
  try {
    // OpenSSL rejects a key that does not match the certificate.
    const context = createSecureContext({ ...SERVER_TLS, cert: pair.cert, key: pair.key })
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
