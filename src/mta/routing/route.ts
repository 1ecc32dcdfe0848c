/**
 * Finds the hosts for a recipient domain: static routes first, then MX.
 *
 * Never dials and never rejects: an unreachable domain is a result, and a DNS failure is a transient one.
 * Standards: RFC 5321 §5.1 (MX, implicit MX), RFC 7505 (null MX).
 */
import type { MxRecord, Resolver } from '../../world/dns/dns.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { Random } from '../../world/random.js'
import type { SystemLookup } from '../../world/dns/host-lookup.js'
import {
  chooseEndpoints,
  dnsUnavailable,
  isThisServer,
  type MxHost,
  type MxParts,
  NO_DOMAIN,
  NULL_MX,
  type Routing,
  tooManyHosts,
} from './choose-endpoints.js'
import { matchesPattern, type Route } from '../mta-options.js'
import { resolveHost, interleave, type HostAddresses } from './host-addresses.js'
import type { StsLookup, StsPolicies } from './mta-sts.js'

export interface RouterParts extends MxParts {
  readonly resolver: Resolver
  readonly systemLookup: SystemLookup
  readonly random: Random
  readonly routes: readonly Route[]
  /** Absent: MTA-STS is off. */
  readonly stsPolicies?: StsPolicies
}

/** MX hosts resolved at a time; the next ones only if none of these can be dialled. */
const HOSTS_PER_LOOKUP = 10
/** MX hosts resolved at most; RFC 5321 §5.1 requires at least two. A longer list is a mistake or an attack. */
const MAX_HOSTS = 50

/** @param domain recipient domain: A-labels, lower case */
export async function findRoute(parts: RouterParts, domain: string): Promise<Routing> {
  const route = parts.routes.find(candidate => matchesPattern(candidate.domain, domain))
  if (route !== undefined) return followRoute(parts, route)
  return lookupMx(parts, domain)
}

type RouteHostParts = Pick<RouterParts, 'resolver' | 'systemLookup'>

/** Routes come from the operator, so loopback addresses, this machine and names in /etc/hosts are allowed. */
export async function followRoute(parts: RouteHostParts, route: Route): Promise<Routing> {
  const { host, port, tls, username = '', password = '', allowUnverifiedAuth = false } = route
  const found = ipVersion(host) === 0 ? await findRouteHost(parts, host) : { host, addresses: [host] }
  if (found.addresses.length === 0)
    return {
      kind: 'deferred',
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
    skipped: [],
    isPartial: false,
    endpoints: found.addresses.map(address => ({
      host,
      address,
      port,
      tls,
      tlsSource: 'route',
      implicitTls: port === 465 && tls !== 'none',
      namedBy: 'operator',
      ...(username === '' ? {} : { auth: { username, password, allowUnverified: allowUnverifiedAuth } }),
    })),
  }
}

async function findRouteHost(
  { resolver, systemLookup }: RouteHostParts,
  host: string,
): Promise<HostAddresses> {
  const found = await resolveHost(resolver, host)
  if (found.addresses.length > 0) return found
  const local = await systemLookup(host)
  return local.kind === 'found' ? { host, addresses: interleave(local.records) } : found
}

async function lookupMx(parts: RouterParts, domain: string): Promise<Routing> {
  const { resolver } = parts
  const answer = await resolver.mx(domain)
  if (answer.kind === 'unavailable') return dnsUnavailable(domain, answer.reason)
  if (answer.kind === 'missing')
    return answer.why === 'nxdomain'
      ? { ...NO_DOMAIN, summary: `the domain ${domain} does not exist` }
      : implicitMx(parts, domain)
  const exchanges = answer.records.filter(record => record.exchange !== '')
  // RFC 7505 §3: a single record with an empty name means the domain accepts no mail.
  if (exchanges.length === 0) return { ...NULL_MX, summary: `the domain ${domain} accepts no mail (null MX)` }
  const sts = findPolicy(parts, domain)
  return resolveMxHosts(parts, domain, sts, byPreference(exchanges, parts.random))
}

async function resolveMxHosts(
  parts: RouterParts,
  domain: string,
  sts: Promise<StsLookup>,
  exchanges: readonly MxRecord[],
): Promise<Routing> {
  const hosts: MxHost[] = []
  for (;;) {
    const next = exchanges.slice(hosts.length, hosts.length + HOSTS_PER_LOOKUP)
    hosts.push(...(await Promise.all(next.map(record => resolveMxHost(parts, record)))))
    // Hosts after this server in the list are not used.
    const unresolved = hosts.some(host => isThisServer(parts, host)) ? 0 : exchanges.length - hosts.length
    const routing = chooseEndpoints(parts, domain, await sts, hosts, unresolved > 0)
    if (routing.kind === 'endpoints' || unresolved === 0) return routing
    if (hosts.length < MAX_HOSTS) continue
    return routing.kind === 'deferred' ? routing : tooManyHosts(domain, hosts.length, exchanges.length)
  }
}

async function resolveMxHost({ resolver }: RouterParts, { exchange, preference }: MxRecord): Promise<MxHost> {
  return { preference, ...(await resolveHost(resolver, exchange)) }
}

/** RFC 5321 §5.1: a domain without MX is its own mail exchanger, with preference 0. */
async function implicitMx(parts: RouterParts, domain: string): Promise<Routing> {
  const found = await resolveHost(parts.resolver, domain)
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

/** By preference, equal preferences in random order to spread the load (RFC 5321 §5.1). */
function byPreference<T extends { readonly preference: number }>(records: readonly T[], random: Random): T[] {
  return records
    .map(record => ({ record, lot: random.fraction() }))
    .sort((one, other) => one.record.preference - other.record.preference || one.lot - other.lot)
    .map(({ record }) => record)
}
