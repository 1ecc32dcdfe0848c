/**
 * Where a recipient's mail goes: the operator's routes first, then MX.
 *
 * Called by `smtp-agent.ts`. Never dials; which of the hosts it finds may be dialled, `choose-endpoints.ts` says. Standards:
 * RFC 5321 §5.1 (MX, implicit MX), RFC 7505 (null MX). Fails: never rejects; a domain that cannot be reached is an answer like
 * any other, and one that DNS could not tell about is "later".
 */
import type { MxRecord, Resolver } from '../../world/dns/dns.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { Random } from '../../world/random.js'
import type { SystemLookup } from '../../world/dns/system-names.js'
import {
  chooseEndpoints,
  dnsTrouble,
  isOurs,
  tooManyHosts,
  type Exchange,
  type ExchangerParts,
  type Routing,
} from './choose-endpoints.js'
import { matchesPattern } from './domain-pattern.js'
import { findAddresses, interleave, type HostAddresses } from './host-addresses.js'
import type { Route } from '../mta-options.js'
import type { StsLookup, StsPolicies } from './mta-sts.js'
import { NO_DOMAIN, NULL_MX } from './routing-verdict.js'

export interface RouterParts extends ExchangerParts {
  readonly resolver: Resolver
  readonly systemLookup: SystemLookup
  readonly random: Random
  readonly routes: readonly Route[]
  /** Absent: MTA-STS is not applied. */
  readonly stsPolicies?: StsPolicies
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
  const { host, port, tls, username = '', password = '', isPasswordForUnverified = false } = route
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
      namedBy: 'operator',
      ...(username === '' ? {} : { auth: { username, password, isForUnverified: isPasswordForUnverified } }),
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

/** By preference; equals in random order, which spreads the load (RFC 5321 §5.1). */
function inOrder<T extends { readonly preference: number }>(records: readonly T[], random: Random): T[] {
  return records
    .map(record => ({ record, lot: random.fraction() }))
    .sort((one, other) => one.record.preference - other.record.preference || one.lot - other.lot)
    .map(({ record }) => record)
}
