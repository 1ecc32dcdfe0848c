/**
 * Enqueues the messages of accepted submissions and signals the queue after the commit.
 *
 * Called by `store-submissions.ts` for live mail; `sandbox/simulator.ts` is the sandbox counterpart. Fails: on database errors.
 */
import type { Tx } from '../db/database.js'
import { isLargeContent } from '../messages/content-store.js'
import { priorityOf } from '../messages/mail-origin.js'
import { laneKey } from '../queue/lane.js'
import { insertQueueEntries } from '../queue/queue-store.js'
import type { AcceptedSubmission } from './mail-submission.js'
import type { StoreParts } from './submit-parts.js'

export async function enqueueMessages(
  tx: Tx,
  parts: StoreParts,
  accepted: readonly AcceptedSubmission[],
  now: number,
): Promise<void> {
  const firstDue = new Map<string, number>()
  const entries = accepted.flatMap(({ content, recipients, dueAt, dsn }) => {
    const priority = priorityOf(content)
    const isLarge = isLargeContent(content)
    const { campaignId } = content
    return recipients
      .filter(one => one.skip === null)
      .map(one => {
        const lane = laneKey(one.destination, priority, content.workspaceId, isLarge, campaignId)
        firstDue.set(lane, Math.min(dueAt, firstDue.get(lane) ?? Infinity))
        const notify = dsn?.get(one.asked)?.notify
        const entry = {
          messageId: one.messageId,
          workspaceId: content.workspaceId,
          destination: one.destination,
          priority,
          nextAttemptAt: dueAt,
          expiresAt: dueAt + parts.expireMs,
          enqueuedAt: now,
          contentId: content.id,
          recipient: one.address,
          isLarge,
          campaignId,
        }
        return notify === undefined ? entry : { notify, ...entry }
      })
  })
  await insertQueueEntries(tx.db, entries)
  tx.onCommit(() => {
    for (const { content, dueAt } of accepted) if (dueAt <= now) parts.onStored?.(content)
    for (const [lane, dueAt] of firstDue) parts.onEnqueued(lane, dueAt)
  })
}
