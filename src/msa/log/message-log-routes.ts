/** `GET /email`: the log of a workspace's messages. */
import { given } from '../../core/given.js'
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import type { Waiting } from '../../core/waiting.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { Id, IdOrNull, Moment } from '../../http/answer/answer-fields.js'
import { WaitingForOrNull, waitingToApi } from '../../http/answer/waiting-for.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, type Route } from '../../http/route.js'
import { readTimeRange, timeRangeQuery } from '../../http/time-range.js'
import { parseNamedAddress } from '../../mail/named-address.js'
import { MESSAGE_STATUSES } from '../../messages/message-status.js'
import { WAITING_STATES } from '../../queue/delivery-state-store.js'
import { listEntries } from '../../queue/operator/queue-admin-store.js'
import { findMessageWaits, type MessageWaitsParts, type QueuedMessage } from '../../queue/waiting.js'
import { DeliveryStateOrNull, historyFields, MessageStatusEnum, SkipReasonEnum } from './message-schema.js'
import { historyToApi } from './message-view.js'
import { listMessages, type LoggedMessage, type MessageFilter } from './message-log-store.js'

const LoggedMessageSchema = Type.Object(
  {
    message_id: Id(),
    status: MessageStatusEnum,
    delivery_state: DeliveryStateOrNull,
    waiting_for: WaitingForOrNull('Why it is not delivered now, as `GET /email/{messageId}` says it.'),
    to: Type.String(),
    subject: Type.String(),
    reason: Type.Optional(SkipReasonEnum),
    campaign_id: IdOrNull(),
    contact_id: IdOrNull(),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
    ...historyFields,
  },
  { title: 'LoggedMessage' },
)

const Filter = {
  to: Type.Optional(
    Type.String({ minLength: 1, maxLength: 320, description: 'The full address, case-insensitive.' }),
  ),
  status: Type.Optional(
    Type.Enum([...MESSAGE_STATUSES, ...WAITING_STATES], {
      description:
        'A message status, or a delivery state of messages with status `sent`: `queued` (not tried yet) or `deferred` (waiting for a retry).',
    }),
  ),
  ...timeRangeQuery,
  campaign_id: Type.Optional(Type.String({ maxLength: 64 })),
  tag: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'Messages sent with exactly this tag.',
    }),
  ),
  is_sandbox: Type.Optional(
    Type.Boolean({ description: 'Only messages of sandbox keys, or only live ones.' }),
  ),
}
const Query = Type.Object({ ...cursorQuery, ...Filter }, { additionalProperties: false })

export function messageLogRoutes(parts: MessageWaitsParts): Route[] {
  const { reader } = parts.database
  return [
    listRoute({
      method: 'GET',
      path: '/email',
      access: 'email:read',
      operationId: 'listEmails',
      chapter: 'Email',
      summary: 'List emails, newest first.',
      description:
        'One entry per recipient. total is exact up to 10,000 messages beyond the page; larger totals are a lower bound. ' +
        'Combinations of to, status, campaign_id and is_sandbox, and status sent or delivered, is_sandbox or tag alone, search ' +
        'only the newest 20,000 candidates: set since and until to find older ones. queued and deferred search the newest 20,000 ' +
        'messages in the queue; an attempt in progress is neither.',
      query: Query,
      item: LoggedMessageSchema,
      async handle({ principal, query }, page) {
        const { found, queued } = await snapshot(reader, async db => {
          const found = await listMessages(db, principal.workspaceId, readFilter(query), page)
          return { found, queued: await listQueued(db, found.items) }
        })
        const waits = await findMessageWaits(parts, queued)
        return { ...found, items: found.items.map(one => toApi(one, waits.get(one.id))) }
      },
    }),
  ]
}

function readFilter(query: Static<typeof Query>): MessageFilter {
  const { to, status, campaign_id: campaignId, tag, is_sandbox: isSandbox } = query
  const named = to === undefined ? undefined : parseNamedAddress(to)?.address
  return {
    // Messages store the domain as A-labels.
    ...(to === undefined ? {} : { to: named ?? to }),
    ...given({ status, campaignId, tag, isSandbox }),
    ...readTimeRange(query),
  }
}

/** For the whole page at once. @returns rows of the queue */
async function listQueued(db: Queries, messages: readonly LoggedMessage[]): Promise<QueuedMessage[]> {
  const messageIds = messages.filter(({ deliveryState }) => deliveryState !== null).map(({ id }) => id)
  return messageIds.length === 0 ? [] : listEntries(db, { messageIds }, messageIds.length)
}

function toApi(message: LoggedMessage, waiting: Waiting | undefined): Static<typeof LoggedMessageSchema> {
  return {
    message_id: message.id,
    status: message.status,
    delivery_state: message.deliveryState,
    waiting_for: waitingToApi(waiting),
    to: message.recipient,
    subject: message.subject,
    ...(message.reason === null ? {} : { reason: message.reason }),
    campaign_id: message.campaignId ?? null,
    contact_id: message.contactId ?? null,
    is_sandbox: message.isSandbox,
    created_at: isoTime(message.createdAt),
    ...historyToApi(message),
  }
}
