import { given } from '../../core/given.js'
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { Id, IdOrNull, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { readTimeRange, timeRangeQuery } from '../../http/time-range.js'
import { normalizedAddress } from '../../mail/address.js'
import { CAUSES, PERMANENCES, SCOPES } from '../../mail/outcome.js'
import { findBounce, listBounces, type Bounce } from './bounce-store.js'

const BounceType = Type.Enum([...PERMANENCES])

export const BounceSchema = Type.Object(
  {
    id: Id(),
    message_id: Id(),
    email: Type.String({ description: 'Recipient address, lower case.' }),
    contact_id: IdOrNull(),
    campaign_id: IdOrNull(),
    type: BounceType,
    subtype: Type.String({ description: 'Reason, e.g. no_such_mailbox, mailbox_full, blocklisted.' }),
    cause: Type.Enum([...CAUSES], {
      description:
        'What caused the rejection. Only a permanent bounce with cause `recipient` suppresses the address.',
    }),
    scope: Type.Enum([...SCOPES], {
      description: 'What the rejection applies to; `source` is the sending host.',
    }),
    smtp_status: Type.String({ description: 'Enhanced status code (RFC 3463), e.g. 5.1.1.' }),
    diagnostic_code: Type.String({ description: "The remote server's reply." }),
    isp_name: TextOrNull(),
    remote_mta: TextOrNull(),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
  },
  { title: 'Bounce' },
)

const Filter = {
  type: Type.Optional(BounceType),
  subtype: Type.Optional(Type.String({ maxLength: 64 })),
  email: Type.Optional(Type.String({ minLength: 1, maxLength: 320 })),
  message_id: Type.Optional(Type.String({ maxLength: 64 })),
  campaign_id: Type.Optional(Type.String({ maxLength: 64 })),
  ...timeRangeQuery,
}

/** @param slowReader used by the list */
export function bounceRoutes(reader: Queries, slowReader = reader): Route[] {
  return [
    listRoute({
      method: 'GET',
      path: '/bounces',
      access: 'bounces:read',
      operationId: 'listBounces',
      chapter: 'Bounces',
      summary: 'List bounces.',
      description:
        'Messages rejected permanently or returned later, newest first. A message has at most one bounce.',
      query: Type.Object({ ...cursorQuery, ...Filter }, { additionalProperties: false }),
      item: BounceSchema,
      async handle({ principal, query }, page) {
        const { type, subtype, email, message_id: messageId, campaign_id: campaignId } = query
        const filter = {
          ...given({ type, subtype }),
          ...(email === undefined ? {} : { email: normalizedAddress(email) }),
          ...(messageId === undefined ? {} : { messageId: messageId.toLowerCase() }),
          ...(campaignId === undefined ? {} : { campaignId: campaignId.toLowerCase() }),
          ...readTimeRange(query),
        }
        const found = await listBounces(slowReader, principal.workspaceId, filter, page)
        return { ...found, items: found.items.map(bounceToApi) }
      },
    }),
    route({
      method: 'GET',
      path: '/bounces/:id',
      access: 'bounces:read',
      operationId: 'getBounce',
      chapter: 'Bounces',
      summary: 'Get a bounce.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      response: BounceSchema,
      errors: ['not_found'],
      async handle({ principal, params: { id } }) {
        const bounce = isUuid(id)
          ? await findBounce(reader, principal.workspaceId, id.toLowerCase())
          : undefined
        if (!bounce) throw new AppError('not_found', `no bounce with id ${id}`)
        return bounceToApi(bounce)
      },
    }),
  ]
}

export function bounceToApi(bounce: Bounce): Static<typeof BounceSchema> {
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
    is_sandbox: bounce.isSandbox,
    created_at: isoTime(bounce.createdAt),
  }
}
