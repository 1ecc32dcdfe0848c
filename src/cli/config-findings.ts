/**
 * What `serve` would refuse of a configuration that reads well, and what will hurt: files that cannot be read, certificates that are over,
 * doors that stand open.
 *
 * Called by `config check`, and by `serve`, which refuses what is a fault before it opens anything. Looks at files and at this machine's
 * own addresses; asks no network and changes nothing. Fails: never throws.
 */
import { X509Certificate } from 'node:crypto'
import { accessSync, constants, readFileSync, statSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../config/config.js'
import { parseSecretKey } from '../config/schema/secret-key.js'
import { describeError } from '../core/errors.js'
import { addressKind } from '../world/net/address-kind.js'
import { isSameAddress } from '../world/net/ip-address.js'
import type { ListenAddress } from '../world/net/listen.js'
import { ownAddresses } from '../world/net/own-addresses.js'
import { assertUsable } from '../world/tls/tls-certificate.js'

export interface Finding {
  /** `fault`: `serve` refuses it. */
  readonly severity: 'fault' | 'warning'
  /** The key that it is about, dotted. */
  readonly path: string
  readonly what: string
  /** What to do. */
  readonly mend: string
}

export interface FindingsRequest {
  readonly config: Config
  /** The configuration file. */
  readonly file: string
  readonly now: number
  readonly addresses?: readonly string[]
}

const DAY_MS = 86_400_000
const EXPIRY_WARNING_MS = 14 * DAY_MS
/** A trusted network of more addresses than this many bits leave is the Internet, or a good part of it. */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 32 }

export function findConfigFaults(request: FindingsRequest): Finding[] {
  const { config, addresses = ownAddresses() } = request
  return [
    ...folderFindings(config),
    ...certificateFindings(config, request.now),
    ...secretFindings(request),
    ...openDoors(config),
    ...addressFindings(config, addresses),
  ]
}

const fault = (path: string, what: string, mend: string): Finding => ({ severity: 'fault', path, what, mend })
const warning = (path: string, what: string, mend: string): Finding => ({
  severity: 'warning',
  path,
  what,
  mend,
})

function folderFindings({ dataDir, databaseFile }: Config): Finding[] {
  const folder = statIfThere(dataDir)
  if (!folder) return [warning('data_dir', `${dataDir} is not there yet`, 'postroad init makes it')]
  if (!folder.isDirectory()) return [fault('data_dir', `${dataDir} is no folder`, 'name another')]
  const findings: Finding[] = []
  if ((folder.mode & 0o007) !== 0)
    findings.push(
      warning('data_dir', `${dataDir} is open to every user of this machine`, `chmod 0700 ${dataDir}`),
    )
  for (const path of new Set([dataDir, dirname(databaseFile)]))
    if (statIfThere(path) && !may(path, constants.R_OK | constants.W_OK | constants.X_OK))
      findings.push(
        fault('data_dir', `this user may not write ${path}`, `chown it to the user of the service`),
      )
  const file = statIfThere(databaseFile)
  if (file && !may(databaseFile, constants.R_OK | constants.W_OK))
    findings.push(
      fault('database.url', `this user may not write ${databaseFile}`, 'chown it to the user of the service'),
    )
  return findings
}

