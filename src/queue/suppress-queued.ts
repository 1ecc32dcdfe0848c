/**
 * The last look before hand-off: whoever was suppressed after the mail was accepted is not mailed.
 */
import type { Queries, Tx } from '../db/database.js'
import { findSuppressed } from '../deliverability/suppression-store.js'
import { appendEvents } from '../events/store.js'
import { normalizedAddress } from '../mail/address.js'
import type { DeliveryJob } from './delivery-agent.js'
import { markSuppressed } from './message-status-store.js'
import { removeEntries } from './queue-store.js'

/** Which of these jobs' recipients their workspace has suppressed since. */
export async function suppressedJobs(db: Queries, jobs: readonly DeliveryJob[]): Promise<Set<DeliveryJob>> {
  const suppressed = new Set<DeliveryJob>()
  for (const [workspaceId, own] of byWorkspace(jobs)) {
    const emails = own.map(job => normalizedAddress(job.recipient))
    const found = await findSuppressed(db, workspaceId, emails)
    for (const job of own) if (found.has(normalizedAddress(job.recipient))) suppressed.add(job)
  }
  return suppressed
}

export async function dropSuppressed(tx: Tx, jobs: readonly DeliveryJob[], now: number): Promise<void> {
  const ids = jobs.map(job => job.messageId)
  await removeEntries(tx.db, ids)
  await markSuppressed(tx.db, ids)
  await appendEvents(
    tx,
    jobs.map(job => ({
      kind: 'email.suppressed',
      workspaceId: job.workspaceId,
      messageId: job.messageId,
      isSandbox: false,
      occurredAt: now,
      payload: { to: job.recipient },
    })),
  )
}

function byWorkspace(jobs: readonly DeliveryJob[]): Map<string, DeliveryJob[]> {
  const groups = new Map<string, DeliveryJob[]>()
  for (const job of jobs) {
    const group = groups.get(job.workspaceId)
    if (group) group.push(job)
    else groups.set(job.workspaceId, [job])
  }
  return groups
}
