/**
 * Writes down what a check of a domain found, with what follows for the domain; one place for whoever asked.
 *
 * Called by `verifyDomain` (somebody asked) and by the job that rechecks. A domain that becomes verified, or is not any
 * more, is told in the activity log. Fails: as the database does.
 */
import { recordActivity, type Actor } from '../../events/activity-store.js'
import { nextCourse } from './next-check.js'
import { recordCheck } from './domain-check-store.js'
import type { DomainParts } from './domain-parts.js'
import { findDomain, type Domain } from './domain-store.js'
import type { DomainCheck } from './verify-domain.js'

export interface ConcludedCheck {
  readonly before: Domain
  readonly after: Domain
}

const SYSTEM: Actor = { type: 'system' }

/**
 * @param actor who asked; undefined where nobody did
 * @returns undefined where the domain was removed meanwhile
 */
export async function concludeCheck(
  { database, clock, random, onChanged }: Pick<DomainParts, 'database' | 'clock' | 'random' | 'onChanged'>,
  { owner, id }: Pick<Domain, 'owner' | 'id'>,
  { verdict, findings }: DomainCheck,
  actor: Actor | undefined,
): Promise<ConcludedCheck | undefined> {
  const now = clock.now()
  const fraction = random.fraction()
  return database.write(async tx => {
    const before = await findDomain(tx.db, owner, id)
    if (!before) return undefined
    const course = nextCourse(before, {
      ...{ verdict, now, fraction },
      isAsked: actor !== undefined,
      hasGrace: actor?.type === 'operator',
    })
    const kept = actor ? findings : answered(findings, before.findings)
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
function answered(found: Domain['findings'], known: Domain['findings']): Domain['findings'] {
  return Object.fromEntries(
    Object.entries(found).map(([name, finding]) => [
      name,
      finding.isUnanswered && known[name]?.status === 'verified' ? known[name] : finding,
    ]),
  )
}
