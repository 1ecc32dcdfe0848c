/** SQL of domain checks: due domains and results. */
import type { Queries } from '../../db/database.js'
import { MAX_INTERVAL_MS, type VerificationState } from './next-check.js'
import { withSelectors, type Domain } from './domain-store.js'

/**
 * Longest due first; includes domains scheduled by a clock that was ahead. Vouched and removed domains are never due.
 */
export async function listDueForCheck(db: Queries, now: number, limit: number): Promise<Domain[]> {
  const rows = await db
    .selectFrom('domains')
    .selectAll()
    .where('next_check_at', 'is not', null)
    .where(e => e.or([e('next_check_at', '<=', now), e('next_check_at', '>', now + MAX_INTERVAL_MS)]))
    .orderBy('next_check_at')
    .limit(limit)
    .execute()
  return withSelectors(db, rows)
}

export async function recordCheck(
  db: Queries,
  id: string,
  check: VerificationState & { readonly checkedAt: number; readonly findings: Domain['findings'] },
): Promise<void> {
  await db
    .updateTable('domains')
    .set({
      verified_at: check.verifiedAt,
      checked_at: check.checkedAt,
      findings: JSON.stringify(check.findings),
      next_check_at: check.nextCheckAt,
      failing_since: check.failingSince,
      failed_checks: check.failedChecks,
      watched_since: check.watchedSince,
    })
    .where('id', '=', id)
    .execute()
}
