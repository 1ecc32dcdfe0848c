/**
 * `POST /email/send`: reads the message by the rules of the contract (`read-message.ts`), then submits it. The answer follows the commit.
 */
import type { Static } from 'typebox'
import { keepAnswer } from '../../accounts/idempotency-store.js'
import { isoTime, readMoment } from '../../core/moments.js'
import type { Database } from '../../db/database.js'
import type { IdempotencyClaim, KeptAnswer } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import type { Submission, SubmittedRecipient, SubmitParts } from '../mail-submission.js'
import { shownSender } from '../sender.js'
import { withLongStored } from '../store-long-content.js'
import type { GatheredSubmission, SubmissionGatherer } from '../submission-gatherer.js'
import { submitAll } from '../submit.js'
import { openRequestContext, readMessage, type ReadParts } from './read-message.js'
import type { ScheduledResult, SendBody, SendResult } from './send-schema.js'
import { AppError } from '../../core/errors.js'
import { noMoment } from '../../http/time-range.js'

export interface SendParts extends SubmitParts, ReadParts {
  readonly database: Database
  readonly gatherer: SubmissionGatherer
}

export interface SendAnswer extends KeptAnswer {
  readonly value: Static<typeof SendResult> | Static<typeof ScheduledResult>
}

/**
 * @param peer client address; absent in a command run by the operator
 * @throws AppError with the codes of the contract's send rules
 */
export async function sendEmail(
  parts: SendParts,
  principal: Principal,
  body: SendBody,
  claim?: IdempotencyClaim,
  peer?: string,
): Promise<SendAnswer> {
  const now = parts.clock.now()
  const workspace = await parts.senders.workspace(principal.workspaceId)
  const scheduledAt = readSendAt(body.send_at)
  const message = await readMessage(body, openRequestContext(parts, workspace))
  checkSendAt(scheduledAt, now)
  const id = parts.newId()
  const { sender, content, addressees, recipients, attached } = message
  const submission: Submission = {
    content: {
      id,
      ...sender,
      ...content,
      ...(addressees ? { addressees } : {}),
      ...(scheduledAt === undefined ? {} : { scheduledAt }),
      ...(peer === undefined ? {} : { submittedBy: { keyId: principal.keyId, peer } }),
    },
    to: recipients,
    key: principal,
    ...(attached ? { attached } : {}),
  }
  const shown = shownSender(sender, message.asked)
  const toAnswer = (mailed: readonly SubmittedRecipient[]) =>
    scheduledAt !== undefined && mailed.some(({ skip }) => skip === null)
      ? scheduledAnswer(id, scheduledAt, shown)
      : sentAnswer(mailed, shown)
  parts.database.storage.requireRoom()
  const sending = { workspace, isSandbox: principal.isSandbox, submission, arrivedAt: now }
  try {
    return await (attached ? submitAlone : submitGathered)(parts, sending, claim, toAnswer)
  } catch (error) {
    throw scheduledAt === undefined ? error : asScheduleFailure(error)
  }
}

type ToAnswer = (recipients: readonly SubmittedRecipient[]) => SendAnswer

/** Shares the transaction with others that wait for the same commit. */
async function submitGathered(
  { gatherer }: SendParts,
  sending: GatheredSubmission,
  claim: IdempotencyClaim | undefined,
  toAnswer: ToAnswer,
): Promise<SendAnswer> {
  const keep: GatheredSubmission['keep'] = claim && (recipients => ({ claim, answer: toAnswer(recipients) }))
  return toAnswer(await gatherer.submit(keep ? { ...sending, keep } : sending))
}

/** Attachments are stored ahead of the transaction. */
async function submitAlone(
  parts: SendParts,
  { workspace, isSandbox, submission, arrivedAt }: GatheredSubmission & { readonly arrivedAt: number },
  claim: IdempotencyClaim | undefined,
  toAnswer: ToAnswer,
): Promise<SendAnswer> {
  const { database, emailWindows } = parts
  const { key, to } = submission
  if (key && !isSandbox) await emailWindows.prepare(key.keyId, to.length, key.emailRateLimit)
  const batch = { workspace, isSandbox, submissions: [submission] }
  return withLongStored(database, workspace, batch.submissions, arrivedAt, () =>
    database.write(async tx => {
      const [recipients = []] = await submitAll(tx, parts, batch, arrivedAt)
      const answer = toAnswer(recipients)
      await keepAnswer(tx.db, claim, answer)
      return answer
    }),
  )
}

type ShownSender = ReturnType<typeof shownSender>

function sentAnswer(recipients: readonly SubmittedRecipient[], shown: ShownSender): SendAnswer {
  const sent = recipients.filter(one => one.skip === null).length
  const value = {
    sent,
    failed: 0,
    skipped: recipients.length - sent,
    total: recipients.length,
    ...shown,
    results: recipients.map(one => ({
      to: one.address,
      message_id: one.messageId,
      success: one.skip === null,
      ...(one.skip === null ? {} : { reason: one.skip }),
    })),
  }
  return { status: 200, value }
}

function scheduledAnswer(messageId: string, sendAt: number, shown: ShownSender): SendAnswer {
  return {
    status: 202,
    value: { scheduled: true, message_id: messageId, scheduled_at: isoTime(sendAt), ...shown },
  }
}

const HORIZON_MS = 72 * 3_600_000

/** @throws AppError validation_error if it is not a time */
export function readSendAt(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const moment = readMoment(text)
  if (moment === undefined) throw noMoment('send_at', text)
  return moment
}

/** @throws AppError invalid_schedule if it is past or too far ahead */
export function checkSendAt(sendAt: number | undefined, now: number): void {
  if (sendAt === undefined) return
  if (sendAt <= now) throw invalidSchedule('send_at must be in the future')
  if (sendAt > now + HORIZON_MS) throw invalidSchedule('send_at must be within 72 hours')
}

function invalidSchedule(message: string): AppError {
  return new AppError('invalid_schedule', message, { path: 'send_at' })
}

/** Maps an internal error of a scheduled send to the contract's `schedule_failed`. */
export function asScheduleFailure(error: unknown): unknown {
  return error instanceof AppError
    ? error
    : new AppError('schedule_failed', 'the mail could not be scheduled; try again', { cause: error })
}
