/**
 * The MTA-STS policies of recipient domains: found, fetched, kept as long as they say.
 *
 * Opened once per SMTP agent, called by `route.ts`. Decides nothing about hosts: that is `tls-demand.ts`. Keeps policies
 * in memory only, a bounded number. Standards: RFC 8461 §3.3, §5.1. Fails: never rejects; a policy that cannot be had is
 * an answer, since mail then goes as it would without one.
 *
 *   nothing kept  + record     -> fetch        kept, same id         -> kept (and fetched again once a day)
 *   nothing kept  + no record  -> none         kept, other id        -> fetch, or kept where that fails
 *   kept          + no record, or DNS does not answer                -> kept
 */
import { given } from '../../core/given.js'
import { fetchStsPolicy, type StsFetchParts } from './mta-sts-fetch.js'
import { readStsId, type StsPolicy } from './mta-sts-policy.js'

export type StsLookup =
  /** The domain has no policy, or one of mode `none`. */
  | { readonly kind: 'none' }
  | { readonly kind: 'policy'; readonly policy: StsPolicy }
  /** A policy is announced, but could not be had. */
  | { readonly kind: 'unavailable'; readonly reason: string }

interface Kept {
  readonly policy: StsPolicy
  /** Of the record that announced it. */
  readonly id: string
  /** On the monotonic clock, ms, as all moments here. */
  readonly fetchedAt: number
}

/** What is known of one domain; at least one of the two is there. */
interface Known {
  readonly kept?: Kept
  readonly failure?: { readonly reason: string; readonly failedAt: number }
}

/** Domains that are remembered; the one asked for longest ago gives way. A policy is mostly a few hundred octets. */
const MOST_DOMAINS = 5_000
/** How long nothing is fetched after a failure (RFC 8461 §3.3). */
const FAILURE_MS = 300_000
/** How often a kept policy is fetched again, so that whoever blocks one fetch has not won (RFC 8461 §10.2). */
const REFRESH_MS = 86_400_000

export class StsPolicies {
  private readonly parts: StsFetchParts
  private readonly mostDomains: number
  /** The one asked for longest ago comes first. */
  private readonly known = new Map<string, Known>()
  private readonly underWay = new Map<string, Promise<void>>()

  constructor(parts: StsFetchParts & { readonly mostDomains?: number }) {
    this.parts = parts
    this.mostDomains = parts.mostDomains ?? MOST_DOMAINS
  }

  /** @param domain of the recipient: A-labels, lower case */
  async find(domain: string): Promise<StsLookup> {
    const answer = await this.parts.resolver.txt(`_mta-sts.${domain}`)
    const id = answer.kind === 'found' ? readStsId(answer.records) : undefined
    // RFC 8461 §5.1: neither a missing record nor a silent DNS takes back what a domain has promised.
    if (id !== undefined) await this.update(domain, id)
    return lookupOf(this.recall(domain), id !== undefined)
  }

  private async update(domain: string, id: string): Promise<void> {
    const { kept, failure } = this.recall(domain)
    if (failure !== undefined) return
    if (kept?.id !== id) {
      await this.refresh(domain, id)
      return
    }
    // Nobody has to wait for this: the policy at hand is good.
    if (this.parts.clock.monotonic() - kept.fetchedAt >= REFRESH_MS) void this.refresh(domain, id)
  }

  /** What of it still holds. */
  private recall(domain: string): Known {
    const { kept, failure } = this.known.get(domain) ?? {}
    const now = this.parts.clock.monotonic()
    const isFresh = kept !== undefined && now - kept.fetchedAt <= kept.policy.maxAgeSeconds * 1_000
    const isRecent = failure !== undefined && now - failure.failedAt < FAILURE_MS
    const still: Known = { ...(isFresh ? { kept } : {}), ...(isRecent ? { failure } : {}) }
    this.remember(domain, still)
    return still
  }

  private remember(domain: string, known: Known): void {
    this.known.delete(domain)
    if (known.kept === undefined && known.failure === undefined) return
    this.known.set(domain, known)
    const eldest = this.known.size > this.mostDomains ? this.known.keys().next().value : undefined
    if (eldest !== undefined) this.known.delete(eldest)
  }

  /** Deliveries to one domain share one fetch. */
  private refresh(domain: string, id: string): Promise<void> {
    const shared = this.underWay.get(domain)
    if (shared !== undefined) return shared
    const fetching = this.fetch(domain, id).finally(() => this.underWay.delete(domain))
    this.underWay.set(domain, fetching)
    return fetching
  }

  private async fetch(domain: string, id: string): Promise<void> {
    const { clock } = this.parts
    const result = await fetchStsPolicy(this.parts, domain)
    const now = clock.monotonic()
    if ('policy' in result) {
      this.remember(domain, { kept: { policy: result.policy, id, fetchedAt: now } })
      return
    }
    const { kept } = this.recall(domain)
    const failure = { reason: result.problem, failedAt: now }
    this.remember(domain, { ...given({ kept }), failure })
  }
}

function lookupOf({ kept, failure }: Known, isAnnounced: boolean): StsLookup {
  if (kept !== undefined && kept.policy.mode !== 'none') return { kind: 'policy', policy: kept.policy }
  if (kept !== undefined || failure === undefined || !isAnnounced) return { kind: 'none' }
  return { kind: 'unavailable', reason: failure.reason }
}
