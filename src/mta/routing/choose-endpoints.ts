/**
 * Selects which MX hosts of a domain may be dialled, and the routing result if none may.
 *
 * Pure. Failures are permanent only if every host of the domain was resolved and DNS answered for each.
 * Standards: RFC 5321 §5.1 (this server among the MX hosts), RFC 8461 §5 (hosts that a policy does not list).
 */
import type { Classification, HostTried } from '../../mail/outcome.js'
import { isLoopbackOrUnspecified } from '../../world/net/address-kind.js'
import { isSameAddress } from '../../world/net/ip-address.js'
import type { EgressPolicy } from '../../world/net/egress-policy.js'
import { type Endpoint, isExcludedBySts, NOT_LISTED, tlsRequirementOf } from './endpoint.js'
import type { HostAddresses } from './host-addresses.js'
import type { TlsSite } from '../mta-options.js'
import type { StsLookup } from './mta-sts.js'

export interface MxParts {
  /** 25, except in tests. */
  readonly port: number
  /** An MX with this name is this server. */
  readonly hostname: string
  /** Public addresses of this server that the operator configured. */
  readonly ownAddresses: readonly string[]
  readonly tlsSites?: readonly TlsSite[]
  readonly egress: EgressPolicy
}

export type Routing =
  | {
      readonly kind: 'endpoints'
      /** In the order to try; never empty. */
      readonly endpoints: readonly Endpoint[]
      /** Hosts excluded by policy, for the trace. */
      readonly skipped: readonly HostTried[]
      /** Whether the domain has more hosts, not resolved yet or whose lookup failed. */
      readonly isPartial: boolean
    }
  | Undeliverable
  | {
      readonly kind: 'deferred'
      readonly classification: Classification
      readonly summary: string
      readonly skipped?: readonly HostTried[]
    }

export interface MxHost extends HostAddresses {
  readonly preference: number
}

/** @param hasUnresolved whether hosts of lower preference were not resolved */
export function chooseEndpoints(
  parts: MxParts,
  domain: string,
  sts: StsLookup,
  hosts: readonly MxHost[],
  hasUnresolved: boolean,
): Routing {
  // RFC 5321 §5.1: hosts of equal or higher preference value than our own lead back here and would loop.
  const ownPreference = Math.min(
    ...hosts.filter(host => isThisServer(parts, host)).map(host => host.preference),
  )
  const better = hosts.filter(host => host.preference < ownPreference)
  if (better.length === 0)
    return {
      ...ROUTING_LOOP,
      summary: `the best mail exchanger of ${domain} is this server, which has no route for it`,
    }
  const named = better.flatMap(({ host, addresses }) =>
    addresses.map(address => mxEndpoint(parts, sts, domain, host, address)),
  )
  const { endpoints, skipped } = applyPolicies(parts, named)
  const problem = better.find(host => host.problem !== undefined && host.addresses.length === 0)?.problem
  if (endpoints.length > 0)
    return { kind: 'endpoints', endpoints, skipped, isPartial: problem !== undefined || hasUnresolved }
  // RFC 8461 §5: must not be delivered, but is not a permanent failure either, since the policy may change.
  if (skipped.some(({ sts: facts }) => facts !== undefined))
    return {
      kind: 'deferred',
      classification: STS_FAILURE,
      summary: `the MTA-STS policy of ${domain} lists no mail exchanger that has an address`,
      skipped,
    }
  if (problem !== undefined) return dnsUnavailable(domain, problem)
  if (named.length === 0) return { ...NO_ADDRESS, summary: `no mail exchanger of ${domain} has an address` }
  if (named.every(({ address }) => isLoopbackOrUnspecified(address)))
    return { ...ROUTING_LOOP, summary: `the mail exchangers of ${domain} resolve to loopback addresses` }
  return addressNotPublic(domain, named, skipped)
}

/** Transient: the operator may add a route or allow the address before the next attempt, and DNS may have been wrong. */
function addressNotPublic(
  domain: string,
  named: readonly Endpoint[],
  skipped: readonly HostTried[],
): Routing {
  const { host = '' } = named.find(endpoint => !isLoopbackOrUnspecified(endpoint.address)) ?? {}
  return {
    kind: 'deferred',
    classification: ADDRESS_NOT_PUBLIC,
    summary:
      // Shown to the sender, whose name server may not know the address.
      `the mail exchanger ${host} of ${domain} resolves to an address that is not public: ` +
      'add a route for it, or set mta.allow_private',
    skipped,
  }
}

