/**
 * Checks a configuration that loads: faults, which `serve` refuses (unreadable files, two listeners on one port), and warnings (expired
 * certificates, example names, open networks).
 *
 * Called by `config check` and `doctor`, and by `serve` before it opens anything. Reads files and this machine's addresses; uses no network
 * and changes nothing. Never throws.
 */
import { X509Certificate } from 'node:crypto'
import { accessSync, constants, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { oidcFindings, oidcSettings } from '../../accounts/operators/oidc/settings.js'
import { certificateFindings } from '../../certificates/certificate-findings.js'
import type { Config } from '../../config/config.js'
import {
  fault,
  outage,
  warning,
  type Finding,
  isReachable,
  readable,
  findStat,
} from '../../config/findings.js'
import { lineOfKey } from '../../config/faults.js'
import { parseSecretKey } from '../../config/schema/secret-key.js'
import { describeError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { hasPassword } from '../../core/postgres-urls.js'
import { isSameAddress } from '../../world/net/ip-address.js'
import { markIpv6Only, type ListenAddress } from '../../world/net/listen.js'

export interface FindingsRequest {
  readonly config: Config
  /** The configuration file. */
  readonly file: string
  readonly now: number
  /** Of this machine; undefined if the system does not report them. */
  readonly addresses: readonly string[] | undefined
}

/** A network with a shorter prefix covers a large part of the Internet. */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 32 }

export function findConfigFaults(request: FindingsRequest): Finding[] {
  const { config, addresses } = request
  const findings = [
    ...hostnameFindings(config),
    ...listenerFindings(config),
    ...captureFindings(config),
    ...folderFindings(config),
    ...certificateFindings(config, request.now),
    ...authorityFindings(config),
    ...secretFindings(request),
    ...oidcFindings(oidcSettings(config)),
    ...exposureFindings(config),
    ...publicUrlFindings(config),
    ...addressFindings(config, addresses),
    ...zoneFindings(config),
  ]
  const text = textIfReadable(request.file)
  return findings.map(finding => ({ ...finding, ...given({ line: lineOfKey(text, finding.path) }) }))
}

/** Empty if the file was deleted after loading. */
function textIfReadable(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** RFC 2606: reserved names, which our examples use. */
const EXAMPLE_NAME = /(^|\.)example(\.(com|net|org))?$/
/** RFC 6761: names for testing, which never resolve in DNS. */
const TRIAL_NAME = /(^|\.)(test|localhost)$/
const LOOPBACK_NAME = /^(127\.|\[::1\]|localhost$)/

function hostnameFindings({ hostname, publicUrl, mta }: Config): Finding[] {
  const named = [
    { path: 'hostname', value: hostname, name: hostname },
    { path: 'public_url', value: publicUrl, name: new URL(publicUrl).hostname },
    { path: 'mta.return_path_domain', value: mta.returnPathDomain, name: mta.returnPathDomain },
  ]
  return named
    .filter(({ path, name }) => EXAMPLE_NAME.test(name) && (path === 'hostname' || !name.endsWith(hostname)))
    .map(({ path, value }) =>
      outage(
        path,
        `${value} is an example name: mail hosts reject it, and it does not resolve to this machine`,
        path === 'hostname' ? 'set it to the DNS name of this machine' : 'set it to a name that you own',
      ),
    )
}

/** A listener and the key that configures it. */
export interface ConfiguredListener {
  readonly key: string
  readonly address: ListenAddress
}

/** Every TCP address the server listens on, as it will be opened. */
export function configuredListeners({ http, submission, inbound, dns }: Config): ConfiguredListener[] {
  const ofHttp = [
    ...http.listen,
    ...http.listenTls,
    ...http.publicListen,
    ...http.publicListenTls,
    ...http.redirectListen,
  ]
  const keys: readonly (readonly [string, readonly ListenAddress[], (readonly ListenAddress[])?])[] = [
    ['http.listen', http.listen, ofHttp],
    ['http.listen_tls', http.listenTls, ofHttp],
    ['http.public_listen', http.publicListen, ofHttp],
    ['http.public_listen_tls', http.publicListenTls, ofHttp],
    ['http.redirect_listen', http.redirectListen, ofHttp],
    ['submission.listen', submission.listen],
    ['submission.listen_tls', submission.listenTls],
    ['inbound.listen', inbound.listen],
    ['dns.listen', dns.listen],
  ]
  return keys.flatMap(([key, addresses, all]) =>
    markIpv6Only(addresses, all).map(address => ({ key, address })),
  )
}

/** Two listeners on one port: `serve` would fail with "address already in use". */
function listenerFindings(config: Config): Finding[] {
  const all = configuredListeners(config)
  return all.flatMap((second, index) => {
    const first = all.slice(0, index).find(one => areInConflict(one.address, second.address))
    if (!first) return []
    const where = first.key === second.key ? 'the same list' : first.key
    return [
      fault(
        second.key,
        `${inWords(second.address)} uses the same port as ${inWords(first.address)} of ${where}`,
        `give one of them another port, or remove it`,
      ),
    ]
  })
}

const WILDCARDS = new Set(['0.0.0.0', '::'])

/** Whether two sockets cannot listen at the same time: on Linux a wildcard covers every address. */
export function areInConflict(one: ListenAddress, other: ListenAddress): boolean {
  if (one.port !== other.port || one.port === 0) return false
  if (isSameAddress(one.host, other.host)) return true
  return covers(one, other) || covers(other, one)
}

function covers({ host, isIpv6Only = false }: ListenAddress, other: ListenAddress): boolean {
  if (!WILDCARDS.has(host)) return false
  const isOtherIpv6 = other.host.includes(':')
  if (host === '0.0.0.0') return !isOtherIpv6 || (other.host === '::' && other.isIpv6Only !== true)
  return isOtherIpv6 || !isIpv6Only
}

export function inWords({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function captureFindings({ hostname, publicUrl, mta }: Config): Finding[] {
  const isTrial = TRIAL_NAME.test(hostname) || LOOPBACK_NAME.test(new URL(publicUrl).hostname)
  return mta.capture && !isTrial
    ? [
        outage(
          'mta.capture',
          'no mail is delivered: everything is kept in the local inbox (capture = true)',
          'set it to false and restart the server; captured mail is not sent later',
        ),
      ]
    : []
}

function folderFindings({ dataDir, databaseFile }: Config): Finding[] {
  const folder = findStat(dataDir)
  if (!folder) return [warning('data_dir', `${dataDir} does not exist yet`, 'create it: postroad init')]
  if (!folder.isDirectory())
    return [fault('data_dir', `${dataDir} is not a directory`, 'set it to a directory')]
  const findings: Finding[] = []
  if ((folder.mode & 0o007) !== 0)
    findings.push(
      warning('data_dir', `${dataDir} is accessible to every user of this machine`, `chmod 0700 ${dataDir}`),
    )
  const folders = databaseFile === undefined ? [dataDir] : [dataDir, dirname(databaseFile)]
  for (const path of new Set(folders))
    if (findStat(path) && !may(path, constants.R_OK | constants.W_OK | constants.X_OK))
      findings.push(fault('data_dir', `this user cannot write to ${path}`, `chown it to the service's user`))
  if (
    databaseFile !== undefined &&
    findStat(databaseFile) &&
    !may(databaseFile, constants.R_OK | constants.W_OK)
  )
    findings.push(
      fault('database.url', `this user cannot write to ${databaseFile}`, "chown it to the service's user"),
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
            `${mta.tlsCa} is not a CA certificate`,
            'set it to the CA certificate that signed those of your mail servers',
          ),
        ]
  } catch (error) {
    return [
      fault('mta.tls_ca', `${mta.tlsCa} cannot be used: ${describeError(error)}`, 'set it to a PEM file'),
    ]
  }
}

function secretFindings({ config, file }: FindingsRequest): Finding[] {
  const findings: Finding[] = []
  const { key } = config.secrets
  const hasSecrets =
    (key && 'bytes' in key) ||
    config.mta.routes.some(({ password }) => password !== '') ||
    [config.postgres?.url, config.postgres?.listenUrl].some(url => url !== undefined && hasPassword(url)) ||
    oidcSettings(config).clientSecret !== ''
  const stat = findStat(file)
  if (hasSecrets && stat && (stat.mode & 0o004) !== 0)
    findings.push(
      warning(
        '',
        `${file} contains passwords and is readable by every user of this machine`,
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
          `${key.file} does not contain 32 bytes in base64`,
          'create one: openssl rand -base64 32',
        ),
      )
    if (((findStat(key.file)?.mode ?? 0) & 0o007) !== 0)
      findings.push(
        warning(
          'secrets.key',
          `${key.file} is accessible to every user of this machine: anyone here can open the secrets of a backup, or sign one`,
          `chmod o= ${key.file}`,
        ),
      )
  }
  return findings
}

function exposureFindings({ http, submission, inbound }: Config): Finding[] {
  const findings: Finding[] = []
  const plain = http.listen.filter(isReachable)
  if (plain.length > 0)
    findings.push(
      warning(
        'http.listen',
        `the API is served without TLS on ${plain.map(inWords).join(', ')}: API keys can be intercepted`,
        'use http.listen_tls, or listen on 127.0.0.1 behind a reverse proxy with TLS; http.public_listen serves only the public pages',
      ),
    )
  if (!submission.requireTls && submission.listen.some(isReachable))
    findings.push(
      warning(
        'submission.require_tls',
        'logins without TLS are accepted from other machines: passwords can be intercepted',
        'set it to true, or listen on 127.0.0.1',
      ),
    )
  for (const [index, { network }] of submission.trustedNetworks.entries()) {
    if (isLarge(network))
      findings.push(
        warning(
          `submission.trusted_networks.${index}.network`,
          `${network} is a large part of the Internet: anyone there can send mail without a login`,
          'restrict it to the network of your devices, e.g. 192.168.7.0/24',
        ),
      )
  }
  for (const [section, { proxyProtocolFrom }] of Object.entries({ http, submission, inbound }))
    for (const network of proxyProtocolFrom.filter(isLarge))
      findings.push(
        warning(
          `${section}.proxy_protocol_from`,
          `${network} is a large part of the Internet: anyone there can claim any address`,
          'restrict it to the addresses of your load balancers, e.g. 10.0.0.5/32',
        ),
      )
  return findings
}

function isLarge(network: string): boolean {
  const [address = '', prefix = '0'] = network.split('/')
  return Number(prefix) < (address.includes(':') ? SHORTEST_PREFIX.ipv6 : SHORTEST_PREFIX.ipv4)
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/**
 * Links in mail that no listener serves. A listener for public pages or a configured proxy counts on any port, since ports may be mapped.
 * Only a fetch shows whether the links work (`public-url.ts`).
 */
function publicUrlFindings({ http, publicUrl, roles }: Config): Finding[] {
  // Another node serves them.
  if (!roles.http) return []
  const { protocol, port, hostname: host } = new URL(publicUrl)
  const isThisMachine = LOOPBACK_NAME.test(host)
  const isArranged =
    [
      ...http.publicListen,
      ...http.publicListenTls,
      ...http.listenTls,
      ...http.trustedProxies,
      ...http.proxyProtocolFrom,
    ].length > 0
  const wanted = port === '' ? DEFAULT_PORTS[protocol] : Number(port)
  const isPlain = protocol === 'http:' && http.listen.some(one => one.port === wanted && isReachable(one))
  if (isThisMachine || isArranged || isPlain) return []
  return [
    warning(
      'public_url',
      `links in mail lead to ${publicUrl}, but no listener serves it: unsubscribing fails`,
      protocol === 'https:'
        ? 'set http.public_listen_tls = ["[::]:443"] and http.redirect_listen = ["[::]:80"], or name your reverse proxy in http.trusted_proxies (docs/tls.md)'
        : `set http.public_listen = ["[::]:${wanted ?? 80}"], or name your reverse proxy in http.trusted_proxies (docs/tls.md)`,
    ),
  ]
}

function addressFindings({ mta }: Config, addresses: readonly string[] | undefined): Finding[] {
  // If the addresses are unknown, binding fails at delivery.
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
      outage(
        path,
        `${address} is not an address of this machine: no mail can be sent from it`,
        'correct it, or add the address to an interface (ip address)',
      ),
    )
}

/** A name server inside its own zone cannot be found without glue records. */
function zoneFindings({ dns, hostname }: Config): Finding[] {
  const isWithin = hostname === dns.dkimZone || hostname.endsWith(`.${dns.dkimZone}`)
  return dns.listen.length > 0 && isWithin
    ? [
        fault(
          'dns.dkim_zone',
          `${hostname} is inside ${dns.dkimZone}, the zone that this machine serves: the name server could not be found`,
          `use a zone that does not contain the hostname, e.g. dkim.${hostname}`,
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

/** The form that `serve` and `config check` print. */
export function findingText({ path, what, fix, line }: Finding): string {
  return `${line === undefined ? '' : `line ${line}: `}${path === '' ? '' : `${path}: `}${what}; ${fix}`
}
