/**
 * `POST /email/batch`: up to a thousand messages, accepted in one transaction and released at the pace of their key.
 *
 * A batch counts as one request: it counts against the hourly and daily limits as a whole, and is never refused for the email rate.
 * Instead its messages become due at that rate, after those of the key's earlier batches. Messages are validated before anything is
 * stored, by the rules of a single send: an invalid field fails the whole request, with a path that names the message (`messages.3.to`);
 * a violated sending rule fails only that message.
 */
import { given } from '../../core/given.js'
import { keepAnswer } from '../../accounts/idempotency-store.js'
import type { Tx } from '../../db/database.js'
import type { IdempotencyClaim } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import { findLastRelease, insertBatch, type Batch, type BatchError } from '../batch-store.js'
import type { SubmittedBy } from '../../messages/mail-log.js'
import type { Submission, SubmittedRecipient } from '../mail-submission.js'
import { withLongStored } from '../store-long-content.js'
import { submitAll } from '../submit.js'
import type { SendParts } from './send-email.js'
import { type BatchMessage, invalidField, MAX_BATCH_COPIES } from './send-schema.js'
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { hasTags } from '../../content/merge/parse-template.js'
import { AppError } from '../../core/errors.js'
import { nextTurn } from '../../world/time/clock.js'
import { shownRecipient } from './address-fields.js'
import { openBatchContext, readMessage, type ReadMessage } from './read-message.js'

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
  message: BatchEntry,
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

/**
 * Assigns due times so that a batch is released to the queue no faster than its rate.
 *
 * The due times are stored in the queue, so a restart does not change the pace. Pure.
 */
const MINUTE_MS = 60_000

export class ReleasePace {
  /** When the last mail is due, ms since epoch UTC; now if none was paced. */
  lastDueAt: number
  private readonly firstAt: number
  private readonly stepMs: number
  private given = 0

  /** @param perMinute 0: no limit @param lastRelease when the previous batch's last mail is due, if there is one */
  constructor(perMinute: number, lastRelease: number | undefined, now: number) {
    this.stepMs = perMinute === 0 ? 0 : MINUTE_MS / perMinute
    this.firstAt =
      perMinute === 0 || lastRelease === undefined ? now : Math.max(now, Math.ceil(lastRelease + this.stepMs))
    this.lastDueAt = now
  }

  /** @param mails due together: a message and its copies */
  next(mails: number): number {
    const dueAt = Math.ceil(this.firstAt + this.given * this.stepMs)
    this.given += mails
    // Copies are due with their message but use up the rate, so the next message waits for them too.
    if (mails > 0) this.lastDueAt = Math.ceil(this.firstAt + (this.given - 1) * this.stepMs)
    return dueAt
  }
}

/** A valid message of a batch. */
interface BatchEntry extends Omit<ReadMessage, 'asked'> {
  /** Position in the batch, from 0. */
  readonly index: number
}

export interface ReadMessages {
  readonly messages: readonly BatchEntry[]
  readonly errors: readonly BatchError[]
}

/** Messages read before yielding to the event loop. */
const READ_AT_ONCE = 50
/** Characters of text with merge tags read before yielding. */
const CHARACTERS_AT_ONCE = 262_144

/** @throws AppError validation_error */
export async function readBatchMessages(
  parts: SendParts,
  workspace: ActingWorkspace,
  messages: readonly BatchMessage[],
): Promise<ReadMessages> {
  refuseTooManyCopies(messages)
  const context = openBatchContext(parts, workspace)
  const read: BatchEntry[] = []
  const errors: BatchError[] = []
  let [waiting, characters] = [0, 0]
  for (const [index, message] of messages.entries()) {
    if (++waiting >= READ_AT_ONCE || characters >= CHARACTERS_AT_ONCE) {
      await nextTurn()
      waiting = characters = 0
    }
    characters += taggedLength(message)
    try {
      const one = await readMessage(message, context, true)
      // Results do not list copies, so a skipped one would go unnoticed.
      if (one.copyFault === undefined) read.push({ index, ...one })
      else
        errors.push({
          index,
          to: shownRecipient(message.to),
          code: 'validation_error',
          message: one.copyFault,
        })
    } catch (error) {
      errors.push(toBatchError(error, index, shownRecipient(message.to)))
    }
  }
  return { messages: read, errors }
}

/** Copies are stored and queued like other recipients, in the batch's one transaction. */
function refuseTooManyCopies(messages: readonly BatchMessage[]): void {
  let copies = 0
  for (const [index, { cc = [], bcc = [] }] of messages.entries()) {
    copies += [cc].flat().length + [bcc].flat().length
    if (copies > MAX_BATCH_COPIES)
      throw invalidField(
        `messages.${index}`,
        `messages.${index}: cc and bcc of all messages together must have at most ${MAX_BATCH_COPIES} addresses`,
      )
  }
}

function taggedLength({ html = '', text = '' }: BatchMessage): number {
  return (hasTags(html) ? html.length : 0) + (hasTags(text) ? text.length : 0)
}

/** @throws AppError validation_error, which fails the whole batch, its path prefixed with the message */
function toBatchError(error: unknown, index: number, to: string): BatchError {
  if (!(error instanceof AppError)) throw error
  const { code, message, path } = error
  // The same batch may be accepted a second later.
  if (code === 'unavailable') throw error
  if (code !== 'validation_error') return { index, to, code, message }
  const place = `messages.${index}`
  const whole = path === undefined ? place : `${place}.${path}`
  throw new AppError(code, path === undefined ? message : message.replace(path, whole), { path: whole })
}
