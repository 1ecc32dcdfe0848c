/**
 * Where a recipient's mail goes: the operator's routes first, then MX.
 *
 * Called by `smtp-agent.ts`. Never dials. Standards: RFC 5321 §5.1 (MX, implicit MX, ourselves in the list), RFC 7505
 * (null MX), RFC 8461 §5 (hosts that a policy does not list). Fails: never rejects; a domain that cannot be reached is an
 * answer like any other, and one that DNS could not tell about is "later".
 */
import type { Classification, HostTried } from '../mail/outcome.js'
import type { MxRecord, Resolver } from '../world/dns.js'
import { ipVersion, isLoopbackOrUnspecified, isSameAddress } from '../world/ip-address.js'
import type { Random } from '../world/random.js'
import type { SystemLookup } from '../world/system-names.js'
import { matchesPattern } from './domain-pattern.js'
import type { Endpoint } from './endpoint.js'
import { findAddresses, interleave, type HostAddresses } from './host-addresses.js'
import type { Route, TlsSite } from './mta-options.js'
import type { StsLookup, StsPolicies } from './mta-sts.js'
import {
  NO_ADDRESS,
  NO_DOMAIN,
  NULL_MX,
  OURSELVES,
  STS_FAILURE,
  type RoutingVerdict,
} from './routing-verdict.js'
import { demandOf, isForbidden, NOT_LISTED } from './tls-demand.js'

export interface RouterParts {
  readonly resolver: Resolver
  readonly systemLookup: SystemLookup
  readonly random: Random
  readonly routes: readonly Route[]
  /** Port of MX hosts: 25. */
  readonly port: number
  /** Our name in DNS; an MX that bears it is ourselves. */
  readonly hostname: string
  /** Our own public addresses, as far as the operator told them. */
  readonly ownAddresses: readonly string[]
  /** What the operator demands of TLS at certain MX hosts or domains. */
  readonly tlsSites?: readonly TlsSite[]
  /** Absent: MTA-STS is not applied. */
  readonly stsPolicies?: StsPolicies
}

export type Routing =
  | {
      readonly kind: 'endpoints'
      /** In the order to be tried; never empty. */
      readonly endpoints: readonly Endpoint[]
      /** MX hosts that must not be tried, for the trace. */
      readonly passedOver: readonly HostTried[]
      /** Whether the domain has more hosts: not looked at, or DNS could not tell where they are. */
      readonly isPartial: boolean
    }
  | RoutingVerdict
  | {
      readonly kind: 'later'
      readonly classification: Classification
      readonly summary: string
      readonly passedOver?: readonly HostTried[]
    }

/** MX hosts whose addresses are asked for at the same time: the next ones only where none of these can be dialled. */
const HOSTS_AT_ONCE = 10
/** MX hosts that are looked at; RFC 5321 §5.1 wants at least two. A longer list is a mistake or an attack. */
const MOST_HOSTS = 50

/** @param domain of the recipient: A-labels, lower case */
export async function findRoute(parts: RouterParts, domain: string): Promise<Routing> {
  const route = parts.routes.find(candidate => matchesPattern(candidate.domain, domain))
  if (route !== undefined) return followRoute(parts, route)
  return lookUpExchanges(parts, domain)
}

/** The operator knows: loopback and this machine itself are allowed, and names of /etc/hosts work. */
async function followRoute(parts: RouterParts, route: Route): Promise<Routing> {
  const { host, port, tls, username = '', password = '' } = route
  const found = ipVersion(host) === 0 ? await findRouteHost(parts, host) : { host, addresses: [host] }
  if (found.addresses.length === 0)
    return {
      kind: 'later',
      classification: {
        cause: 'config',
        scope: 'domain',
        permanence: 'transient',
        subtype: 'route_unresolved',
      },
      summary: `the route host ${host} has no address${found.problem === undefined ? '' : ` (${found.problem})`}`,
    }
  return {
    kind: 'endpoints',
    passedOver: [],
    isPartial: false,
    endpoints: found.addresses.map(address => ({
      host,
      address,
      port,
      tls,
      tlsSource: 'route',
      implicitTls: port === 465 && tls !== 'none',
      ...(username === '' ? {} : { auth: { username, password } }),
    })),
  }
}