function certificateFindings({ tls, hostname, submission }: Config, now: number): Finding[] {
  if (tls.cert === '' && tls.key === '')
    return submission.requireTls && [...submission.listen, ...submission.listenTls].some(isReachable)
      ? [
          warning(
            'tls.cert',
            'clients are shown a self-signed certificate, which they refuse or do not check',
            `set tls.cert and tls.key to a certificate for ${hostname}`,
          ),
        ]
      : []
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

function validityFindings(
  certificate: X509Certificate,
  file: string,
  hostname: string,
  now: number,
): Finding[] {
  const findings: Finding[] = []
  const endsAt = Date.parse(certificate.validTo)
  const days = Math.floor((endsAt - now) / DAY_MS)
  const renew = 'renew it, then `systemctl reload postroad` (SIGHUP)'
  if (endsAt <= now) findings.push(warning('tls.cert', `${file} ended ${certificate.validTo}`, renew))
  else if (endsAt - now < EXPIRY_WARNING_MS)
    findings.push(warning('tls.cert', `${file} ends in ${days} days`, renew))
  if (Date.parse(certificate.validFrom) > now)
    findings.push(
      warning('tls.cert', `${file} is valid only from ${certificate.validFrom}`, 'look at the clock'),
    )
  if (certificate.checkHost(hostname) === undefined)
    findings.push(
      warning('tls.cert', `${file} is not for ${hostname}`, `get one for ${hostname}, or change hostname`),
    )
  return findings
}

function keyFileFindings(file: string): Finding[] {
  const stat = statIfThere(file)
  return stat && (stat.mode & 0o007) !== 0
    ? [warning('tls.key', `every user of this machine may read ${file}`, `chmod o= ${file}`)]
    : []
}

function secretFindings({ config, file }: FindingsRequest): Finding[] {
  const findings: Finding[] = []
  const { key } = config.secrets
  const hasSecrets = (key && 'bytes' in key) || config.mta.routes.some(({ password }) => password !== '')
  const stat = statIfThere(file)
  if (hasSecrets && stat && (stat.mode & 0o004) !== 0)
    findings.push(
      warning(
        '',
        `passwords stand in ${file}, which every user of this machine may read`,
        `chmod o= ${file}`,
      ),
    )
  if (key !== undefined && 'file' in key) {
    const read = readable('secrets.key', key.file)
    if ('finding' in read) findings.push(read.finding)
    else if (!parseSecretKey(read.text.trim()))
      findings.push(
        fault(
          'secrets.key',
          `${key.file} does not hold 32 bytes in base64`,
          'openssl rand -base64 32 makes one',
        ),
      )
  }
  return findings
}

function openDoors({ http, submission }: Config): Finding[] {
  const findings: Finding[] = []
  const plain = http.listen.filter(isReachable)
  if (plain.length > 0)
    findings.push(
      warning(
        'http.listen',
        `the API answers in plain HTTP at ${plain.map(({ host, port }) => `${host}:${port}`).join(', ')}: keys can be read on the way`,
        'listen on 127.0.0.1 behind a reverse proxy with TLS; http.public_listen opens the public pages alone',
      ),
    )
  if (!submission.requireTls && submission.listen.some(isReachable))
    findings.push(
      warning(
        'submission.require_tls',
        'logins are taken without TLS where others than this machine can connect',
        'set it to true, or listen on 127.0.0.1',
      ),
    )
  for (const [index, { network }] of submission.trustedNetworks.entries()) {
    const [address = '', prefix = '0'] = network.split('/')
    const shortest = address.includes(':') ? SHORTEST_PREFIX.ipv6 : SHORTEST_PREFIX.ipv4
    if (Number(prefix) < shortest)
      findings.push(
        warning(
          `submission.trusted_networks.${index}.network`,
          `${network} trusts a good part of the Internet: anybody there can send without a login`,
          'name the network of your devices, e.g. 192.168.7.0/24',
        ),
      )
  }
  return findings
}

function addressFindings({ mta }: Config, addresses: readonly string[]): Finding[] {
  const named = [
    ...mta.sourceAddresses.map(address => ({ path: 'mta.source_addresses', address })),
    ...mta.sourcePools.flatMap((pool, index) =>
      pool.addresses.map(address => ({ path: `mta.source_pools.${index}.addresses`, address })),
    ),
  ]
  return named
    .filter(({ address }) => !addresses.some(own => isSameAddress(own, address)))
    .map(({ path, address }) =>
      warning(path, `this machine does not have ${address}: nothing can be sent from it`, 'see `ip address`'),
    )
}

/** From anywhere but this machine and its private networks. */
function isReachable({ host }: ListenAddress): boolean {
  return host === '0.0.0.0' || host === '::' || addressKind(host) === 'public'
}

function readable(path: string, file: string): { readonly text: string } | { readonly finding: Finding } {
  try {
    return { text: readFileSync(file, 'utf8') }
  } catch (error) {
    return {
      finding: fault(
        path,
        `${file} cannot be read: ${describeError(error)}`,
        'name a file that is there, and let the user of the service read it',
      ),
    }
  }
}

function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}

/** As `serve` and `config check` print them. */
export function findingText({ path, what, mend }: Finding): string {
  return `${path === '' ? '' : `${path}: `}${what}; ${mend}`
}
