/**
 * Rechecks domains in DNS and records the result of every check.
 *
 * The scheduler runs `recheckDomains` every minute. A failed check is logged and due again a minute later. Shutdown does not wait for DNS.
 * `recordCheckResult` also records requested verifications; a change of verification is written to the activity log.
 */
import { describeError } from '../../core/errors.js'
import type { Log } from '../../world/log.js'
import type { DomainParts } from './domain-parts.js'
import { type Domain, findDomain, listDueForCheck, recordCheck } from './domain-store.js'
import { checkDomain, type DomainCheck, nextVerificationState, resolverFor } from './verify-domain.js'
import { SYSTEM, type Actor } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'

export interface RecheckParts extends DomainParts {
  readonly log: Log
}

/** Each check runs up to three lookups at a time. */
const CONCURRENCY = 8
const MAX_PER_RUN = 500

export async function recheckDomains(parts: RecheckParts, stopping: AbortSignal): Promise<void> {
  const due = await listDueForCheck(parts.database.reader, parts.clock.now(), MAX_PER_RUN)
  let stop = (): void => undefined
  const stopped = new Promise<void>(resolve => (stop = resolve))
  const work = async () => {
    for (let domain = due.shift(); domain && !stopping.aborted; domain = due.shift())
      await Promise.race([recheck(parts, domain, stopping), stopped])
  }
  // Removed again: the signal lives as long as the server.
  stopping.addEventListener('abort', stop)
  try {
    await Promise.all(Array.from({ length: CONCURRENCY }, work))
  } finally {
    stopping.removeEventListener('abort', stop)
  }
}

async function recheck(parts: RecheckParts, domain: Domain, stopping: AbortSignal): Promise<void> {
  try {
    const check = await checkDomain(domain, parts.dkimZone, resolverFor(domain, parts))
    // The database may be closed.
    if (stopping.aborted) return
    const kept = await recordCheckResult(parts, domain, check, undefined)
    if (kept) logChange(parts.log, kept)
  } catch (error) {
    parts.log.error('domain check failed', { domain: domain.domain, error: describeError(error) })
  }
}

function logChange(log: Log, { before, after }: CheckResult): void {
  const facts = { domain: after.domain, workspaceId: after.owner, domainId: after.id }
  if (before.verifiedAt === null && after.verifiedAt !== null) log.info('domain verified', facts)
  else if (before.verifiedAt !== null && after.verifiedAt === null)
    log.warn('domain verification lost', { ...facts, wrong: wrongRecords(after) })
  else if (before.failingSince === null && after.failingSince !== null)
    log.warn('domain records failed', { ...facts, wrong: wrongRecords(after) })
  else if (before.failingSince !== null && after.failingSince === null)
    log.info('domain records restored', facts)
}

function wrongRecords({ findings }: Domain): string {
  return Object.keys(findings)
    .filter(name => findings[name]?.status === 'failed')
    .join(', ')
}

export interface CheckResult {
  readonly before: Domain
  readonly after: Domain
}

/**
 * @param actor who requested the check; undefined for the scheduler
 * @returns undefined if the domain was removed meanwhile
 */
export async function recordCheckResult(
  { database, clock, random }: Pick<DomainParts, 'database' | 'clock' | 'random'>,
  { owner, id }: Pick<Domain, 'owner' | 'id'>,
  { verdict, findings }: DomainCheck,
  actor: Actor | undefined,
): Promise<CheckResult | undefined> {
  const now = clock.now()
  const fraction = random.fraction()
  return database.write(async tx => {
    const before = await findDomain(tx.db, owner, id)
    if (!before) return undefined
    const course = nextVerificationState(before, {
      verdict,
      now,
      fraction,
      isRequested: actor !== undefined,
      hasGrace: actor !== undefined && actor.type !== 'api_key',
    })
    const kept = actor ? findings : keepUnanswered(findings, before.findings)
    tx.changed('domains')
    await recordCheck(tx.db, id, { ...course, checkedAt: now, findings: kept })
    const isVerified = course.verifiedAt !== null
    if (isVerified !== (before.verifiedAt !== null))
      await recordActivity(tx, { workspaceId: owner, actor: actor ?? SYSTEM }, now, {
        action: isVerified ? 'domain.verified' : 'domain.unverified',
        subject: before.domain,
        details: { id },
      })
    const after = await findDomain(tx.db, owner, id)
    return after && { before, after }
  })
}

/** Keeps verified findings that DNS did not answer: whether Ed25519 signs depends on them. */
function keepUnanswered(found: Domain['findings'], known: Domain['findings']): Domain['findings'] {
  return Object.fromEntries(
    Object.entries(found).map(([name, finding]) => [
      name,
      finding.isUnanswered && known[name]?.status === 'verified' ? known[name] : finding,
    ]),
  )
}
