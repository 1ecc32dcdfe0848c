/**
 * Rotates a domain's DKIM keys: publish, switch, retire.
 *
 * The standby keys are already published. Once DNS has them, signing switches to them, RSA and Ed25519 together. The previous keys stay
 * published for mail in transit; then `dkim-keys.ts` renews them as the next standbys.
 */
import { AppError } from '../../../core/errors.js'
import { isoTime } from '../../../core/moments.js'
import type { Actor } from '../../../core/actor.js'
import { recordActivity } from '../../../events/activity-store.js'
import { recordMatchesKey } from '../../../mail/dkim/dkim-record.js'
import type { Resolver } from '../../../world/dns/dns.js'
import { changeFindings, switchKeys } from './dkim-key-store.js'
import { isRequired, TTL_SECONDS } from '../dns-records.js'
import type { DomainParts } from '../domain-parts.js'
import { dkimName, getDomain, type Domain, type Finding, type Selector } from '../domain-store.js'
import { renewRetiredKeys } from './dkim-keys.js'
import { resolverFor, checkSelector } from '../verify-domain.js'

/** Other servers queue mail for days (RFC 5321 §4.5.4.1) with the signature of the first attempt. */
const RETIRING_MS = 7 * 24 * 3_600_000

/** How long resolvers may cache a selector's previous key. */
const CACHED_MS = TTL_SECONDS * 1_000

/**
 * @param isForced skips DNS and the wait for cached records
 * @throws AppError not_found; conflict, which names the missing record or the time from which rotation is possible
 */
export async function rotateDomain(
  parts: DomainParts,
  owner: string,
  id: string,
  actor: Actor,
  isForced = false,
): Promise<Domain> {
  const now = parts.clock.now()
  await renewRetiredKeys(parts, now, id)
  const domain = await getDomain(parts.database.reader, owner, id)
  assertHasStandby(domain)
  if (!isForced) assertPropagated(domain, now)
  const findings = isForced || domain.isVouched ? {} : await checkStandbys(domain, parts)
  return parts.database.write(async tx => {
    assertHasStandby(await getDomain(tx.db, owner, id))
    await switchKeys(tx.db, id, now + RETIRING_MS)
    // Decides whether Ed25519 signs.
    await changeFindings(tx.db, id, before => ({ ...before, ...findings }))
    await recordActivity(tx, { workspaceId: owner, actor }, now, {
      action: 'domain.rotated',
      subject: domain.domain,
      details: { id, forced: isForced },
    })
    return await getDomain(tx.db, owner, id)
  })
}

function assertHasStandby({ domain, selectors }: Domain): void {
  const until = selectors.map(({ retireAt }) => retireAt ?? 0).reduce((a, b) => Math.max(a, b), 0)
  if (until > 0)
    throw new AppError(
      'conflict',
      `the previous key of ${domain} is still in use; retry after ${isoTime(until)}`,
    )
}

function assertPropagated(domain: Domain, now: number): void {
  for (const { name, replacedAt } of standbys(domain))
    if (replacedAt !== null && replacedAt + CACHED_MS > now)
      throw new AppError(
        'conflict',
        `resolvers may still cache the previous key of selector ${name}; ` +
          `retry after ${isoTime(replacedAt + CACHED_MS)}`,
      )
}

/**
 * Checks the standby keys in DNS. An optional one is required if its algorithm signs now.
 *
 * @throws AppError conflict
 */
async function checkStandbys(domain: Domain, parts: DomainParts): Promise<Domain['findings']> {
  const dns = resolverFor(domain, parts)
  const checks = standbys(domain).map(async selector => {
    const [name, finding] = await checkSelector(domain, selector, parts.dkimZone, dns)
    if (finding.status === 'verified') await assertNotStale(name, selector, dns)
    else if (isRequired(selector) || signs(domain, selector.algorithm))
      throw new AppError('conflict', `the standby key ${name} ${reasonOf(finding)}`)
    return [name, finding] as const
  })
  return Object.fromEntries(await Promise.all(checks))
}

/** A CNAME points into a zone that may not have been reloaded since. One that resolves to nothing passes, as in verification. */
async function assertNotStale(name: string, { publicKey }: Selector, dns: Resolver): Promise<void> {
  const text = await dns.txt(name)
  if (text.kind === 'found' && !text.records.some(record => recordMatchesKey(record, publicKey)))
    throw new AppError('conflict', `DNS has a different key at ${name}; reload the zone`)
}

function reasonOf({ status, found }: Finding): string {
  if (status === 'failed') return 'was not found in DNS'
  return found[0]?.startsWith('DNS ') ? `could not be looked up: ${found[0]}` : 'is not published yet'
}

function signs(domain: Domain, algorithm: Selector['algorithm']): boolean {
  return domain.selectors.some(
    selector =>
      selector.algorithm === algorithm &&
      selector.state === 'active' &&
      domain.findings[dkimName(domain, selector)]?.status === 'verified',
  )
}

function standbys({ selectors }: Domain): Selector[] {
  return selectors.filter(({ state }) => state === 'standby')
}