async function findRouteHost({ resolver, systemLookup }: RouterParts, host: string): Promise<HostAddresses> {
  const found = await findAddresses(resolver, host)
  if (found.addresses.length > 0) return found
  const local = await systemLookup(host)
  return local.kind === 'found' ? { host, addresses: interleave(local.records) } : found
}

async function lookUpExchanges(parts: RouterParts, domain: string): Promise<Routing> {
  const { resolver } = parts
  const answer = await resolver.mx(domain)
  if (answer.kind === 'unavailable') return dnsTrouble(domain, answer.reason)
  if (answer.kind === 'missing')
    return answer.why === 'nxdomain'
      ? { ...NO_DOMAIN, summary: `the domain ${domain} does not exist` }
      : toImplicitExchange(parts, domain)
  const exchanges = answer.records.filter(record => record.exchange !== '')
  // RFC 7505 §3: one record with an empty name says that the domain takes no mail.
  if (exchanges.length === 0) return { ...NULL_MX, summary: `the domain ${domain} takes no mail (null MX)` }
  const sts = findPolicy(parts, domain)
  return lookAtHosts(parts, domain, sts, inOrder(exchanges, parts.random))
}

/** Looks at one host after the other, some at a time, until it has one that can be dialled. */
async function lookAtHosts(
  parts: RouterParts,
  domain: string,
  sts: Promise<StsLookup>,
  exchanges: readonly MxRecord[],
): Promise<Routing> {
  const hosts: Exchange[] = []
  for (;;) {
    const next = exchanges.slice(hosts.length, hosts.length + HOSTS_AT_ONCE)
    hosts.push(...(await Promise.all(next.map(record => lookAtHost(parts, record)))))
    // Whoever comes behind ourselves in the list is none of our hosts.
    const unseen = hosts.some(host => isOurs(parts, host)) ? 0 : exchanges.length - hosts.length
    const routing = chooseEndpoints(parts, domain, await sts, hosts, unseen > 0)
    if (routing.kind === 'endpoints' || unseen === 0) return routing
    if (hosts.length < MOST_HOSTS) continue
    return routing.kind === 'later' ? routing : tooManyHosts(domain, hosts.length, exchanges.length)
  }
}

async function lookAtHost({ resolver }: RouterParts, { exchange, preference }: MxRecord): Promise<Exchange> {
  return { preference, ...(await findAddresses(resolver, exchange)) }
}

/** RFC 5321 §5.1: a domain without MX is its own exchange, with preference 0. */
async function toImplicitExchange(parts: RouterParts, domain: string): Promise<Routing> {
  const found = await findAddresses(parts.resolver, domain)
  if (found.addresses.length > 0 || found.problem !== undefined)
    return chooseEndpoints(
      parts,
      domain,
      await findPolicy(parts, domain),
      [{ preference: 0, ...found }],
      false,
    )
  return { ...NO_DOMAIN, summary: `the domain ${domain} has neither a mail exchanger nor an address` }
}

function findPolicy({ stsPolicies }: RouterParts, domain: string): Promise<StsLookup> {
  return stsPolicies?.find(domain) ?? Promise.resolve({ kind: 'none' })
}

interface Exchange extends HostAddresses {
  readonly preference: number
}

