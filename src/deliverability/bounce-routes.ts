/** Routes of bounces: what was refused for good or came back. */
import Type, { type Static } from 'typebox'
import { AppError } from '../core/errors.js'
import { isUuid } from '../core/ids.js'
import { isoTime, readMoment } from '../core/moments.js'
import type { Queries } from '../db/database.js'
import { pageQuery } from '../http/pagination.js'
import { listRoute, route, type Route } from '../http/route.js'
import { normalizedAddress } from '../mail/address.js'
import { findBounce, listBounces, type Bounce } from './bounce-store.js'

const Text = Type.Union([Type.String(), Type.Null()])

const BounceSchema = Type.Object({
  id: Type.String(),
  message_id: Type.String(),
  email: Type.String(),
  contact_id: Text,
  campaign_id: Text,
  type: Type.String({ description: 'permanent, transient or undetermined.' }),
  subtype: Type.String({ description: 'Finer, e.g. no_such_mailbox, mailbox_full, blocklisted.' }),
  cause: Type.String({
    description:
      'Whose it is: recipient, reputation, content, policy, transient or config. Only a permanent one of the recipient ' +
      'suppresses the address.',
  }),
  scope: Type.String({ description: 'What was refused: address, domain, source (our host) or sender.' }),
  smtp_status: Type.String({ description: 'RFC 3463, e.g. 5.1.1.' }),
  diagnostic_code: Type.String({ description: 'What the remote server said.' }),
  isp_name: Text,
  remote_mta: Text,
  sandbox: Type.Boolean(),
  created_at: Type.String(),
})

const Filter = {
  type: Type.Optional(Type.Enum(['permanent', 'transient', 'undetermined'])),
  subtype: Type.Optional(Type.String({ maxLength: 64 })),
  email: Type.Optional(Type.String({ minLength: 1, maxLength: 320 })),
  message_id: Type.Optional(Type.String({ maxLength: 64 })),
  campaign_id: Type.Optional(Type.String({ maxLength: 64 })),
  since: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601; that moment included.' })),
  until: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601; that moment not included.' })),
}

/** @param slowReader for what may take long: the list */
export function bounceRoutes(reader: Queries, slowReader = reader): Route[] {
  return [
    listRoute({
      method: 'GET',
      path: '/bounces',
      access: 'bounces:read',
      summary: 'Messages that were refused for good or came back, newest first.',
      description: 'One for each message, whether its server refused it at once or returned it later.',
      query: Type.Object({ ...pageQuery, ...Filter }, { additionalProperties: false }),
      item: BounceSchema,
      async handle({ principal, query }, page) {
        const { type, subtype, email, message_id: messageId, campaign_id: campaignId, since, until } = query
        const filter = {
          ...(type === undefined ? {} : { type }),
          ...(subtype === undefined ? {} : { subtype }),
          ...(email === undefined ? {} : { email: normalizedAddress(email) }),
          ...(messageId === undefined ? {} : { messageId: messageId.toLowerCase() }),
          ...(campaignId === undefined ? {} : { campaignId: campaignId.toLowerCase() }),
          ...(since === undefined ? {} : { since: momentOf(since, 'since') }),
          ...(until === undefined ? {} : { until: momentOf(until, 'until') }),
        }
        const { items, total } = await listBounces(slowReader, principal.workspaceId, filter, page)
        return { items: items.map(bounceToApi), total }
      },
    }),
    route({
      method: 'GET',
      path: '/bounces/:id',
      access: 'bounces:read',
      summary: 'One bounce.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      response: BounceSchema,
      errors: ['not_found'],
      async handle({ principal, params: { id } }) {
        const bounce = isUuid(id)
          ? await findBounce(reader, principal.workspaceId, id.toLowerCase())
          : undefined
        if (!bounce) throw new AppError('not_found', 'no such bounce')
        return bounceToApi(bounce)
      },
    }),
  ]
}

/** @throws AppError validation_error */
function momentOf(text: string, path: string): number {
  const moment = readMoment(text)
  if (moment === undefined)
    throw new AppError('validation_error', `${path} must be an ISO 8601 date or time`, { path })
  return moment
}

function bounceToApi(bounce: Bounce): Static<typeof BounceSchema> {
  return {
    id: bounce.id,
    message_id: bounce.messageId,
    email: bounce.email,
    contact_id: bounce.contactId,
    campaign_id: bounce.campaignId,
    type: bounce.type,
    subtype: bounce.subtype,
    cause: bounce.cause,
    scope: bounce.scope,
    smtp_status: bounce.smtpStatus,
    diagnostic_code: bounce.diagnosticCode,
    isp_name: bounce.ispName,
    remote_mta: bounce.remoteMta,
    sandbox: bounce.isSandbox,
    created_at: isoTime(bounce.createdAt),
  }
}
