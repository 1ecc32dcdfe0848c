/** One address of one host to deliver to, and the TLS required of the connection (RFC 8461 §4, §5). */
import type { HostTried, StsFacts, TlsFacts, TlsPolicy, TlsPolicySource } from '../../mail/outcome.js'
import type { Named } from '../../world/net/egress-policy.js'
import { matchesPattern, type TlsSite } from '../mta-options.js'
import type { SmtpResult } from '../smtp-result.js'
import { listsHost, type StsLookup } from './mta-sts.js'

export interface Endpoint extends Named {
  /** MX or route host name; certificates are checked against it. */
  readonly host: string
  readonly address: string
  readonly port: number
  /** Opportunistic TLS falls back to plaintext (RFC 7435); with any stricter policy the mail waits. */
  readonly tls: TlsPolicy
  readonly tlsSource: TlsPolicySource
  /** From the MTA-STS policy of the recipient's domain, if it has one. */
  readonly sts?: StsRequirement
  /** Implicit TLS (RFC 8314 §3), without STARTTLS. */
  readonly implicitTls: boolean
  readonly auth?: Credentials
  /** Source addresses for this sender; defaults to those of the server. */
  readonly sources?: readonly string[]
}

export interface Credentials {
  readonly username: string
  readonly password: string
  /** Whether the password may be sent to a host with an unverified certificate, or in plaintext if the route has no TLS. */
  readonly allowUnverified: boolean
}

const keys = new WeakMap<Endpoint, string>()

/** Endpoints with equal keys can share connections. The key includes the TLS requirement, not its source. */
export function endpointKey(endpoint: Endpoint): string {
  const known = keys.get(endpoint)
  if (known !== undefined) return known
  const { host, address, port, tls, implicitTls, auth, sources } = endpoint
  const key = JSON.stringify([host, address, port, tls, implicitTls, auth, sources])
  keys.set(endpoint, key)
  return key
}

/** MTA-STS policy for one host, before dialling. */
type StsRequirement =
  | { readonly mode: 'enforce' | 'testing'; readonly isListed: boolean }
  | { readonly mode: 'unavailable'; readonly reason: string }

interface TlsRequirement {
  readonly tls: TlsPolicy
  readonly tlsSource: TlsPolicySource
  readonly sts?: StsRequirement
}

const STRICTNESS: Readonly<Record<TlsPolicy, number>> = { none: 0, opportunistic: 1, require: 2, verify: 3 }

export const NOT_LISTED = 'the host is not listed in the policy'

/**
 * The strictest TLS requirement from the operator's sites and the domain's MTA-STS policy. Static routes set their own policy instead.
 *
 * @param domain recipient domain, @param host its MX; both A-labels, lower case
 */
export function tlsRequirementOf(
  sites: readonly TlsSite[],
  sts: StsLookup,
  domain: string,
  host: string,
): TlsRequirement {
  const requirements: TlsRequirement[] = [
    { tls: 'opportunistic', tlsSource: 'default' },
    ...sites
      .filter(site => matchesPattern(site.mx ?? site.domain ?? '', site.mx === undefined ? domain : host))
      .map(({ tls }) => ({ tls, tlsSource: 'site' as const })),
    // RFC 8461 §5: `enforce` requires TLS and a certificate for the host; `testing` only reports.
    ...(isEnforced(sts) ? [{ tls: 'verify', tlsSource: 'mta-sts' } as const] : []),
  ]
  const strictest = requirements.reduce((one, other) =>
    STRICTNESS[other.tls] > STRICTNESS[one.tls] ? other : one,
  )
  const requirement = stsRequirementOf(sts, host)
  return requirement === undefined ? strictest : { ...strictest, sts: requirement }
}

function isEnforced(sts: StsLookup): boolean {
  return sts.kind === 'policy' && sts.policy.mode === 'enforce'
}

function stsRequirementOf(sts: StsLookup, host: string): StsRequirement | undefined {
  if (sts.kind === 'unavailable') return { mode: 'unavailable', reason: sts.reason }
  if (sts.kind === 'none' || sts.policy.mode === 'none') return undefined
  return { mode: sts.policy.mode, isListed: listsHost(sts.policy, host) }
}

/** RFC 8461 §4.1: under `enforce` an unlisted host gets no mail, whatever its certificate. */
export function isExcludedBySts({ sts }: TlsRequirement): boolean {
  return sts?.mode === 'enforce' && !sts.isListed
}

export function stsFacts(sts: StsRequirement, result: SmtpResult, tls: TlsFacts | undefined): StsFacts {
  if (sts.mode === 'unavailable') return sts
  const { mode } = sts
  const failed = (reason: string): StsFacts => ({ mode, result: 'failed', reason })
  if (!sts.isListed) return failed(NOT_LISTED)
  if (tls !== undefined)
    return tls.verified
      ? { mode, result: 'passed' }
      : failed(tls.unverifiedReason ?? 'certificate not trusted')
  // A shutdown, ours or the server's (421), says nothing about its TLS.
  if (BEFORE_TLS.has(result.stage) || result.failure?.kind === 'aborted' || result.reply?.code === 421)
    return { mode }
  return failed(result.stage === 'starttls' ? (result.failure?.text ?? 'STARTTLS was refused') : 'no TLS')
}

const BEFORE_TLS: ReadonlySet<HostTried['stage']> = new Set(['resolve', 'connect', 'greeting', 'ehlo'])
