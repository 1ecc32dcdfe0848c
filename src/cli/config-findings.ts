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
import { fault, outage, warning, type Finding } from '../config/finding.js'
import { lineOfKey } from '../config/key-lines.js'
import { isReachable, readable, statIfThere } from '../config/look-at-files.js'
import { parseSecretKey } from '../config/schema/secret-key.js'
import { describeError } from '../core/errors.js'
import { given } from '../core/given.js'
import { isSameAddress } from '../world/net/ip-address.js'
import { markIpv6Only, type ListenAddress } from '../world/net/listen.js'

export interface FindingsRequest {
  readonly config: Config
  /** The configuration file. */
  readonly file: string
  readonly now: number
  /** Of this machine; undefined where the system does not tell. */
  readonly addresses: readonly string[] | undefined
}

/** A trusted network of more addresses than this many bits leave is the Internet, or a good part of it. */
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

/** RFC 2606: nobody's names, that stand in our own examples. */
const EXAMPLE_NAME = /(^|\.)example(\.(com|net|org))?$/
/** RFC 6761: names for trials, which DNS never has. */
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
        `${value} is the name of the example: no mail host accepts it, and nothing finds this machine by it`,
        path === 'hostname' ? 'set it to the name of this machine in DNS' : 'set it to a name of your own',
      ),
    )
}

/** A listener, by the key that opens it. */
export interface ConfiguredListener {
  readonly key: string
  readonly address: ListenAddress
}

/** Every TCP address that the server listens on, as it will be opened. */
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

/** The second of two listeners on one port cannot be opened: `serve` would end with "address already in use". */
function listenerFindings(config: Config): Finding[] {
  const all = configuredListeners(config)
  return all.flatMap((second, index) => {
    const first = all.slice(0, index).find(one => areInConflict(one.address, second.address))
    if (!first) return []
    const where = first.key === second.key ? 'the same list' : first.key
    return [
      fault(
        second.key,
        `${inWords(second.address)} takes the same port as ${inWords(first.address)} of ${where}`,
        `give one of them another port, or remove it`,
      ),
    ]
  })
}

const WILDCARDS = new Set(['0.0.0.0', '::'])

/** Whether two sockets cannot listen at the same time: Linux takes a wildcard for every address. */
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
          'no mail is delivered: all of it is kept in the local inbox (capture = true)',
          'set it to false and restart the server; what is in the inbox is not sent later',
        ),
      ]
    : []
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
  const isThisMachine = LOOPBACK_NAME.test(host)
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
      outage(
        path,
        `${address} is not an address of this machine: no mail can be sent from it`,
        'correct it, or add the address to an interface (ip address)',
      ),
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
