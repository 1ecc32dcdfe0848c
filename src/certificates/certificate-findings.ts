/**
 * Faults and warnings about the configured certificate or ACME settings.
 *
 * Used by `config check`, `serve` and `doctor`. Reads files, uses no network, never throws.
 */
import { X509Certificate } from 'node:crypto'
import type { Config } from '../config/config.js'
import { fault, outage, warning, type Finding, isReachable, readable, findStat } from '../config/findings.js'
import { describeError } from '../core/errors.js'
import { assertUsable } from '../world/tls/tls-certificate.js'
import { acmeNames } from './acme/names.js'

const DAY_MS = 86_400_000
const EXPIRY_WARNING_MS = 14 * DAY_MS
const HTTP_PORT = 80

export function certificateFindings(config: Config, now: number): Finding[] {
  return [...redirectFindings(config), ...sourceFindings(config, now)]
}

function redirectFindings({ http, publicUrl }: Config): Finding[] {
  return http.redirectListen.length > 0 && !publicUrl.startsWith('https:')
    ? [
        fault(
          'http.redirect_listen',
          `it redirects to public_url, which is not an https URL: ${publicUrl}`,
          'set public_url to an https URL',
        ),
      ]
    : []
}

function sourceFindings(config: Config, now: number): Finding[] {
  const { tls, hostname } = config
  if (tls.acme) return acmeFindings(config)
  if (tls.cert === '' && tls.key === '') return selfSignedFindings(config)
  if (tls.cert === '' || tls.key === '')
    return [fault('tls', 'only one of tls.cert and tls.key is set', 'set both')]
  const [cert, key] = [readable('tls.cert', tls.cert), readable('tls.key', tls.key)]
  const unread = [cert, key].flatMap(one => ('finding' in one ? [one.finding] : []))
  if (!('text' in cert) || !('text' in key)) return unread
  try {
    assertUsable({ cert: cert.text, key: key.text })
  } catch (error) {
    return [
      fault(
        'tls.cert',
        `${tls.cert} and ${tls.key} cannot be used: ${describeError(error)}`,
        'set both to a PEM certificate and its matching key',
      ),
    ]
  }
  return [
    ...validityFindings(new X509Certificate(cert.text), tls.cert, hostname, now),
    ...keyFileFindings(tls.key),
  ]
}

function selfSignedFindings({ hostname, submission, http }: Config): Finding[] {
  const fix = `set tls.acme, or tls.cert and tls.key to a certificate for ${hostname}`
  const isSubmissionOpen =
    submission.requireTls && [...submission.listen, ...submission.listenTls].some(isReachable)
  const isWebOpen = [...http.listenTls, ...http.publicListenTls].some(isReachable)
  return isSubmissionOpen || isWebOpen
    ? [warning('tls.cert', 'a self-signed certificate is used, which clients reject or do not verify', fix)]
    : []
}

function acmeFindings(config: Config): Finding[] {
  const { tls, hostname, dns } = config
  const findings: Finding[] = []
  if (tls.cert !== '' || tls.key !== '')
    findings.push(
      fault('tls.acme', 'tls.cert and tls.key are also set', 'clear those two, or set acme to false'),
    )
  if (!tls.acmeTermsAgreed)
    findings.push(
      fault(
        'tls.acme_terms_agreed',
        'CAs only issue certificates if you agree to their terms of service',
        "read them (Let's Encrypt: https://letsencrypt.org/repository/) and set it to true",
      ),
    )
  if (!hostname.includes('.'))
    findings.push(
      fault(
        'tls.acme',
        `no CA issues certificates for ${hostname}`,
        'set hostname to a fully qualified name',
      ),
    )
  const { protocol, hostname: host } = new URL(tls.acmeDirectory)
  if (protocol !== 'https:' && !/^(127\.|\[::1\]|localhost$)/.test(host))
    findings.push(fault('tls.acme_directory', 'ACME requires https', 'set it to an https URL'))
  if (tls.acmeCa !== '') {
    const read = readable('tls.acme_ca', tls.acmeCa)
    if ('finding' in read) findings.push(read.finding)
  }
  if (tls.acmeChallenge === 'dns' && dns.listen.length === 0)
    findings.push(
      fault(
        'tls.acme_challenge',
        'DNS challenges are published in dns.dkim_zone, which this appliance does not serve',
        'set dns.listen, or acme_challenge = "http"',
      ),
    )
  if (tls.acmeChallenge === 'http') findings.push(...portFindings(config))
  return findings
}

/** RFC 8555 §8.3: the CA connects to port 80. `redirect_listen` counts on any port, since a container or router may map it. */
function portFindings(config: Config): Finding[] {
  const { http } = config
  const plain = [...http.listen, ...http.publicListen]
  return http.redirectListen.length > 0 || plain.some(({ port }) => port === HTTP_PORT)
    ? []
    : [
        warning(
          'http.redirect_listen',
          `the CA checks port 80 of ${acmeNames(config).join(' and ')}, where this server does not listen`,
          'set it to ["[::]:80"], or have your web server forward /.well-known/acme-challenge/ to http.listen or http.public_listen',
        ),
      ]
}

function validityFindings(
  certificate: X509Certificate,
  file: string,
  hostname: string,
  now: number,
): Finding[] {
  const findings: Finding[] = []
  const endsAt = Date.parse(certificate.validTo)
  const days = Math.floor((endsAt - now) / DAY_MS)
  const renew = 'renew it; changed files are loaded within a minute'
  if (endsAt <= now)
    findings.push(outage('tls.cert', `${file} expired ${certificate.validTo}: clients reject it`, renew))
  else if (endsAt - now < EXPIRY_WARNING_MS)
    findings.push(warning('tls.cert', `${file} expires in ${days} days`, renew))
  if (Date.parse(certificate.validFrom) > now)
    findings.push(
      outage(
        'tls.cert',
        `${file} is not valid before ${certificate.validFrom}: clients reject it`,
        'check the clock of this machine, or use a certificate that is valid now',
      ),
    )
  if (certificate.checkHost(hostname) === undefined)
    findings.push(
      outage(
        'tls.cert',
        `${file} is not for ${hostname}, but for ${namesOf(certificate)}: clients reject it`,
        `get one for ${hostname}, or change hostname`,
      ),
    )
  return findings
}

/** The first names in the certificate. */
function namesOf({ subjectAltName, subject }: X509Certificate): string {
  const names = (subjectAltName ?? subject).split(/, |\n/).map(name => name.replace(/^(DNS:|CN=)/, ''))
  return names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ')
}

function keyFileFindings(file: string): Finding[] {
  const stat = findStat(file)
  return stat && (stat.mode & 0o007) !== 0
    ? [warning('tls.key', `${file} is readable by every user of this machine`, `chmod o= ${file}`)]
    : []
}
