/**
 * `POST /email/send`: checks the request by the contract's rules, in the contract's order, and submits it.
 */
import type { Static } from 'typebox'
import { keepAnswer } from '../../accounts/idempotency-store.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { IdempotencyClaim, KeptAnswer } from '../../http/idempotency.js'
import type { Principal } from '../../http/principal.js'
import type { Submitted } from '../letter.js'
import { readEnvelope } from './envelope.js'
import { readLetterFields } from './letter-fields.js'
import { asScheduleFailure, checkSendAt, readSendAt } from '../schedule.js'
import { readSenderFields, shownSender, withWorkspaceSender } from '../sender.js'
import type { SenderMemory } from '../sender-memory.js'
import type { MessageFields, ScheduledResult, SendBody, SendResult } from './send-schema.js'
import { submit, type Submission, type SubmitParts } from '../submit.js'

export interface SendParts extends SubmitParts {
  readonly senders: SenderMemory
  /** Octets of a message, everything encoded. */
  readonly messageLimit: number
}

export interface SendAnswer extends KeptAnswer {
  readonly value: Static<typeof SendResult> | Static<typeof ScheduledResult>
}

/** @throws AppError with the codes of the contract's send rules */
export async function sendEmail(
  parts: SendParts,
  principal: Principal,
  body: SendBody,
  claim?: IdempotencyClaim,
): Promise<SendAnswer> {
  const now = parts.clock.now()
  const { submission, sendAt, shown } = await toSubmission(parts, principal, body, now)
  let answer: SendAnswer | undefined
  try {
    await submit(parts, submission, async (tx, submitted) => {
      const isScheduled = sendAt !== undefined && submitted.some(one => one.skip === null)
      answer = isScheduled
        ? scheduledAnswer(submission.contentId, sendAt, shown)
        : sentAnswer(submitted, shown)
      await keepAnswer(tx.db, claim, answer)
    })
  } catch (error) {
    throw sendAt === undefined ? error : asScheduleFailure(error)
  }
  if (!answer) throw new Error('the mail was accepted without an answer')
  return answer
}

async function toSubmission(parts: SendParts, principal: Principal, body: SendBody, now: number) {
  const workspace = await parts.senders.workspace(principal.workspaceId)
  const { recipients, addressees } = readEnvelope(body)
  const senderFields = readSenderFields(body)
  const sendAt = readSendAt(body.send_at)
  const letter = readLetterFields(body, parts.messageLimit)
  const asked = withWorkspaceSender(senderFields, workspace)
  refuseTemplate(body)
  const sender = await parts.senders.sender(workspace, asked)
  checkSendAt(sendAt, now)
  const submission: Submission & { contentId: string } = {
    principal,
    workspace,
    contentId: parts.newId(),
    to: recipients,
    ...(addressees === undefined ? {} : { addressees }),
    sender,
    ...letter,
    ...(sendAt === undefined ? {} : { scheduledAt: sendAt }),
    trackOpens: body.track_opens ?? true,
    trackClicks: body.track_clicks ?? true,
  }
  return { submission, sendAt, shown: shownSender(sender, asked) }
}

/** No template exists before templates do; the answer is the right one for any id. @throws AppError template_not_found */
export function refuseTemplate(body: MessageFields): void {
  if (body.template_id !== undefined)
    throw new AppError('template_not_found', 'no template has this id', { path: 'template_id' })
}

type ShownSender = ReturnType<typeof shownSender>

function sentAnswer(submitted: readonly Submitted[], shown: ShownSender): SendAnswer {
  const sent = submitted.filter(one => one.skip === null).length
  const value = {
    sent,
    failed: 0,
    skipped: submitted.length - sent,
    total: submitted.length,
    ...shown,
    results: submitted.map(one => ({
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
