/**
 * `POST /email/batch`: up to a thousand messages, accepted in one transaction and released at the pace of their key.
 *
 * A batch is one request: it counts against the hourly and daily limits as a whole and is never refused for the email rate.
 * Instead its messages fall due one after the other, at the rate; batches of the same key line up. The queue's own due time
 * does the waiting, so a restart changes nothing.
 */
import { keepAnswer } from '../../accounts/idempotency-store.js'
import { countAgainstLimits } from '../../accounts/sending-limit-store.js'
import type { Workspace } from '../../accounts/workspace-store.js'
import type { IdempotencyClaim } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import type { MessageContent } from '../../messages/content-store.js'
import { acceptLetters } from '../accept.js'
import { readBatchLetters, type BatchLetter, type BatchLetters } from './batch-letters.js'
import { findLastRelease, insertBatch, type Batch } from '../batch-store.js'
import type { Letter } from '../letter.js'
import { sortAllRecipients, type Recipient } from '../recipients.js'
import type { SendParts } from './send-email.js'
import type { BatchMessage } from './send-schema.js'
import { withPartsStored } from '../store-ahead.js'

/** @param toAnswer what is answered, and kept for a repeat @throws AppError validation_error, limit_reached */
export async function sendBatch<A>(
  parts: SendParts,
  principal: Principal,
  messages: readonly BatchMessage[],
  claim: IdempotencyClaim | undefined,
  toAnswer: (batch: Batch, now: number) => { status: number; value: A },
): Promise<{ status: number; value: A }> {
  parts.database.storage.requireRoom()
  const workspace = await parts.senders.workspace(principal.workspaceId)
  const read = await readBatchLetters(parts, workspace, messages)
  const now = parts.clock.now()
  const batchId = parts.newId()
  const contents = read.letters.map(letter => toContent(letter, workspace, parts.newId(), batchId, now))
  const attaching = read.letters.map(({ attached }, at) => ({ contentId: contents[at]?.id ?? '', attached }))
  return withPartsStored(parts.database, attaching, () =>
    parts.database.write(async tx => {
      const sorted = await sortAllRecipients(
        tx.db,
        workspace.id,
        read.letters.map(({ recipients }) => recipients),
        workspace.isMarketing,
      )
      const mailed = sorted.flat().filter(({ skip }) => skip === null).length
      const { isSandbox, keyId, emailRateLimit } = principal
      if (!isSandbox) await countAgainstLimits(tx.db, workspace, mailed, now)
      const lastRelease = isSandbox ? undefined : await findLastRelease(tx.db, keyId)
      const pace = new Pace(isSandbox ? 0 : emailRateLimit, lastRelease, now)
      const letters = read.letters.map((letter, at) =>
        toLetter(letter, contents[at], sorted[at] ?? [], pace, parts.newId),
      )
      await acceptLetters(tx, parts, letters, isSandbox, now)
      const head = { id: batchId, workspaceId: workspace.id, keyId, isSandbox, createdAt: now }
      const batch = {
        ...head,
        ...countsOf(messages.length, read, sorted),
        errors: read.errors,
        releasedAt: pace.lastDueAt,
      }
      await insertBatch(tx.db, batch)
      const answer = toAnswer(batch, now)
      await keepAnswer(tx.db, claim, answer)
      return answer
    }),
  )
}

const MINUTE_MS = 60_000

/** Gives out due times, no more than the rate of the key allows. */
class Pace {
  /** When the last one falls due; now where nobody waits. */
  lastDueAt: number
  private readonly firstAt: number
  private readonly stepMs: number
  private given = 0

  /** @param perMinute 0: no limit @param lastRelease of the batches before */
  constructor(perMinute: number, lastRelease: number | undefined, now: number) {
    this.stepMs = perMinute === 0 ? 0 : MINUTE_MS / perMinute
    this.firstAt =
      perMinute === 0 || lastRelease === undefined ? now : Math.max(now, Math.ceil(lastRelease + this.stepMs))
    this.lastDueAt = now
  }

  /** @param mails that fall due together: a message and its copies */
  next(mails: number): number {
    const dueAt = Math.ceil(this.firstAt + this.given * this.stepMs)
    this.given += mails
    // Copies leave with their message; whoever comes next waits for them as well.
    if (mails > 0) this.lastDueAt = Math.ceil(this.firstAt + (this.given - 1) * this.stepMs)
    return dueAt
  }
}

function toLetter(
  letter: BatchLetter,
  content: MessageContent | undefined,
  recipients: readonly Recipient[],
  pace: Pace,
  newId: () => string,
): Letter {
  if (!content) throw new Error('a letter of a batch has no content')
  return {
    content,
    // The message to the first recipient has the id of its content: that is how results find it.
    submitted: recipients.map((recipient, at) => ({
      ...recipient,
      messageId: at === 0 ? content.id : newId(),
    })),
    dueAt: pace.next(recipients.filter(({ skip }) => skip === null).length),
    ...(letter.attached === undefined ? {} : { attached: letter.attached }),
  }
}

function toContent(
  letter: BatchLetter,
  workspace: Workspace,
  id: string,
  batchId: string,
  createdAt: number,
): MessageContent {
  const { index, sender, recipients: _recipients, attached: _attached, ...shared } = letter
  return {
    id,
    workspaceId: workspace.id,
    ...sender,
    ...shared,
    batch: { id: batchId, index },
    ...(workspace.isMarketing ? { isMarketing: true } : {}),
    createdAt,
  }
}

/** A message is what its `to` is; copies are not counted. */
function countsOf(total: number, { errors }: BatchLetters, sorted: readonly (readonly Recipient[])[]) {
  const sent = sorted.filter(([first]) => first?.skip === null).length
  return { total, sent, skipped: sorted.length - sent, failed: errors.length }
}