function applyPolicies({ egress }: MxParts, named: readonly Endpoint[]) {
  const allowed = named.filter(({ address }) => egress.refusal(address) === undefined)
  const refused = named.filter(({ address }) => egress.refusal(address) !== undefined)
  return {
    endpoints: allowed.filter(endpoint => !isExcludedBySts(endpoint)),
    skipped: [
      ...oncePerHost(allowed.filter(isExcludedBySts)).map(endpoint => ({
        ...notTried(endpoint, 'not in the MTA-STS policy'),
        sts: { mode: 'enforce', result: 'failed', reason: NOT_LISTED } as const,
      })),
      ...oncePerHost(refused).map(endpoint => {
        const { address: _unshown, ...tried } = notTried(endpoint, 'the address is not public')
        return tried
      }),
    ],
  }
}

export function isThisServer(
  { hostname, ownAddresses }: MxParts,
  { host, addresses }: HostAddresses,
): boolean {
  if (host === hostname.toLowerCase()) return true
  return addresses.some(address => ownAddresses.some(own => isSameAddress(own, address)))
}

function mxEndpoint(
  { port, tlsSites = [] }: MxParts,
  sts: StsLookup,
  domain: string,
  host: string,
  address: string,
): Endpoint {
  return { host, address, port, implicitTls: false, ...tlsRequirementOf(tlsSites, sts, domain, host) }
}

function oncePerHost(endpoints: readonly Endpoint[]): readonly Endpoint[] {
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

/** Transient, since the remaining hosts were not resolved. */
export function tooManyHosts(domain: string, seen: number, all: number): Routing {
  return {
    kind: 'deferred',
    classification: { ...NO_ADDRESS.classification, cause: 'config', permanence: 'transient' },
    summary: `none of the first ${seen} of the ${all} mail exchangers of ${domain} can be dialled`,
  }
}

export function dnsUnavailable(domain: string, reason: string): Routing {
  return {
    kind: 'deferred',
    classification: {
      cause: 'transient',
      scope: 'domain',
      permanence: 'transient',
      subtype: 'dns_unavailable',
    },
    summary: `the mail exchangers of ${domain} could not be looked up: ${reason}`,
  }
}

export interface Undeliverable {
  readonly kind: 'undeliverable'
  readonly status: string
  readonly classification: Classification
  readonly summary: string
}

type Reason = Omit<Undeliverable, 'summary'>

/** NXDOMAIN, or a name with neither MX nor address. */
export const NO_DOMAIN: Reason = {
  kind: 'undeliverable',
  status: '5.1.2',
  classification: {
    cause: 'recipient',
    scope: 'domain',
    permanence: 'permanent',
    subtype: 'bad_destination',
  },
}

export const NULL_MX: Reason = {
  kind: 'undeliverable',
  status: '5.1.10',
  classification: {
    cause: 'recipient',
    scope: 'domain',
    permanence: 'permanent',
    subtype: 'domain_accepts_no_mail',
  },
}

/** MX hosts exist, and DNS confirms that none has an address. */
const NO_ADDRESS: Reason = {
  kind: 'undeliverable',
  status: '5.4.4',
  classification: {
    cause: 'recipient',
    scope: 'domain',
    permanence: 'permanent',
    subtype: 'bad_destination',
  },
}

/** Delivering would loop. A mistake in DNS or in our configuration, never the recipient's. */
const ROUTING_LOOP: Reason = {
  kind: 'undeliverable',
  status: '5.4.6',
  classification: { cause: 'config', scope: 'domain', permanence: 'permanent', subtype: 'routing_loop' },
}

/** Forbidden by the domain's MTA-STS policy (RFC 8461 §5); never permanent, never the recipient's fault. */
export const STS_FAILURE: Classification = {
  cause: 'policy',
  scope: 'domain',
  permanence: 'transient',
  subtype: 'mta_sts_failure',
}

/** The host resolves to a private address, which only the operator may send mail to. */
const ADDRESS_NOT_PUBLIC: Classification = {
  cause: 'config',
  scope: 'domain',
  permanence: 'transient',
  subtype: 'address_not_public',
}
