/**
 * Asks DNS again about domains whose time has come: those that wait for their records, and those that once had them.
 *
 * Run every minute by the scheduler; `next-check.ts` says how often each domain is due and what follows. A few domains are
 * asked about at a time. Fails: one domain's trouble is logged, and it is due again the next minute; at shutdown, answers
 * that have not come are not waited for.
 */
import { describeError } from '../../core/errors.js'
import type { Log } from '../../world/log.js'
import { listDueForCheck, recordCheck } from './domain-check-store.js'
import type { DomainParts } from './domain-parts.js'
import { type Domain, findDomain } from './domain-store.js'
import { resolverFor, checkDomain, type DomainCheck } from './verify-domain.js'
import { recordActivity, type Actor } from '../../events/activity-store.js'
import { nextVerificationState } from './next-check.js'

export interface RecheckParts extends DomainParts {
  readonly log: Log
}

/** Each asks up to three questions at a time. */
const CONCURRENCY = 8
/** The rest of a great number is due the next minute. */
const MAX_PER_RUN = 500

export async function recheckDomains(parts: RecheckParts, stopping: AbortSignal): Promise<void> {
  const due = await listDueForCheck(parts.database.reader, parts.clock.now(), MAX_PER_RUN)
  let stop = (): void => undefined
  const stopped = new Promise<void>(resolve => (stop = resolve))
  const takeTurns = async () => {
    for (let domain = due.shift(); domain && !stopping.aborted; domain = due.shift())
      await Promise.race([recheck(parts, domain, stopping), stopped])
  }
  // Taken off again: the signal lives as long as the server, and this runs every minute.
  stopping.addEventListener('abort', stop)
  try {
    await Promise.all(Array.from({ length: CONCURRENCY }, takeTurns))
  } finally {
    stopping.removeEventListener('abort', stop)
  }
}

async function recheck(parts: RecheckParts, domain: Domain, stopping: AbortSignal): Promise<void> {
  try {
    const check = await checkDomain(domain, parts.dkimZone, resolverFor(domain, parts))
    // The database may be closed by now.
    if (stopping.aborted) return
    const kept = await recordCheckResult(parts, domain, check, undefined)
    if (kept) logChange(parts.log, kept)
  } catch (error) {
    parts.log.error('domain could not be checked', { domain: domain.domain, error: describeError(error) })
  }
}

function logChange(log: Log, { before, after }: CheckResult): void {
  const facts = { domain: after.domain, workspaceId: after.owner, domainId: after.id }
  if (before.verifiedAt === null && after.verifiedAt !== null) log.info('domain verified', facts)
  else if (before.verifiedAt !== null && after.verifiedAt === null)
    log.warn('domain no longer verified', { ...facts, wrong: wrongRecords(after) })
  else if (before.failingSince === null && after.failingSince !== null)
    log.warn('records of a verified domain are wrong', { ...facts, wrong: wrongRecords(after) })
  else if (before.failingSince !== null && after.failingSince === null)
    log.info('records of a verified domain are right again', facts)
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

const SYSTEM: Actor = { type: 'system' }

/**
 * @param actor who asked; undefined where nobody did
 * @returns undefined where the domain was removed meanwhile
 */
export async function recordCheckResult(
  { database, clock, random, onChanged }: Pick<DomainParts, 'database' | 'clock' | 'random' | 'onChanged'>,
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
      ...{ verdict, now, fraction },
      isAsked: actor !== undefined,
      hasGrace: actor?.type === 'operator',
    })
    const kept = actor ? findings : keepUnanswered(findings, before.findings)
    tx.onCommit(() => onChanged?.())
    await recordCheck(tx.db, id, { ...course, checkedAt: now, findings: kept })
    const isVerified = course.verifiedAt !== null
    if (isVerified !== (before.verifiedAt !== null))
      await recordActivity(tx, {
        workspaceId: owner,
        actor: actor ?? SYSTEM,
        action: isVerified ? 'domain.verified' : 'domain.unverified',
        subject: before.domain,
        details: { id },
        createdAt: now,
      })
    const after = await findDomain(tx.db, owner, id)
    return after && { before, after }
  })
}

/** Where DNS was silent, what was known stays: whether Ed25519 signs depends on it, and silence changes nothing. */
function keepUnanswered(found: Domain['findings'], known: Domain['findings']): Domain['findings'] {
  return Object.fromEntries(
    Object.entries(found).map(([name, finding]) => [
      name,
      finding.isUnanswered && known[name]?.status === 'verified' ? known[name] : finding,
    ]),
  )
}
