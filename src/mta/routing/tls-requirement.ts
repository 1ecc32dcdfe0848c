/**
 * The TLS required of an MX host, from the operator's sites and the domain's MTA-STS policy, and whether a connection
 * met that policy.
 *
 * Pure. Does not apply to static routes, which set their own TLS policy. Standards: RFC 8461 §4, §5.
 */
import type { HostTried, StsFacts, TlsFacts, TlsPolicy, TlsPolicySource } from '../../mail/outcome.js'
import { matchesPattern, type TlsSite } from '../mta-options.js'
import { listsHost, type StsLookup } from './mta-sts.js'
import type { SmtpResult } from '../smtp-result.js'

/** What MTA-STS says about one host, before dialling. */
export type StsRequirement =
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
 * The strictest of all requirements that apply.
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

/** The MTA-STS result of one try, for the trace. */
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
