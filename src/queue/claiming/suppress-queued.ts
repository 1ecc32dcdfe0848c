/**
 * The last look before hand-off: whoever was suppressed after the mail was accepted is not mailed.
 *
 * Called by the queue manager with jobs that it has claimed. Mail to people who only unsubscribed is stopped where it is
 * marketing. Fails: as the database does.
 */
import type { Queries, Tx } from '../../db/database.js'
import { findSuppressed } from '../../deliverability/suppressions/suppression-store.js'
import { normalizedAddress } from '../../mail/address.js'
import type { DeliveryJob } from '../delivery-agent.js'
import { recordHappenings } from '../../messages/message-history.js'
import { removeEntries } from '../queue-store.js'

/** Which of these jobs' recipients their workspace has suppressed since. */
export async function suppressedJobs(db: Queries, jobs: readonly DeliveryJob[]): Promise<Set<DeliveryJob>> {
  const suppressed = new Set<DeliveryJob>()
  for (const own of alike(jobs)) {
    const [first] = own
    if (!first) continue
    const emails = own.map(job => normalizedAddress(job.recipient))
    const found = await findSuppressed(db, first.workspaceId, emails, isMarketing(first))
    for (const job of own) if (found.has(normalizedAddress(job.recipient))) suppressed.add(job)
  }
  return suppressed
}

/** Between two attempts they were sent already, and are only not sent again. */
export async function dropSuppressed(tx: Tx, jobs: readonly DeliveryJob[], now: number): Promise<void> {
  const entries = await removeEntries(
    tx.db,
    jobs.map(job => job.messageId),
  )
  await recordHappenings(
    tx,
    entries.map(({ messageId, wasHandedOver }) => ({
      what: wasHandedOver ? 'withheld' : 'suppressed',
      messageId,
      at: now,
    })),
  )
}

/** By what decides which suppressions count: workspace and kind of mail. */
function alike(jobs: readonly DeliveryJob[]): Iterable<readonly DeliveryJob[]> {
  const groups = new Map<string, DeliveryJob[]>()
  for (const job of jobs) {
    const key = `${job.workspaceId} ${isMarketing(job)}`
    const group = groups.get(key)
    if (group) group.push(job)
    else groups.set(key, [job])
  }
  return groups.values()
}

function isMarketing({ origin }: DeliveryJob): boolean {
  return origin?.isMarketing ?? false
}