/** @param hasUnseen whether there are hosts of lower preference that nobody has looked at */
function chooseEndpoints(
  parts: RouterParts,
  domain: string,
  sts: StsLookup,
  hosts: readonly Exchange[],
  hasUnseen: boolean,
): Routing {
  // RFC 5321 §5.1: from ourselves on, counted by preference, the list leads back here; mail going there would loop.
  const ownPreference = Math.min(...hosts.filter(host => isOurs(parts, host)).map(host => host.preference))
  const better = hosts.filter(host => host.preference < ownPreference)
  if (better.length === 0)
    return {
      ...OURSELVES,
      summary: `the best mail exchanger of ${domain} is this server, which has no route for it`,
    }
  const named = better.flatMap(({ host, addresses }) => addresses.map(address => ({ host, address })))
  const reachable = named
    .filter(({ address }) => !isLoopbackOrUnspecified(address))
    .map(({ host, address }) => exchangeEndpoint(parts, sts, domain, host, address))
  const endpoints = reachable.filter(endpoint => !isForbidden(endpoint))
  const passedOver = eachHostOnce(reachable.filter(isForbidden)).map(notListed)
  const problem = better.find(host => host.problem !== undefined && host.addresses.length === 0)?.problem
  const isPartial = problem !== undefined || hasUnseen
  if (endpoints.length > 0) return { kind: 'endpoints', endpoints, passedOver, isPartial }
  // RFC 8461 §5: no delivery, and no failure for good either, since the policy may change before the next attempt.
  if (passedOver.length > 0)
    return {
      kind: 'later',
      classification: STS_FAILURE,
      summary: `the MTA-STS policy of ${domain} lists no mail exchanger that has an address`,
      passedOver,
    }
  if (problem !== undefined) return dnsTrouble(domain, problem)
  if (named.length > 0)
    return { ...OURSELVES, summary: `the mail exchangers of ${domain} are named at loopback addresses` }
  return { ...NO_ADDRESS, summary: `no mail exchanger of ${domain} has an address` }
}

function isOurs({ hostname, ownAddresses }: RouterParts, { host, addresses }: HostAddresses): boolean {
  if (host === hostname.toLowerCase()) return true
  return addresses.some(address => ownAddresses.some(own => isSameAddress(own, address)))
}

function exchangeEndpoint(
  { port, tlsSites = [] }: RouterParts,
  sts: StsLookup,
  domain: string,
  host: string,
  address: string,
): Endpoint {
  return { host, address, port, implicitTls: false, ...demandOf(tlsSites, sts, domain, host) }
}

function eachHostOnce(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.filter(({ host }, index) => endpoints.findIndex(other => other.host === host) === index)
}

function notListed({ host, address, port, tls, tlsSource }: Endpoint): HostTried {
  return {
    host,
    address,
    port,
    tlsPolicy: tls,
    tlsPolicySource: tlsSource,
    sts: { mode: 'enforce', result: 'failed', reason: NOT_LISTED },
    stage: 'resolve',
    error: 'not tried: not in the MTA-STS policy',
    durationMs: 0,
    reused: false,
  }
}

/** By preference; equals in random order, which spreads the load (RFC 5321 §5.1). */
function inOrder<T extends { readonly preference: number }>(records: readonly T[], random: Random): T[] {
  return records
    .map(record => ({ record, lot: random.fraction() }))
    .sort((one, other) => one.record.preference - other.record.preference || one.lot - other.lot)
    .map(({ record }) => record)
}

/** What was seen says nothing of the rest, so that nothing is for good. */
function tooManyHosts(domain: string, seen: number, all: number): Routing {
  return {
    kind: 'later',
    classification: { ...NO_ADDRESS.classification, cause: 'config', permanence: 'transient' },
    summary: `none of the first ${seen} of the ${all} mail exchangers of ${domain} can be dialled`,
  }
}

function dnsTrouble(domain: string, reason: string): Routing {
  return {
    kind: 'later',
    classification: {
      cause: 'transient',
      scope: 'domain',
      permanence: 'transient',
      subtype: 'dns_unavailable',
    },
    summary: `the mail exchangers of ${domain} could not be looked up: ${reason}`,
  }
}
