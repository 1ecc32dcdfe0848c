/**
 * Whether the server answers where it should, who holds its ports if not, and whether mail gets out: by port 25, and by each route.
 *
 * Called by `postroad doctor`. Connects to our own ports, to one large mail host and to the hosts of `mta.routes`, where it logs in if the
 * route has a password; never sends mail. Fails: never.
 */
import { readFileSync } from 'node:fs'
import type { Config } from '../../config/config.js'
import { describeError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import type { Endpoint } from '../../mta/routing/endpoint.js'
import { followRoute } from '../../mta/routing/route.js'
import type { Route, Timeouts } from '../../mta/mta-options.js'
import type { SmtpResult } from '../../mta/smtp-result.js'
import { openSession, quit, type OpenResult } from '../../mta/smtp/smtp-session.js'
import type { Resolver } from '../../world/dns/dns.js'
import { openDialler, type Dialler, type Socket } from '../../world/net/dial.js'
import { ipVersion, NetworkList } from '../../world/net/ip-address.js'
import type { ListenAddress } from '../../world/net/listen.js'
import { LOCAL_HEADER } from '../../world/net/proxy-header.js'
import type { World } from '../../world/world.js'
import { areInConflict, configuredListeners, inWords } from './config-findings.js'
import { fail, ok, warn, type Check, type Task } from './check.js'

export interface PortParts {
  readonly config: Config
  readonly world: Pick<World, 'clock' | 'dialler' | 'machine' | 'random' | 'systemLookup'>
  readonly resolver: Resolver
  /** Whether the server is running. */
  readonly isServing: boolean
  readonly signal: AbortSignal
}

/** A large mail host, for testing whether port 25 is open to the outside. */
export const PROBE_DOMAIN = 'gmail.com'
const CONNECT_MS = 8_000
/** Longer than `inbound.greeting_delay` is by default. */
const GREETING_MS = 3_000

export function portTasks(parts: PortParts): Task[] {
  const { config } = parts
  return [
    ...configuredListeners(config).map(({ key, address }) => ({
      name: NAMES[key] ?? key,
      subject: inWords(address),
      run: () => ownPortCheck(NAMES[key] ?? key, key, address, parts),
    })),
    { name: 'port 25 out', ifCutOff: 'fail', run: () => outgoingCheck(parts) } as const,
    ...(config.mta.capture ? [] : routesByHost(config.mta.routes)).map(route => ({
      name: 'route',
      subject: route.domain,
      run: () => routeCheck(route, parts),
    })),
  ]
}

/** Check names by key. */
const NAMES: Readonly<Record<string, string>> = {
  'http.listen': 'port http',
  'http.listen_tls': 'port https',
  'http.public_listen': 'port public',
  'http.public_listen_tls': 'port public_tls',
  'http.redirect_listen': 'port redirect',
  'submission.listen': 'port submission',
  'submission.listen_tls': 'port submission_tls',
  'inbound.listen': 'port inbound',
  'dns.listen': 'port dns',
}
/** Listeners that send a greeting in clear. */
const GREETING_KEYS = new Set(['submission.listen', 'inbound.listen'])

async function ownPortCheck(
  name: string,
  key: string,
  address: ListenAddress,
  { config, world, isServing }: PortParts,
): Promise<Check> {
  const { host, port } = address
  const where = inWords(address)
  if (port === 0) return ok(name, `${where}: any free port`)
  const to =
    host === '0.0.0.0' || (host === '::' && address.isIpv6Only !== true)
      ? '127.0.0.1'
      : host === '::'
        ? '::1'
        : host
  const greets = GREETING_KEYS.has(key) || !isServing
  // This machine connects to its own addresses from the same address.
  const isProxy = new NetworkList(proxiesOf(key, config)).contains(to)
  const seen = await dial(world, to, port, greets ? GREETING_MS : 0, isProxy ? LOCAL_HEADER : undefined)
  if (isServing && 'fault' in seen)
    return fail(
      name,
      `the server does not answer on ${where}: ${seen.fault}`,
      'restart it, and read its log: journalctl -u postroad',
    )
  const greeting = 'greeting' in seen ? seen.greeting : undefined
  const isForeign = isServing
    ? greeting !== undefined && !greeting.includes('Postroad') && greeting.startsWith('220')
    : 'greeting' in seen
  const holder = isServing && !isForeign ? undefined : await holderOf(address, world.machine)
  if (isForeign || holder !== undefined) return heldCheck(name, where, holder, greeting)
  return isServing
    ? ok(name, `the server answers on ${where}; a firewall may still block it from outside`)
    : ok(name, `${where} is free; the server is not running`)
}

/** Networks whose connections must begin with a PROXY header. */
function proxiesOf(key: string, { http, submission, inbound }: Config): readonly string[] {
  if (key.startsWith('submission.')) return submission.proxyProtocolFrom
  if (key.startsWith('inbound.')) return inbound.proxyProtocolFrom
  return key.startsWith('http.') ? http.proxyProtocolFrom : []
}

type Machine = World['machine']
type Holder = { readonly pid: number; readonly program: string } | 'unknown'

async function holderOf(address: ListenAddress, machine: Machine): Promise<Holder | undefined> {
  const holders = await machine.portHolders(address.port)
  const inTheWay = holders?.filter(one => areInConflict({ host: one.address, port: address.port }, address))
  if (inTheWay === undefined || inTheWay.length === 0) return undefined
  return inTheWay.find(one => one.process !== undefined)?.process ?? 'unknown'
}

/** Programs that commonly hold our ports, by process name, and the units that start them. */
const UNITS: Readonly<Record<string, string>> = {
  master: 'postfix',
  exim4: 'exim4',
  exim: 'exim',
  sendmail: 'sendmail',
  'sendmail-mta': 'sendmail',
  smtpd: 'opensmtpd',
  dovecot: 'dovecot',
  nginx: 'nginx',
  apache2: 'apache2',
  httpd: 'httpd',
  caddy: 'caddy',
  named: 'named',
  unbound: 'unbound',
  dnsmasq: 'dnsmasq',
}

function heldCheck(
  name: string,
  where: string,
  holder: Holder | undefined,
  greeting: string | undefined,
): Check {
  const process = holder === undefined || holder === 'unknown' ? undefined : holder
  const unit = process && UNITS[process.program]
  const who =
    process === undefined
      ? 'another program'
      : `${unit === undefined || unit === process.program ? process.program : `${unit} (${process.program})`}, process ${process.pid}`
  const says = greeting === undefined || greeting === '' ? '' : `, which says "${greeting}"`
  const fix =
    process?.program === 'systemd-resolve'
      ? 'set DNSStubListener=no in /etc/systemd/resolved.conf, or name one address in dns.listen'
      : unit === undefined
        ? `stop it, or listen on another address or port${process === undefined ? ' (as root, doctor names the program)' : ''}`
        : `systemctl disable --now ${unit}, or listen on another address or port`
  return fail(name, `${where} is held by ${who}${says}`, fix)
}

async function outgoingCheck({ config: { mta }, world, resolver }: PortParts): Promise<Check> {
  const name = 'port 25 out'
  if (mta.capture) return ok(name, 'not needed: mail is kept in the local inbox (mta.capture)')
  const all = mta.routes.find(({ domain }) => domain === '*')
  if (all) return ok(name, `not needed: all mail goes by ${all.host}:${all.port} (mta.routes)`)
  const hosts = await resolver.mx(PROBE_DOMAIN)
  const [mx] = hosts.kind === 'found' ? hosts.records : []
  const found = mx && (await resolver.ipv4(mx.exchange))
  const [address] = found?.kind === 'found' ? found.records : []
  if (mx === undefined || address === undefined)
    return warn(
      name,
      `not tried: no name server has the address of ${PROBE_DOMAIN}'s mail host`,
      'check dns.servers and the network',
    )
  const seen = await dial(world, address, mta.port, 0)
  return 'fault' in seen
    ? fail(
        name,
        `${mx.exchange} [${address}] cannot be reached: ${seen.fault}`,
        'ask your provider to open port 25 (many block it), or send all mail by a relay (mta.routes)',
      )
    : ok(name, `${mx.exchange} answers on port ${mta.port}`)
}

/** Routes to one host with the same settings are one check. */
function routesByHost(routes: readonly Route[]): Route[] {
  const all = new Map<string, Route>()
  for (const route of routes) {
    const { host, port, tls, username } = route
    const key = JSON.stringify([host, port, tls, username])
    const known = all.get(key)
    all.set(key, known ? { ...known, domain: `${known.domain}, ${route.domain}` } : route)
  }
  return [...all.values()]
}

const ROUTE_TIMEOUTS: Timeouts = {
  attemptMs: CONNECT_MS,
  connectMs: CONNECT_MS,
  greetingMs: CONNECT_MS,
  mailMs: CONNECT_MS,
  rcptMs: CONNECT_MS,
  dataMs: CONNECT_MS,
  blockMs: CONNECT_MS,
  finalDotMs: CONNECT_MS,
  quitMs: 500,
}

/** Connects as a delivery does, stopping before MAIL FROM; one working address is enough. */
async function routeCheck(route: Route, parts: PortParts): Promise<Check> {
  const { resolver, world } = parts
  const name = 'route'
  const where = `${route.domain} -> ${route.host}:${route.port}`
  const routing = await followRoute(
    {
      resolver,
      // The system resolver asks the same servers and cannot be interrupted.
      systemLookup: async host => {
        const asked = await resolver.ipv4(host)
        return asked.kind === 'unavailable' ? asked : world.systemLookup(host)
      },
    },
    route,
  )
  if (routing.kind !== 'endpoints')
    return fail(
      name,
      `${where}: ${routing.summary}`,
      'correct the host in mta.routes, publish its address, or check dns.servers',
    )
  let failed: Check | undefined
  for (const endpoint of routing.endpoints) {
    const check = sessionCheck(name, where, endpoint, await openRoute(endpoint, parts))
    if (check.status !== 'fail') return check
    failed ??= check
  }
  return failed ?? fail(name, `${where}: the host has no address`, 'correct the host in mta.routes')
}

async function openRoute(endpoint: Endpoint, { config, world, signal }: PortParts): Promise<OpenResult> {
  const { clock } = world
  const sources = config.mta.sourceAddresses
  const localAddress = sources.find(source => ipVersion(source) === ipVersion(endpoint.address))
  const parts = {
    clock,
    dialler: routeDialler(config.mta.tlsCa, world),
    hostname: config.hostname,
    timeouts: ROUTE_TIMEOUTS,
  }
  const deadline = clock.monotonic() + CONNECT_MS
  const opening = await openSession(parts, endpoint, {
    skipStartTls: false,
    deadline,
    signal,
    ...given({ localAddress }),
  })
  if ('session' in opening) void quit(opening.session.connection, ROUTE_TIMEOUTS)
  return opening
}

/** Trusts `mta.tls_ca` as deliveries do; a file that cannot be read is reported by the checks of the configuration. */
function routeDialler(file: string, { clock, dialler }: PortParts['world']): Dialler {
  if (file === '') return dialler
  try {
    return openDialler(clock, undefined, readFileSync(file, 'utf8'))
  } catch {
    return dialler
  }
}

function sessionCheck(name: string, where: string, endpoint: Endpoint, opening: OpenResult): Check {
  if ('result' in opening) return brokenRoute(name, where, endpoint, opening.result)
  const { tls } = opening.session
  const login = endpoint.auth === undefined ? '' : ', login accepted'
  if (tls === undefined)
    return ok(
      name,
      `${where} answers${login}; in clear${endpoint.tls === 'none' ? '' : ', it does not offer STARTTLS'}`,
    )
  const trust = tls.verified
    ? 'the certificate is valid'
    : `the certificate is not (${tls.unverifiedReason ?? 'unknown reason'}), which tls = "${endpoint.tls}" accepts`
  return ok(name, `${where} answers${login}; ${tls.version}, ${trust}`)
}

function brokenRoute(
  name: string,
  where: string,
  { host, tls }: Endpoint,
  { stage, failure, reply }: SmtpResult,
): Check {
  const why = failure?.text ?? `it answers ${reply?.code ?? ''} ${reply?.text ?? ''}`.trim()
  if (failure?.kind === 'tls_untrusted')
    return fail(
      name,
      `${where}: TLS does not verify: ${why}`,
      `have ${host} show a certificate for that name with its whole chain, or name its CA in mta.tls_ca`,
    )
  if (failure?.kind === 'tls_unavailable')
    return fail(
      name,
      `${where}: ${why}, which tls = "${tls}" demands`,
      'enable TLS on that host, or change tls of the route',
    )
  if (stage === 'starttls' && tls === 'opportunistic')
    return warn(
      name,
      `${where}: STARTTLS fails (${why}): mail goes in clear`,
      'repair TLS on that host, or set tls = "none"',
    )
  if (stage === 'auth')
    return fail(name, `${where}: login fails: ${why}`, 'check username and password of the route')
  return fail(name, `${where}: ${STAGES[stage] ?? stage} fails: ${why}`, `check mta.routes and ${host}`)
}

const STAGES: Readonly<Partial<Record<SmtpResult['stage'], string>>> = {
  connect: 'the connection',
  greeting: 'the greeting',
  ehlo: 'EHLO',
  starttls: 'TLS',
}

/**
 * @param greetingMs how long to wait for what the other side says first; 0 for not at all
 * @param opening sent at once
 */
export async function dial(
  { clock, dialler }: Pick<World, 'clock' | 'dialler'>,
  address: string,
  port: number,
  greetingMs: number,
  opening?: Uint8Array,
): Promise<{ readonly greeting: string } | { readonly fault: string }> {
  try {
    const socket = await dialler.connect({ namedBy: 'operator', address, port, timeoutMs: CONNECT_MS })
    if (opening !== undefined) socket.write(opening)
    const greeting = greetingMs === 0 ? '' : await readGreeting(socket, clock, greetingMs)
    socket.destroy()
    return { greeting }
  } catch (error) {
    return { fault: describeError(error) }
  }
}

/** @returns the first line, at most 100 characters without control characters; empty if nothing came */
function readGreeting(socket: Socket, clock: World['clock'], timeoutMs: number): Promise<string> {
  return new Promise(resolve => {
    const finish = (text: string) => {
      timer.cancel()
      const [line = ''] = text.split(/[\r\n]/, 1)
      resolve(line.slice(0, 100).replace(/[^\x20-\x7e]/g, '?'))
    }
    const timer = clock.after(timeoutMs, () => finish(''))
    socket
      .once('data', chunk => finish(String(chunk)))
      .once('error', () => finish(''))
      .once('close', () => finish(''))
  })
}
