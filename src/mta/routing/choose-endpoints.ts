/**
 * Which of the mail exchangers that DNS names for a domain may be dialled, and what it means where none may.
 *
 * Called by `route.ts` with the hosts it looked at. Pure. Standards: RFC 5321 §5.1 (ourselves in the list), RFC 8461 §5 (hosts
 * that a policy does not list). A look at a part of the hosts, or one in which DNS did not answer, is never for good.
 */
import type { Classification, HostTried } from '../../mail/outcome.js'
import { isLoopbackOrUnspecified } from '../../world/net/address-kind.js'
import { isSameAddress } from '../../world/net/ip-address.js'
import type { Reach } from '../../world/net/reach.js'
import type { Endpoint } from './endpoint.js'
import type { HostAddresses } from './host-addresses.js'
import type { TlsSite } from '../mta-options.js'
import type { StsLookup } from './mta-sts.js'
import { NO_ADDRESS, OURSELVES, OUT_OF_REACH, STS_FAILURE, type RoutingVerdict } from './routing-verdict.js'
import { demandOf, isForbidden, NOT_LISTED } from './tls-demand.js'

export interface ExchangerParts {
  /** Port of MX hosts: 25. */
  readonly port: number
  /** Our name in DNS; an MX that bears it is ourselves. */
  readonly hostname: string
  /** Our own public addresses, as far as the operator told them. */
  readonly ownAddresses: readonly string[]
  /** What the operator demands of TLS at certain MX hosts or domains. */
  readonly tlsSites?: readonly TlsSite[]
  /** Where MX hosts may be; the dialler holds to the same. */
  readonly reach: Reach
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

export interface Exchange extends HostAddresses {
  readonly preference: number
}

/** @param hasUnseen whether there are hosts of lower preference that nobody has looked at */
export function chooseEndpoints(
  parts: ExchangerParts,
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
  const named = better.flatMap(({ host, addresses }) =>
    addresses.map(address => exchangeEndpoint(parts, sts, domain, host, address)),
  )
  const { endpoints, passedOver } = sortOut(parts, named)
  const problem = better.find(host => host.problem !== undefined && host.addresses.length === 0)?.problem
  if (endpoints.length > 0)
    return { kind: 'endpoints', endpoints, passedOver, isPartial: problem !== undefined || hasUnseen }
  // RFC 8461 §5: no delivery, and no failure for good either, since the policy may change before the next attempt.
  if (passedOver.some(({ sts: facts }) => facts !== undefined))
    return {
      kind: 'later',
      classification: STS_FAILURE,
      summary: `the MTA-STS policy of ${domain} lists no mail exchanger that has an address`,
      passedOver,
    }
  if (problem !== undefined) return dnsTrouble(domain, problem)
  if (named.length === 0) return { ...NO_ADDRESS, summary: `no mail exchanger of ${domain} has an address` }
  if (named.every(({ address }) => isLoopbackOrUnspecified(address)))
    return { ...OURSELVES, summary: `the mail exchangers of ${domain} are named at loopback addresses` }
  return outOfReach(parts, domain, named, passedOver)
}

/** The operator may have a route, or a word, for them by the next attempt; and a resolver may have lied. */
function outOfReach(
  { reach }: ExchangerParts,
  domain: string,
  named: readonly Endpoint[],
  passedOver: readonly HostTried[],
): Routing {
  const { host = '', address = '' } = named.find(endpoint => !isLoopbackOrUnspecified(endpoint.address)) ?? {}
  return {
    kind: 'later',
    classification: OUT_OF_REACH,
    summary:
      `the mail exchanger ${host} of ${domain} is at ${address}, which ${reach.refusal(address) ?? ''}: ` +
      'mail goes there by a route, or with mta.allow_private',
    passedOver,
  }
}

/** Each host that must not be tried is told once. */
function sortOut({ reach }: ExchangerParts, named: readonly Endpoint[]) {
  const within = named.filter(({ address }) => reach.refusal(address) === undefined)
  const beyond = named.filter(({ address }) => reach.refusal(address) !== undefined)
  return {
    endpoints: within.filter(endpoint => !isForbidden(endpoint)),
    passedOver: [
      ...eachHostOnce(within.filter(isForbidden)).map(endpoint => ({
        ...notTried(endpoint, 'not in the MTA-STS policy'),
        sts: { mode: 'enforce', result: 'failed', reason: NOT_LISTED } as const,
      })),
      ...eachHostOnce(beyond).map(endpoint =>
        notTried(endpoint, `the address ${reach.refusal(endpoint.address) ?? ''}`),
      ),
    ],
  }
}

export function isOurs(
  { hostname, ownAddresses }: ExchangerParts,
  { host, addresses }: HostAddresses,
): boolean {
  if (host === hostname.toLowerCase()) return true
  return addresses.some(address => ownAddresses.some(own => isSameAddress(own, address)))
}

function exchangeEndpoint(
  { port, tlsSites = [] }: ExchangerParts,
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

function notTried({ host, address, port, tls, tlsSource }: Endpoint, why: string): HostTried {
  return {
    host,
    address,
    port,
    tlsPolicy: tls,
    tlsPolicySource: tlsSource,
    stage: 'resolve',
    error: `not tried: ${why}`,
    durationMs: 0,
    reused: false,
  }
}

/** What was seen says nothing of the rest, so that nothing is for good. */
export function tooManyHosts(domain: string, seen: number, all: number): Routing {
  return {
    kind: 'later',
    classification: { ...NO_ADDRESS.classification, cause: 'config', permanence: 'transient' },
    summary: `none of the first ${seen} of the ${all} mail exchangers of ${domain} can be dialled`,
  }
}

export function dnsTrouble(domain: string, reason: string): Routing {
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
