/** Routes of single mails: send, status, trace. */
import { AppError } from '../core/errors.js'
import { isUuid } from '../core/ids.js'
import { route, type Route } from '../http/route.js'
import { findMessage, type Message } from '../queue/message-store.js'
import { messageStatus, messageWithTrace } from './message-view.js'
import { sendEmail, type SendParts } from './send-email.js'
import {
  MessageParams,
  MessageSchema,
  MessageStatusSchema,
  SEND_BODY_LIMIT,
  SendBody,
  SendResult,
} from './send-schema.js'

export function emailRoutes(parts: SendParts): Route[] {
  const { reader } = parts.database
  const mustFind = async (workspaceId: string, id: string): Promise<Message> => {
    const message = isUuid(id) ? await findMessage(reader, workspaceId, id.toLowerCase()) : undefined
    if (!message) throw new AppError('not_found', 'no such message')
    return message
  }
  return [
    route({
      method: 'POST',
      path: '/email/send',
      access: 'email:send',
      summary: 'Send one mail to one or many recipients.',
      description:
        'Each recipient gets a message of its own. 200 is answered after the mail is stored durably; it is then ' +
        'delivered in the background. Suppressed, invalid and repeated recipients are skipped without failing the ' +
        'request. From: a verified domain of the workspace is used as it is; for a domain not added here the ' +
        "appliance's shared address sends, and from_email becomes Reply-To.",
      body: SendBody,
      bodyLimit: SEND_BODY_LIMIT,
      response: SendResult,
      errors: ['no_content', 'missing_from_email', 'template_not_found', 'domain_invalid', 'limit_reached'],
      handle: ({ principal, body }) => sendEmail(parts, principal, body),
    }),
    route({
      method: 'GET',
      path: '/email/:messageId',
      access: 'email:read',
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
      summary: "A message's status.",
      params: MessageParams,
      response: MessageStatusSchema,
      errors: ['not_found'],
      handle: async ({ principal, params }) =>
        messageStatus(reader, await mustFind(principal.workspaceId, params.messageId)),
    }),
  ]
}
