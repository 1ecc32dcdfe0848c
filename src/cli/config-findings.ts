/**
 * What `serve` would refuse of a configuration that reads well, and what will hurt: files that cannot be read, certificates that are over,
 * doors that stand open.
 *
 * Called by `config check`, and by `serve`, which refuses what is a fault before it opens anything. Looks at files and at this machine's
 * own addresses; asks no network and changes nothing. Fails: never throws.
 */
import { X509Certificate } from 'node:crypto'
import { accessSync, constants, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { certificateFindings } from '../certificates/certificate-findings.js'
import type { Config } from '../config/config.js'
import { fault, warning, type Finding } from '../config/finding.js'
import { lineOfKey } from '../config/key-lines.js'
import { isReachable, readable, statIfThere } from '../config/look-at-files.js'
import { parseSecretKey } from '../config/schema/secret-key.js'
import { describeError } from '../core/errors.js'
import { given } from '../core/given.js'
import { isSameAddress } from '../world/net/ip-address.js'
import { ownAddresses } from '../world/net/own-addresses.js'

export interface FindingsRequest {
  readonly config: Config
  /** The configuration file. */
  readonly file: string
  readonly now: number
  readonly addresses?: readonly string[]
}

/** A trusted network of more addresses than this many bits leave is the Internet, or a good part of it. */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 32 }

export function findConfigFaults(request: FindingsRequest): Finding[] {
  const { config, addresses = ownAddresses() } = request
  const findings = [
    ...folderFindings(config),
    ...certificateFindings(config, request.now),
    ...authorityFindings(config),
    ...secretFindings(request),
    ...openDoors(config),
    ...publicUrlFindings(config),
    ...addressFindings(config, addresses),
    ...zoneFindings(config),
  ]
  const text = textIfReadable(request.file)
  return findings.map(finding => ({ ...finding, ...given({ line: lineOfKey(text, finding.path) }) }))
}

/** It was read a moment ago. */
function textIfReadable(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

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

function authorityFindings({ mta }: Config): Finding[] {
  if (mta.tlsCa === '') return []
  const read = readable('mta.tls_ca', mta.tlsCa)
  if ('finding' in read) return [read.finding]
  try {
    return new X509Certificate(read.text).ca
      ? []
      : [
          warning(
            'mta.tls_ca',
            `${mta.tlsCa} is no certificate of an authority`,
            'name the certificate that signed those of your mail servers',
          ),
        ]
  } catch (error) {
    return [fault('mta.tls_ca', `${mta.tlsCa} cannot be used: ${describeError(error)}`, 'name a file in PEM')]
  }
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
        'use http.listen_tls, or listen on 127.0.0.1 behind a reverse proxy with TLS; http.public_listen opens the public pages alone',
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

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/**
 * Links in mail that nobody answers. A listener for public pages, or a proxy that is named, counts as an answer on whatever port it is:
 * ports may be mapped. Only a fetch shows whether the links work (`public-url.ts`).
 */
function publicUrlFindings({ http, publicUrl }: Config): Finding[] {
  const { protocol, port, hostname: host } = new URL(publicUrl)
  const isThisMachine = /^(127\.|\[::1\]|localhost$)/.test(host)
  const isArranged =
    [...http.publicListen, ...http.publicListenTls, ...http.listenTls, ...http.trustedProxies].length > 0
  const wanted = port === '' ? DEFAULT_PORTS[protocol] : Number(port)
  const isPlain = protocol === 'http:' && http.listen.some(one => one.port === wanted && isReachable(one))
  if (isThisMachine || isArranged || isPlain) return []
  return [
    warning(
      'public_url',
      `links in mail lead to ${publicUrl}, where nothing of this appliance listens: unsubscribing fails`,
      protocol === 'https:'
        ? 'set http.public_listen_tls = ["[::]:443"] and http.redirect_listen = ["[::]:80"], or name your reverse proxy in http.trusted_proxies (docs/tls.md)'
        : `set http.public_listen = ["[::]:${wanted ?? 80}"], or name your reverse proxy in http.trusted_proxies (docs/tls.md)`,
    ),
  ]
}

function addressFindings({ mta }: Config, addresses: readonly string[] | undefined): Finding[] {
  // Where nobody tells, the delivery that cannot be bound to one will.
  if (addresses === undefined) return []
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

/** The zone's name server is this machine, and a name within the zone would have to be known before it can be asked for. */
function zoneFindings({ dns, hostname }: Config): Finding[] {
  const isWithin = hostname === dns.dkimZone || hostname.endsWith(`.${dns.dkimZone}`)
  return dns.listen.length > 0 && isWithin
    ? [
        fault(
          'dns.dkim_zone',
          `${hostname} lies in ${dns.dkimZone}, for which this machine would be the name server`,
          `name a zone of its own, e.g. dkim.${hostname}`,
        ),
      ]
    : []
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
export function findingText({ path, what, mend, line }: Finding): string {
  return `${line === undefined ? '' : `line ${line}: `}${path === '' ? '' : `${path}: `}${what}; ${mend}`
}
