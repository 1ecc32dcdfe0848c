/** `POST /email/send`: validates the request in the order the contract prescribes, then submits it. */
import type { RenderQueue } from '../../content/rendering/render-queue.js'
import type { Static } from 'typebox'
import { keepAnswer } from '../../accounts/idempotency-store.js'
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { isoTime, readMoment } from '../../core/moments.js'
import type { IdempotencyClaim, KeptAnswer } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import type { SubmittedBy } from '../../messages/mail-log.js'
import type { Submission, SubmittedRecipient, SubmitParts } from '../mail-submission.js'
import { shownSender, type SenderCache } from '../sender.js'
import { withLongStored } from '../store-long-content.js'
import type { SubmissionGatherer } from '../submission-gatherer.js'
import { submitAll } from '../submit.js'
import { withLongDecoded } from './attachment-fields.js'
import { readContentFields, fillFields, readTemplateData } from './content-fields.js'
import { readRecipientFields, readSenderFields, withWorkspaceSender } from './address-fields.js'
import { findAskedTemplate, readElsewhere, tryElsewhere, type KnownReadable } from '../merged-content.js'
import type { ScheduledResult, SendBody, SendResult } from './send-schema.js'
import { AppError } from '../../core/errors.js'
import { noMoment } from '../../http/time-range.js'

export interface SendParts extends SubmitParts {
  /** Renders long content off the main thread; absent in commands. */
  readonly renderQueue?: RenderQueue
  readonly senders: SenderCache
  readonly gatherer: SubmissionGatherer
  /** Limit of an encoded message, octets. */
  readonly messageLimit: number
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
  const { database, clock } = parts
  const now = clock.now()
  const workspace = await parts.senders.workspace(principal.workspaceId)
  const submittedBy = peer === undefined ? undefined : { keyId: principal.keyId, peer }
  const { submission, shown } = await toSubmission(parts, workspace, body, now, principal, submittedBy)
  const { scheduledAt, id } = submission.content
  const { isSandbox } = principal
  const batch = { workspace, isSandbox, submissions: [submission] }
  const answerTo = (recipients: readonly SubmittedRecipient[]) =>
    scheduledAt !== undefined && recipients.some(({ skip }) => skip === null)
      ? scheduledAnswer(id, scheduledAt, shown)
      : sentAnswer(recipients, shown)
  if (!isSandbox)
    await parts.emailWindows.prepare(principal.keyId, submission.to.length, principal.emailRateLimit)
  database.storage.requireRoom()
  try {
    if (!submission.attached) {
      const keep = claim && {
        keep: (recipients: readonly SubmittedRecipient[]) => ({ claim, answer: answerTo(recipients) }),
      }
      return answerTo(
        await parts.gatherer.submit({ ...{ workspace, isSandbox, submission, arrivedAt: now }, ...keep }),
      )
    }
    return await withLongStored(database, workspace, batch.submissions, now, () =>
      database.write(async tx => {
        const [recipients = []] = await submitAll(tx, parts, batch, now)
        const answer = answerTo(recipients)
        await keepAnswer(tx.db, claim, answer)
        return answer
      }),
    )
  } catch (error) {
    throw scheduledAt === undefined ? error : asScheduleFailure(error)
  }
}

async function toSubmission(
  parts: SendParts,
  workspace: ActingWorkspace,
  body: SendBody,
  now: number,
  key: Principal,
  submittedBy: SubmittedBy | undefined,
) {
  const { recipients, addressees } = readRecipientFields(body)
  const senderFields = readSenderFields(body)
  const scheduledAt = readSendAt(body.send_at)
  const readable: KnownReadable = new Map()
  await readElsewhere(parts.renderQueue, workspace.id, body, readable)
  const decoded = await withLongDecoded(body)
  const { content: fields, attached } = readContentFields(decoded, parts.messageLimit, readable)
  const data = readTemplateData(body)
  const asked = withWorkspaceSender(senderFields, workspace)
  const template = await findAskedTemplate(parts.database.reader, workspace, body.template_id)
  const written = { html: fields.html ?? template?.html, text: fields.text }
  const isTried = await tryElsewhere(parts.renderQueue, workspace.id, written, data)
  const filled = fillFields(workspace, fields, template, data, body, isTried)
  const sender = await parts.senders.sender(workspace, asked)
  checkSendAt(scheduledAt, now)
  const content = {
    id: parts.newId(),
    ...sender,
    ...filled,
    ...(addressees ? { addressees } : {}),
    ...(scheduledAt === undefined ? {} : { scheduledAt }),
    ...(submittedBy ? { submittedBy } : {}),
  }
  const submission: Submission = { content, to: recipients, key, ...(attached ? { attached } : {}) }
  return { submission, shown: shownSender(sender, asked) }
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
