/**
 * Asks DNS again about domains whose time has come: those that wait for their records, and those that once had them.
 *
 * Run every minute by the scheduler; `next-check.ts` says how often each domain is due and what follows. A few domains are
 * asked about at a time. Fails: one domain's trouble is logged, and it is due again the next minute; at shutdown, answers
 * that have not come are not waited for.
 */
import { describeError } from '../../core/errors.js'
import type { Log } from '../../world/log.js'
import { listDueForCheck } from './domain-check-store.js'
import type { DomainParts } from './domain-parts.js'
import type { Domain } from './domain-store.js'
import { concludeCheck, type ConcludedCheck } from './conclude-check.js'
import { resolverFor } from './sandbox-zone.js'
import { checkDomain } from './verify-domain.js'

export interface RecheckParts extends DomainParts {
  readonly log: Log
}

/** Each asks up to three questions at a time. */
const AT_ONCE = 8
/** The rest of a great number is due the next minute. */
const MOST_OF_A_RUN = 500

export async function recheckDomains(parts: RecheckParts, stopping: AbortSignal): Promise<void> {
  const due = await listDueForCheck(parts.database.reader, parts.clock.now(), MOST_OF_A_RUN)
  let stop = (): void => undefined
  const stopped = new Promise<void>(resolve => (stop = resolve))
  const takeTurns = async () => {
    for (let domain = due.shift(); domain && !stopping.aborted; domain = due.shift())
      await Promise.race([recheck(parts, domain, stopping), stopped])
  }
  // Taken off again: the signal lives as long as the server, and this runs every minute.
  stopping.addEventListener('abort', stop)
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, takeTurns))
  } finally {
    stopping.removeEventListener('abort', stop)
  }
}

async function recheck(parts: RecheckParts, domain: Domain, stopping: AbortSignal): Promise<void> {
  try {
    const check = await checkDomain(domain, parts.dkimZone, resolverFor(domain, parts))
    // The database may be closed by now.
    if (stopping.aborted) return
    const kept = await concludeCheck(parts, domain, check, undefined)
    if (kept) tell(parts.log, kept)
  } catch (error) {
    parts.log.error('domain could not be checked', { domain: domain.domain, error: describeError(error) })
  }
}

function tell(log: Log, { before, after }: ConcludedCheck): void {
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
