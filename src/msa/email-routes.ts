/** Routes of mails: send, status, trace, call back. Batches and the log have files of their own. */
import Type from 'typebox'
import { AppError } from '../core/errors.js'
import { isUuid } from '../core/ids.js'
import { Reply, route, type Route } from '../http/route.js'
import { findScheduledAt } from '../queue/content-store.js'
import { findMessage, findMessagesOf, type Message } from '../queue/message-store.js'
import { batchRoutes } from './batch-routes.js'
import { messageLogRoutes } from './message-log-routes.js'
import { MessageParams, MessageSchema, MessageStatusSchema } from './message-schema.js'
import { messageStatus, messageWithTrace, requestStatus } from './message-view.js'
import { cancelScheduled } from './schedule.js'
import { sendEmail, type SendParts } from './send-email.js'
import {
  ScheduledResult,
  SEND_BODY_LIMIT,
  SEND_EXAMPLE,
  SEND_EXAMPLE_ANSWER,
  SendBody,
  SendResult,
} from './send-schema.js'

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
      'request, and limits count when it is accepted. More recipients than the email rate of the key are refused with ' +
      'validation_error, since no minute has room for them.\n\n' +
      'Simulator: with a sandbox key nothing is sent, and addresses at `simulator.test` play what they are named after: ' +
      '`delivered@`, `bounced@`, `complained@`, `opened@`, `clicked@`, with anything behind a `+` ' +
      '(`bounced+order7@simulator.test`); scheduled mail does at its time.',
    body: SendBody,
    example: SEND_EXAMPLE,
    exampleAnswer: SEND_EXAMPLE_ANSWER,
    bodyLimit: SEND_BODY_LIMIT + parts.messageLimit,
    idempotency: 'optional',
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
    async handle({ principal, body, claim }) {
      const { status, value } = await sendEmail(parts, principal, body, claim)
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
  return [
    route({
      method: 'GET',
      path: '/email/:messageId',
      access: 'email:read',
      operationId: 'getEmail',
      chapter: 'Email',
      summary: 'A message with the trace of every delivery attempt.',
      params: MessageParams,
      response: MessageSchema,
      errors: ['not_found'],
      handle: async ({ principal, params }) =>
        messageWithTrace(reader, await mustFind(principal.workspaceId, params.messageId)),
    }),
    route({
      method: 'GET',
      path: '/email/:messageId/status',
      access: 'email:read',
      operationId: 'getEmailStatus',
      chapter: 'Email',
      summary: "A message's status.",
      description:
        'The id of a scheduled send to several recipients stands for all of them: `to` is then comma-joined, and ' +
        '`recipients` names the message of each.',
      params: MessageParams,
      response: MessageStatusSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params: { messageId } }) {
        const id = messageId.toLowerCase()
        const request = isUuid(id) ? await findRequest(database.reader, workspaceId, id) : undefined
        if (request) return requestStatus(id, request.messages, request.scheduledAt)
        return messageStatus(reader, await mustFind(workspaceId, id))
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
        'The id of a scheduled send calls back all of its recipients; that of one recipient only this one. Refused with ' +
        'conflict once sending has begun, and for what was called back before.',
      params: MessageParams,
      response: Type.Object({ success: Type.Literal(true) }),
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId }, params }) {
        const id = params.messageId.toLowerCase()
        if (!isUuid(id)) throw new AppError('not_found', 'no such message')
        await database.write(async tx => {
          const request = await findRequest(tx.db, workspaceId, id)
          const message = request ? undefined : await findMessage(tx.db, workspaceId, id)
          if (!request && !message) throw new AppError('not_found', 'no such message')
          const messages = request?.messages ?? (message ? [message] : [])
          const scheduledAt =
            request?.scheduledAt ??
            (message && (await findScheduledAt(tx.db, workspaceId, message.contentId)))
          await cancelScheduled(tx, messages, scheduledAt)
        })
        return { success: true as const }
      },
    }),
  ]
}

/** A scheduled send to several; one to a single recipient is that message. */
async function findRequest(db: Parameters<typeof findScheduledAt>[0], workspaceId: string, id: string) {
  const scheduledAt = await findScheduledAt(db, workspaceId, id)
  if (scheduledAt === undefined) return undefined
  const messages = await findMessagesOf(db, id)
  return messages.length > 1 ? { scheduledAt, messages } : undefined
}
