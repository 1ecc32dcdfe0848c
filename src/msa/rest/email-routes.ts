/** Routes of emails: send, status, trace, cancel. Batches are in `batch-routes.ts`, the message log in `log/`. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { Reply, route, type Route } from '../../http/route.js'
import { findScheduledAt } from '../../messages/content-store.js'
import { findMessage, type Message } from '../../messages/message-store.js'
import type { MessageWaitsParts } from '../../queue/waiting.js'
import { batchRoutes } from './batch-routes.js'
import {
  findGroup,
  groupStatus,
  groupWithTrace,
  type ScheduledGroup,
  messageStatus,
  messageWithTrace,
  withWait,
} from '../log/message-view.js'
import { messageLogRoutes } from '../log/message-log-routes.js'
import { MessageParams, MessageSchema, MessageStatusSchema } from '../log/message-schema.js'
import { resendEmail, ResendBody, ResendResult } from './resend-email.js'
import { sendEmail, type SendParts } from './send-email.js'
import {
  EXAMPLE_ID,
  ScheduledResult,
  SEND_BODY_LIMIT,
  SEND_EXAMPLE,
  SEND_EXAMPLE_ANSWER,
  SendBody,
  SendResult,
} from './send-schema.js'
import { returnToLimits } from '../../accounts/sending-limit-store.js'
import type { Queries, Tx } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { recordTransitions } from '../../messages/message-history.js'
import { deleteScheduled } from '../sandbox/sandbox-schedule-store.js'

export interface EmailRouteParts extends SendParts, MessageWaitsParts {
  readonly database: SendParts['database']
}

const GROUP_NOTE =
  'The id of a scheduled send to several recipients stands for all of them: `to` is then comma-joined, and `recipients` ' +
  'lists each message. The status is `scheduled` while any recipient is waiting, then the lowest of any recipient, in the ' +
  'order sent, failed, suppressed, bounced, delivered, opened, clicked; skipped and cancelled recipients are ignored. Each ' +
  'timestamp is that of the first recipient to reach it.'

export function emailRoutes(parts: EmailRouteParts): Route[] {
  return [sendRoute(parts), ...batchRoutes(parts), ...messageLogRoutes(parts), ...messageRoutes(parts)]
}

function sendRoute(parts: SendParts): Route {
  return route({
    method: 'POST',
    path: '/email/send',
    access: 'email:send',
    operationId: 'sendEmail',
    chapter: 'Email',
    summary: 'Send an email.',
    description:
      'Each recipient gets a separate message with its own Message-ID; with cc or bcc, all are copies of one mail and share a ' +
      'Message-ID. 200 is returned once the mail is stored durably; delivery continues in the background. ' +
      'Suppressed, invalid and duplicate recipients are skipped without failing the request and do not count against ' +
      'limits; a single invalid address is rejected. Results are in the order to, cc, bcc. From: an address at a verified ' +
      "domain of the workspace is used unchanged; for a domain not added here the appliance's shared address sends, `from` in " +
      'the response says so, and from_email becomes Reply-To. With send_at the response is 202 with one message_id for the ' +
      'whole request, and limits are counted on acceptance; if all recipients are skipped, nothing is scheduled and the ' +
      "response is that of an immediate send. More recipients than the key's email rate per minute are rejected with " +
      'validation_error.\n\n' +
      'Simulator: with a sandbox key nothing is sent. Addresses at `simulator.test` simulate an outcome: ' +
      '`delivered@`, `bounced@`, `failed@`, `complained@`, `opened@`, `clicked@`, optionally with a `+` suffix ' +
      '(`bounced+order7@simulator.test`); scheduled mail is simulated at its send_at.',
    body: SendBody,
    example: SEND_EXAMPLE,
    exampleAnswer: SEND_EXAMPLE_ANSWER,
    bodyLimit: SEND_BODY_LIMIT + parts.messageLimit,
    keepsAnswer: true,
    response: SendResult,
    otherAnswers: { 202: ScheduledResult },
    errors: [
      'no_content',
      'missing_from_email',
      'template_not_found',
      'domain_invalid',
      'invalid_schedule',
      'schedule_failed',
      'limit_reached',
    ],
    async handle({ principal, body, claim, peer }) {
      const { status, value } = await sendEmail(parts, principal, body, claim, peer)
      return new Reply(status, value)
    },
  })
}

function messageRoutes(parts: EmailRouteParts): Route[] {
  const { database } = parts
  const mustFind = async (db: Queries, workspaceId: string, id: string): Promise<Message> => {
    const message = isUuid(id) ? await findMessage(db, workspaceId, id.toLowerCase()) : undefined
    if (!message) throw new AppError('not_found', 'no such message')
    return message
  }
  const groupOf = async (db: Queries, workspaceId: string, id: string): Promise<ScheduledGroup | undefined> =>
    isUuid(id) ? findGroup(db, workspaceId, id.toLowerCase()) : undefined
  return [
    route({
      method: 'GET',
      path: '/email/:messageId',
      access: 'email:read',
      operationId: 'getEmail',
      chapter: 'Email',
      summary: 'Get an email and its delivery trace.',
      description: GROUP_NOTE,
      params: MessageParams,
      response: MessageSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params: { messageId } }) {
        const found = await snapshot(database.reader, async db => {
          const group = await groupOf(db, workspaceId, messageId)
          return group
            ? groupWithTrace(db, group)
            : messageWithTrace(db, await mustFind(db, workspaceId, messageId))
        })
        return withWait(parts, found)
      },
    }),
    route({
      method: 'GET',
      path: '/email/:messageId/status',
      access: 'email:read',
      operationId: 'getEmailStatus',
      chapter: 'Email',
      summary: "Get an email's status.",
      description: GROUP_NOTE,
      params: MessageParams,
      response: MessageStatusSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params: { messageId } }) {
        const found = await snapshot(database.reader, async db => {
          const group = await groupOf(db, workspaceId, messageId)
          return group
            ? groupStatus(db, group)
            : messageStatus(db, await mustFind(db, workspaceId, messageId))
        })
        return withWait(parts, found)
      },
    }),
    route({
      method: 'POST',
      path: '/email/:messageId/resend',
      access: 'email:send',
      operationId: 'resendEmail',
      chapter: 'Email',
      summary: 'Send an email again.',
      description:
        'To the same or another address, as a new message with its own id. Merge tags are filled in with the contact of the address as it ' +
        'is now, and with the template_data of the message. Mail that was received by SMTP is sent again unchanged, with the same Message-ID. The ' +
        'copy counts against limits and belongs to no campaign, automation or batch. Fails with conflict if the recipient is suppressed, or ' +
        'if the message is still waiting to be delivered to the same address; with not_found if its text is no longer stored.',
      params: MessageParams,
      body: ResendBody,
      example: { to: 'ann@example.net' },
      exampleAnswer: {
        message_id: '0192f3a4-5b6c-7d8e-9f01-23456789abce',
        to: 'ann@example.net',
        resent_from: EXAMPLE_ID,
      },
      keepsAnswer: true,
      response: ResendResult,
      errors: ['not_found', 'conflict', 'domain_invalid', 'limit_reached'],
      async handle({ principal, params: { messageId }, body, claim, peer }) {
        const message = await mustFind(database.reader, principal.workspaceId, messageId)
        return (await resendEmail(parts, { principal, message, body, claim, peer })).value
      },
    }),
    route({
      method: 'DELETE',
      path: '/email/:messageId',
      access: 'email:send',
      operationId: 'cancelEmail',
      chapter: 'Email',
      summary: 'Cancel a scheduled email.',
      description:
        'The id of a scheduled send cancels it for all recipients; the id of one message cancels only that one. Cancelled mail ' +
        "no longer counts against the current hour's and day's limits. Fails with conflict if sending has started or the mail " +
        'was already cancelled.',
      params: MessageParams,
      response: Type.Object({ success: Type.Literal(true) }),
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId }, params }) {
        const id = params.messageId.toLowerCase()
        if (!isUuid(id)) throw new AppError('not_found', 'no such message')
        await database.write(async tx => {
          const group = await findGroup(tx.db, workspaceId, id)
          const message = group ? undefined : await findMessage(tx.db, workspaceId, id)
          if (!group && !message) throw new AppError('not_found', 'no such message')
          const messages = group?.messages ?? (message ? [message] : [])
          const scheduledAt =
            group?.scheduledAt ?? (message && (await findScheduledAt(tx.db, workspaceId, message.contentId)))
          await cancelScheduled(tx, messages, scheduledAt)
        })
        return { success: true as const }
      },
    }),
  ]
}

/**
 * Cancels the messages that have not started, and returns their count to the workspace's limits.
 *
 * @param messages all of the request, as this transaction reads them
 * @param scheduledAt undefined for mail that was never scheduled
 * @throws AppError conflict if sending has started or the mail was already cancelled
 */
export async function cancelScheduled(
  tx: Tx,
  messages: readonly Message[],
  scheduledAt: number | undefined,
): Promise<void> {
  const waiting = messages.filter(message => message.status === 'scheduled')
  const hasBegun = messages.some(({ status, reason }) => reason === null && !isBeforeSending(status))
  if (hasBegun || scheduledAt === undefined) throw new AppError('conflict', 'sending has already started')
  if (waiting.length === 0)
    throw new AppError('conflict', 'the message was already cancelled, or all its recipients were skipped')
  const ids = waiting.map(({ id }) => id)
  await deleteScheduled(tx.db, ids)
  await recordTransitions(
    tx,
    ids.map(messageId => ({ kind: 'cancelled', messageId, at: scheduledAt })),
  )
  // One request's messages were counted at the same time; sandbox mail is not counted.
  const counted = waiting.filter(({ isSandbox }) => !isSandbox)
  const [first] = counted
  if (first) await returnToLimits(tx.db, first.workspaceId, counted.length, first.createdAt)
}

function isBeforeSending(status: Message['status']): boolean {
  return status === 'scheduled' || status === 'cancelled'
}
