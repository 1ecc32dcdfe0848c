/**
 * What TLS is demanded of an MX host, by the operator's sites and by the recipient domain's MTA-STS policy, and whether a
 * connection met what the policy wants.
 *
 * Called by `route.ts` before dialling and by `smtp-agent.ts` for the trace. Pure. Static routes are not asked here: what
 * the operator says of a route is the last word. Standards: RFC 8461 §4, §5.
 */
import type { HostTried, StsFacts, TlsFacts, TlsPolicy, TlsPolicySource } from '../../mail/outcome.js'
import { matchesPattern } from './domain-pattern.js'
import type { StsLookup } from './mta-sts.js'
import { listsHost } from './mta-sts-policy.js'
import type { TlsSite } from '../mta-options.js'
import type { SmtpEnd } from '../smtp-end.js'

/** What MTA-STS says of one host before anything is dialled. */
export type StsDemand =
  | { readonly mode: 'enforce' | 'testing'; readonly isListed: boolean }
  | { readonly mode: 'unavailable'; readonly reason: string }

export interface TlsDemand {
  readonly tls: TlsPolicy
  readonly tlsSource: TlsPolicySource
  readonly sts?: StsDemand
}

const STRICTNESS: Readonly<Record<TlsPolicy, number>> = { none: 0, opportunistic: 1, require: 2, verify: 3 }

export const NOT_LISTED = 'the host is not in the policy'

/**
 * The strictest of all that speak of the host.
 *
 * @param domain of the recipient, @param host of its MX; both A-labels, lower case
 */
export function demandOf(sites: readonly TlsSite[], sts: StsLookup, domain: string, host: string): TlsDemand {
  const demands: TlsDemand[] = [
    { tls: 'opportunistic', tlsSource: 'default' },
    ...sites
      .filter(site => matchesPattern(site.mx ?? site.domain ?? '', site.mx === undefined ? domain : host))
      .map(({ tls }) => ({ tls, tlsSource: 'site' as const })),
    // RFC 8461 §5: enforce means TLS and a certificate for the host; testing only watches.
    ...(isEnforced(sts) ? [{ tls: 'verify', tlsSource: 'mta-sts' } as const] : []),
  ]
  const strictest = demands.reduce((one, other) =>
    STRICTNESS[other.tls] > STRICTNESS[one.tls] ? other : one,
  )
  const demand = stsDemandOf(sts, host)
  return demand === undefined ? strictest : { ...strictest, sts: demand }
}

function isEnforced(sts: StsLookup): boolean {
  return sts.kind === 'policy' && sts.policy.mode === 'enforce'
}

function stsDemandOf(sts: StsLookup, host: string): StsDemand | undefined {
  if (sts.kind === 'unavailable') return { mode: 'unavailable', reason: sts.reason }
  if (sts.kind === 'none' || sts.policy.mode === 'none') return undefined
  return { mode: sts.policy.mode, isListed: listsHost(sts.policy, host) }
}

/** RFC 8461 §4.1: under `enforce` such a host gets no mail, whatever its certificate. */
export function isForbidden({ sts }: TlsDemand): boolean {
  return sts?.mode === 'enforce' && !sts.isListed
}

/** What the trace tells of MTA-STS after a try. */
export function stsFacts(sts: StsDemand, end: SmtpEnd, tls: TlsFacts | undefined): StsFacts {
  if (sts.mode === 'unavailable') return sts
  const { mode } = sts
  const failed = (reason: string): StsFacts => ({ mode, result: 'failed', reason })
  if (!sts.isListed) return failed(NOT_LISTED)
  if (tls !== undefined)
    return tls.verified
      ? { mode, result: 'passed' }
      : failed(tls.unverifiedReason ?? 'certificate not trusted')
  // A shutdown, ours or the server's (421), says nothing of its TLS.
  if (BEFORE_TLS.has(end.stage) || end.broken?.kind === 'aborted' || end.reply?.code === 421) return { mode }
  return failed(end.stage === 'starttls' ? (end.broken?.text ?? 'STARTTLS was refused') : 'no TLS')
}

const BEFORE_TLS: ReadonlySet<HostTried['stage']> = new Set(['resolve', 'connect', 'greeting', 'ehlo'])
