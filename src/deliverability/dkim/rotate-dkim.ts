/**
 * Rotation of a domain's DKIM keys: publish, switch, retire.
 *
 * The standby key has been published all along; once its record is found signing switches to it, RSA and Ed25519
 * together. The key before it stays published for the mail that is under way, and after that `renew-dkim.ts` makes its
 * selector the next standby. Called by the domain routes and the command line.
 */
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { OPERATOR, recordActivity, type Actor } from '../../events/activity-store.js'
import { recordMatchesKey } from '../../mail/dkim/dkim-record.js'
import type { Resolver } from '../../world/dns/dns.js'
import { changeFindings, switchKeys } from './dkim-key-store.js'
import { isRequired, TTL_SECONDS } from '../domains/dns-records.js'
import type { DomainParts } from '../domains/domain-parts.js'
import { dkimName, findDomain, type Domain, type Finding, type Selector } from '../domains/domain-store.js'
import { renewRetiredKeys } from './dkim-keys.js'
import { resolverFor, checkSelector } from '../domains/verify-domain.js'

/** Queues retry for some days (RFC 5321 §4.5.4.1) and keep the signature of the first attempt. */
const RETIRING_MS = 7 * 24 * 3_600_000

/** As long as a name server may remember the key that a selector had before. */
const CACHED_MS = TTL_SECONDS * 1_000

/**
 * @param isForced does not ask DNS, nor wait until a new standby key is known everywhere
 * @throws AppError not_found; conflict, which says which record is missing or from when on it can be done
 */
export async function rotateDomain(
  parts: DomainParts,
  owner: string,
  id: string,
  isForced = false,
  actor: Actor = OPERATOR,
): Promise<Domain> {
  const now = parts.clock.now()
  await renewRetiredKeys(parts, now, id)
  const domain = mustFind(await findDomain(parts.database.reader, owner, id))
  assertHasStandby(domain)
  if (!isForced) assertPropagated(domain, now)
  const findings = isForced || domain.isVouched ? {} : await checkStandbys(domain, parts)
  return parts.database.write(async tx => {
    assertHasStandby(mustFind(await findDomain(tx.db, owner, id)))
    await switchKeys(tx.db, id, now + RETIRING_MS)
    // Whether Ed25519 signs depends on it.
    await changeFindings(tx.db, id, before => ({ ...before, ...findings }))
    await recordActivity(tx, {
      workspaceId: owner,
      actor,
      action: 'domain.rotated',
      subject: domain.domain,
      details: { id, forced: isForced },
      createdAt: now,
    })
    return mustFind(await findDomain(tx.db, owner, id))
  })
}

function assertHasStandby({ domain, selectors }: Domain): void {
  const until = selectors.map(({ retireAt }) => retireAt ?? 0).reduce((a, b) => Math.max(a, b), 0)
  if (until > 0)
    throw new AppError(
      'conflict',
      `the former key of ${domain} is still needed; the next rotation is possible from ${isoTime(until)} on`,
    )
}

function assertPropagated(domain: Domain, now: number): void {
  for (const { name, replacedAt } of standbys(domain))
    if (replacedAt !== null && replacedAt + CACHED_MS > now)
      throw new AppError(
        'conflict',
        `the standby key ${name} is new, and name servers may remember the one before it; ` +
          `rotation is possible from ${isoTime(replacedAt + CACHED_MS)} on`,
      )
}

/**
 * Asks DNS for the standby keys. One that need not be there has to be if signing with its algorithm would end otherwise.
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

/** A CNAME leads to a zone that somebody may have to load again. One that nobody serves is told by verification's rule. */
async function assertNotStale(name: string, { publicKey }: Selector, dns: Resolver): Promise<void> {
  const text = await dns.txt(name)
  if (text.kind === 'found' && !text.records.some(record => recordMatchesKey(record, publicKey)))
    throw new AppError('conflict', `the standby key ${name} is another one in DNS than here`)
}

function reasonOf({ status, found }: Finding): string {
  if (status === 'failed') return 'is not found in DNS'
  return found[0]?.startsWith('DNS ')
    ? `could not be looked up: ${found[0]}`
    : 'is not the new one in DNS yet'
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

function mustFind(domain: Domain | undefined): Domain {
  if (!domain) throw new AppError('not_found', 'no such domain')
  return domain
}
