/**
 * What is wrong, or will be, with the certificate that a configuration names, or with how it has one made.
 *
 * Called by `config check`, `serve` and `doctor`. Reads files, asks no network. Fails: never.
 */
import { X509Certificate } from 'node:crypto'
import type { Config } from '../config/config.js'
import { fault, outage, warning, type Finding } from '../config/finding.js'
import { isReachable, readable, statIfThere } from '../config/look-at-files.js'
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
          `public_url, where it leads to, is no https URL: ${publicUrl}`,
          'set public_url to one',
        ),
      ]
    : []
}

function sourceFindings(config: Config, now: number): Finding[] {
  const { tls, hostname } = config
  if (tls.acme) return acmeFindings(config)
  if (tls.cert === '' && tls.key === '') return selfSignedFindings(config)
  if (tls.cert === '' || tls.key === '')
    return [fault('tls', 'tls.cert and tls.key belong together: only one of them is set', 'set both')]
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
        'name a certificate in PEM with its own key',
      ),
    ]
  }
  return [
    ...validityFindings(new X509Certificate(cert.text), tls.cert, hostname, now),
    ...keyFileFindings(tls.key),
  ]
}

function selfSignedFindings({ hostname, submission, http }: Config): Finding[] {
  const mend = `set tls.acme, or tls.cert and tls.key to a certificate for ${hostname}`
  const isSubmissionOpen =
    submission.requireTls && [...submission.listen, ...submission.listenTls].some(isReachable)
  const isWebOpen = [...http.listenTls, ...http.publicListenTls].some(isReachable)
  return isSubmissionOpen || isWebOpen
    ? [
        warning(
          'tls.cert',
          'clients are shown a self-signed certificate, which they refuse or do not check',
          mend,
        ),
      ]
    : []
}

function acmeFindings(config: Config): Finding[] {
  const { tls, hostname, dns } = config
  const findings: Finding[] = []
  if (tls.cert !== '' || tls.key !== '')
    findings.push(
      fault(
        'tls.acme',
        'tls.cert and tls.key name a certificate already',
        'leave those two empty, or acme false',
      ),
    )
  if (!tls.acmeTermsAgreed)
    findings.push(
      fault(
        'tls.acme_terms_agreed',
        'a CA makes certificates for those alone who agree to its terms',
        "read them (Let's Encrypt: https://letsencrypt.org/repository/) and set it to true",
      ),
    )
  if (!hostname.includes('.'))
    findings.push(
      fault('tls.acme', `no CA makes a certificate for ${hostname}`, 'set hostname to its full name'),
    )
  const { protocol, hostname: host } = new URL(tls.acmeDirectory)
  if (protocol !== 'https:' && !/^(127\.|\[::1\]|localhost$)/.test(host))
    findings.push(fault('tls.acme_directory', 'ACME is spoken over https alone', 'name an https URL'))
  if (tls.acmeCa !== '') {
    const read = readable('tls.acme_ca', tls.acmeCa)
    if ('finding' in read) findings.push(read.finding)
  }
  if (tls.acmeChallenge === 'dns' && dns.listen.length === 0)
    findings.push(
      fault(
        'tls.acme_challenge',
        'dns.dkim_zone, where proofs by DNS stand, is not answered for by this appliance',
        'set dns.listen, or acme_challenge = "http"',
      ),
    )
  if (tls.acmeChallenge === 'http') findings.push(...portFindings(config))
  return findings
}

/** RFC 8555 §8.3: the CA begins at port 80. `redirect_listen` is for that port whatever its own is: a container or router may map it. */
function portFindings(config: Config): Finding[] {
  const { http } = config
  const plain = [...http.listen, ...http.publicListen]
  return http.redirectListen.length > 0 || plain.some(({ port }) => port === HTTP_PORT)
    ? []
    : [
        warning(
          'http.redirect_listen',
          `the CA looks for its proof at port 80 of ${acmeNames(config).join(' and ')}, where nothing of ours listens`,
          'set it to ["[::]:80"], or have your web server pass /.well-known/acme-challenge/ on to http.listen or http.public_listen',
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
  const renew = 'renew it; changed files are taken over within a minute'
  if (endsAt <= now)
    findings.push(outage('tls.cert', `${file} expired ${certificate.validTo}: clients refuse it`, renew))
  else if (endsAt - now < EXPIRY_WARNING_MS)
    findings.push(warning('tls.cert', `${file} expires in ${days} days`, renew))
  if (Date.parse(certificate.validFrom) > now)
    findings.push(
      outage(
        'tls.cert',
        `${file} is not valid before ${certificate.validFrom}: clients refuse it`,
        'check the clock of this machine, or use a certificate that is valid now',
      ),
    )
  if (certificate.checkHost(hostname) === undefined)
    findings.push(
      outage(
        'tls.cert',
        `${file} is not for ${hostname}, but for ${namesOf(certificate)}: clients refuse it`,
        `get one for ${hostname}, or change hostname`,
      ),
    )
  return findings
}

/** As the certificate lists them, the first few. */
function namesOf({ subjectAltName, subject }: X509Certificate): string {
  const names = (subjectAltName ?? subject).split(/, |\n/).map(name => name.replace(/^(DNS:|CN=)/, ''))
  return names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ')
}

function keyFileFindings(file: string): Finding[] {
  const stat = statIfThere(file)
  return stat && (stat.mode & 0o007) !== 0
    ? [warning('tls.key', `every user of this machine may read ${file}`, `chmod o= ${file}`)]
    : []
}
