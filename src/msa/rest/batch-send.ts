/**
 * `POST /email/batch`: up to a thousand messages, accepted in one transaction and released at the pace of their key.
 *
 * A batch counts as one request: it counts against the hourly and daily limits as a whole, and is never refused for the email rate.
 * Instead its messages become due at that rate, after those of the key's earlier batches.
 */
import { given } from '../../core/given.js'
import { keepAnswer } from '../../accounts/idempotency-store.js'
import type { Tx } from '../../db/database.js'
import type { IdempotencyClaim } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import { findLastRelease, insertBatch, type Batch } from '../batch-store.js'
import type { SubmittedBy } from '../../messages/mail-log.js'
import type { Submission, SubmittedRecipient } from '../mail-submission.js'
import { ReleasePace } from '../release-pace.js'
import { withLongStored } from '../store-long-content.js'
import { submitAll } from '../submit.js'
import { readBatchMessages, type ReadMessage, type ReadMessages } from './batch-messages.js'
import type { SendParts } from './send-email.js'
import type { BatchMessage } from './send-schema.js'

/** @param peer client address @param toAnswer builds the response, which is kept for an idempotent retry @throws AppError validation_error, limit_reached */
export async function sendBatch<A>(
  parts: SendParts,
  principal: Principal,
  peer: string,
  messages: readonly BatchMessage[],
  claim: IdempotencyClaim | undefined,
  toAnswer: (batch: Batch, now: number) => { status: number; value: A },
): Promise<{ status: number; value: A }> {
  const { database, clock, newId } = parts
  database.storage.requireRoom()
  const workspace = await parts.senders.workspace(principal.workspaceId)
  const read = await readBatchMessages(parts, workspace, messages)
  const now = clock.now()
  const id = newId()
  const { isSandbox, keyId } = principal
  const submittedBy = { keyId, peer }
  const all = read.messages.map(one => toSubmission(one, newId(), id, submittedBy))
  return withLongStored(database, workspace, all, now, (submissions, take) =>
    database.write(async tx => {
      await take(tx)
      const pace = await openPace(tx, principal, now)
      const accepted = await submitAll(tx, parts, { workspace, isSandbox, submissions, pace }, now)
      const batch = {
        id,
        workspaceId: workspace.id,
        keyId,
        isSandbox,
        ...countsOf(messages.length, read, accepted),
        errors: read.errors,
        createdAt: now,
        releasedAt: pace.lastDueAt,
      }
      await insertBatch(tx.db, batch)
      const answer = toAnswer(batch, now)
      await keepAnswer(tx.db, claim, answer)
      return answer
    }),
  )
}

/** Continues after the key's previous batch. */
async function openPace(tx: Tx, principal: Principal, now: number): Promise<ReleasePace> {
  const { isSandbox, keyId, emailRateLimit } = principal
  if (isSandbox) return new ReleasePace(0, undefined, now)
  return new ReleasePace(emailRateLimit, await findLastRelease(tx.db, keyId), now)
}

function toSubmission(
  message: ReadMessage,
  id: string,
  batchId: string,
  submittedBy: SubmittedBy,
): Submission {
  const { index, sender, recipients, addressees, attached } = message
  return {
    content: {
      id,
      batch: { id: batchId, index },
      ...sender,
      ...message.content,
      ...given({ addressees }),
      submittedBy,
    },
    to: recipients,
    ...given({ attached }),
  }
}

/** Counts by each message's `to`; copies are not counted. */
function countsOf(
  total: number,
  { errors }: ReadMessages,
  accepted: readonly (readonly SubmittedRecipient[])[],
) {
  const sent = accepted.filter(([first]) => first?.skip === null).length
  return { total, sent, skipped: accepted.length - sent, failed: errors.length }
}
