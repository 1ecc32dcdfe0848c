/** Routes of mails: send, status, trace, call back. Batches and the log have files of their own. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { Reply, route, type Route } from '../../http/route.js'
import { findScheduledAt } from '../../messages/content-store.js'
import { findMessage, type Message } from '../../messages/message-store.js'
import { batchRoutes } from './batch-routes.js'
import { findGroup, groupStatus, groupWithTrace, type ScheduledGroup } from '../log/group-view.js'
import { messageLogRoutes } from '../log/message-log-routes.js'
import { MessageParams, MessageSchema, MessageStatusSchema } from '../log/message-schema.js'
import { messageStatus, messageWithTrace } from '../log/message-view.js'
import { cancelScheduled } from '../cancel-scheduled.js'
import { sendEmail, type SendParts } from './send-email.js'
import {
  ScheduledResult,
  SEND_BODY_LIMIT,
  SEND_EXAMPLE,
  SEND_EXAMPLE_ANSWER,
  SendBody,
  SendResult,
} from './send-schema.js'

const GROUP_NOTE =
  'The id of a scheduled send to several recipients stands for all of them: `to` is then comma-joined, and `recipients` ' +
  'names the message of each. Its status is scheduled while anybody waits, then the lowest that any recipient has got to ' +
  '(sent, failed, suppressed, bounced, delivered, opened, clicked), recipients who were skipped or called back left out; ' +
  'its moments are those of the first recipient to whom it happened.'

export function emailRoutes(parts: SendParts): Route[] {
  return [
    sendRoute(parts),
    ...batchRoutes(parts),
    ...messageLogRoutes(parts.database.reader),
    ...messageRoutes(parts),
  ]
}

function sendRoute(parts: SendParts): Route {
  return route({
    method: 'POST',
    path: '/email/send',
    access: 'email:send',
    operationId: 'sendEmail',
    chapter: 'Email',
    summary: 'Send one mail to one or many recipients.',
    description:
      'Each recipient gets a message of its own, with a Message-ID of its own; with cc or bcc they all are copies of one ' +
      'mail and share one. 200 is answered after the mail is stored durably; it is then delivered in the background. ' +
      'Suppressed, invalid and repeated recipients are skipped without failing the request, and cost nothing of any ' +
      'limit; a single address that is none is refused. Results stand in the order to, cc, bcc. From: a verified domain ' +
      "of the workspace is used as it is; for a domain not added here the appliance's shared address sends, as from in the " +
      'answer then says, and from_email becomes Reply-To. With send_at the answer is 202 and one message_id for the whole ' +
      'request, and limits count when it is accepted; where all recipients are skipped there is nothing to schedule, and ' +
      'the answer is that of an immediate send. More recipients than the email rate of the key are refused with ' +
      'validation_error, since no minute has room for them.\n\n' +
      'Simulator: with a sandbox key nothing is sent, and addresses at `simulator.test` play what they are named after: ' +
      '`delivered@`, `bounced@`, `failed@`, `complained@`, `opened@`, `clicked@`, with anything behind a `+` ' +
      '(`bounced+order7@simulator.test`); scheduled mail does at its time.',
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

function messageRoutes({ database }: SendParts): Route[] {
  const { reader } = database
  const mustFind = async (workspaceId: string, id: string): Promise<Message> => {
    const message = isUuid(id) ? await findMessage(reader, workspaceId, id.toLowerCase()) : undefined
    if (!message) throw new AppError('not_found', 'no such message')
    return message
  }
  const groupOf = async (workspaceId: string, id: string): Promise<ScheduledGroup | undefined> =>
    isUuid(id) ? findGroup(reader, workspaceId, id.toLowerCase()) : undefined
  return [
    route({
      method: 'GET',
      path: '/email/:messageId',
      access: 'email:read',
      operationId: 'getEmail',
      chapter: 'Email',
      summary: 'A message with the trace of every delivery attempt.',
      description: GROUP_NOTE,
      params: MessageParams,
      response: MessageSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params: { messageId } }) {
        const group = await groupOf(workspaceId, messageId)
        return group
          ? groupWithTrace(reader, group)
          : messageWithTrace(reader, await mustFind(workspaceId, messageId))
      },
    }),
    route({
      method: 'GET',
      path: '/email/:messageId/status',
      access: 'email:read',
      operationId: 'getEmailStatus',
      chapter: 'Email',
      summary: "A message's status.",
      description: GROUP_NOTE,
      params: MessageParams,
      response: MessageStatusSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params: { messageId } }) {
        const group = await groupOf(workspaceId, messageId)
        return group
          ? groupStatus(reader, group)
          : messageStatus(reader, await mustFind(workspaceId, messageId))
      },
    }),
    route({
      method: 'DELETE',
      path: '/email/:messageId',
      access: 'email:send',
      operationId: 'cancelEmail',
      chapter: 'Email',
      summary: 'Call a scheduled mail back.',
      description:
        'The id of a scheduled send calls back all of its recipients; that of one recipient only this one. What is called ' +
        'back no longer counts against the limits of this hour and day. Refused with conflict once sending has begun, and ' +
        'for what was called back before.',
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
