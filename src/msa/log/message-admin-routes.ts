/** Messages of all workspaces in the admin API: search, trace, source. */
import Type, { type Static } from 'typebox'
import { findActingWorkspace, listWorkspaceIds, sandboxIdOf } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Database, Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { BounceSchema, bounceToApi } from '../../deliverability/bounces/bounce-routes.js'
import { findBounceOf } from '../../deliverability/bounces/bounce-store.js'
import { adminDownloadRoute, adminListRoute, adminPageRoute, adminRoute } from '../../http/admin-route.js'
import { Id, Moment, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import {
  MAIL_PAGE_DESCRIPTION,
  MAIL_PAGE_EXAMPLE,
  mailContent,
  MailContentSchema,
  mailPage,
  mailPageQuery,
} from '../../http/mail-page.js'
import { requirePermission, type OperatorPrincipal } from '../../http/operator.js'
import { cursorQuery, listingOf } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'
import { readTimeRange, timeRangeQuery } from '../../http/time-range.js'
import { findContents } from '../../messages/content-store.js'
import { MESSAGE_STATUSES } from '../../messages/message-status.js'
import { findAnyMessage, findMessagesOf, type Message } from '../../messages/message-store.js'
import type { MessageWaitsParts } from '../../queue/waiting.js'
import { WAITING_STATES } from '../../queue/delivery-state-store.js'
import {
  judgeMessage,
  MessageAuthenticationSchema,
  type AuthenticationParts,
} from './message-authentication.js'
import { DeliveryStateOrNull, MessageSchema, MessageStatusEnum, SkipReasonEnum } from './message-schema.js'
import {
  findRelayedContent,
  searchMessages,
  withDeliveryStates,
  type FoundMessage,
} from './message-search-store.js'
import { composeMessage, messageSource, type SourceParts } from './message-source.js'
import { messageWithTrace, withWait } from './message-view.js'

export interface MessageAdminParts extends AuthenticationParts, MessageWaitsParts {
  readonly database: Database
  readonly returnPath: (messageId: string, recipient: string) => string
  readonly jobLoader: SourceParts['jobLoader']
  readonly composer: SourceParts['composer']
}

const CHAPTER = 'Messages'

const IsCaptured = Type.Boolean({
  description:
    'Kept in the local inbox instead of sent (`mta.capture`), although `status` says that it was delivered.',
})

const FoundMessageSchema = Type.Object(
  {
    message_id: Id(),
    workspace_id: Type.String({ description: "Of a sandbox's message, the id of the sandbox." }),
    status: MessageStatusEnum,
    delivery_state: DeliveryStateOrNull,
    is_captured: IsCaptured,
    reason: orNull(SkipReasonEnum),
    from: Type.String(),
    to: Type.String(),
    subject: Type.String(),
    key_id: TextOrNull({ description: 'API key that submitted it.' }),
    peer: TextOrNull({ description: 'IP address that submitted it.' }),
    created_at: Moment(),
    is_sandbox: Type.Boolean(),
  },
  { title: 'FoundMessage' },
)
export type FoundMessageView = Static<typeof FoundMessageSchema>

const address = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 320, pattern: '@', description }))

const SearchQuery = Type.Object(
  {
    ...cursorQuery,
    to: address('Recipient, or a domain as @example.com; case-insensitive.'),
    from: address("Author's address, or a domain as @example.com; case-insensitive."),
    subject: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Part of the subject, case-insensitive.' }),
    ),
    status: Type.Optional(
      Type.Enum([...MESSAGE_STATUSES, ...WAITING_STATES], {
        description:
          'A status, or of status `sent`: `queued` (not tried yet) or `deferred` (waiting for a retry).',
      }),
    ),
    ...timeRangeQuery,
    key_id: Type.Optional(Type.String({ maxLength: 64, description: 'Submitted with this API key.' })),
    message_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 998,
        description:
          'Message-ID header, with or without <>; only with workspace_id. Finds all copies of the mail.',
      }),
    ),
    workspace_id: Type.Optional(Type.String({ maxLength: 64 })),
    is_sandbox: Type.Optional(
      Type.Boolean({ default: false, description: 'With workspace_id: messages of its sandbox instead.' }),
    ),
  },
  { additionalProperties: false },
)

const DetailSchema = Type.Object(
  {
    ...MessageSchema.properties,
    is_captured: IsCaptured,
    workspace_id: Type.String(),
    envelope_sender: Type.String(),
    key_id: TextOrNull({ description: 'API key that submitted it.' }),
    peer: TextOrNull({ description: 'IP address that submitted it.' }),
    bounce: orNull(BounceSchema, { description: 'Also a bounce that came by mail after the delivery.' }),
  },
  { title: 'MessageDetail' },
)
export type MessageDetail = Static<typeof DetailSchema>

const Params = Type.Object({
  messageId: Type.String({
    maxLength: 998,
    description: 'Id of a message, or its Message-ID header, with or without <>.',
  }),
})

export function messageAdminRoutes(parts: MessageAdminParts): Route[] {
  const { database, returnPath } = parts
  const { reader, slowReader } = database
  return [
    adminListRoute({
      method: 'GET',
      path: '/messages',
      access: { permission: 'email:read', scope: 'query' },
      operationId: 'searchMessages',
      chapter: CHAPTER,
      summary: 'Search messages, newest first.',
      description:
        'A page may have fewer entries than `limit` although `has_more` is true: a search reads a bounded number of messages per request. ' +
        '`total` counts the first page only.',
      query: SearchQuery,
      item: FoundMessageSchema,
      async handle({ query, workspaceId }, page) {
        const { limit, offset, after } = page
        const owner = workspaceId !== undefined && query.is_sandbox ? sandboxIdOf(workspaceId) : workspaceId
        if (query.message_id !== undefined) {
          const items = await listCopies(slowReader, readAlone(query, query.message_id), owner)
          const shown = listingOf(
            items,
            page,
            one => one,
            ({ id }) => id,
          )
          return { ...shown, items: await toFound(reader, shown.items) }
        }
        const { to, from, status, subject, key_id: keyId } = query
        const search = {
          ...given({ to: to?.trim(), from: from?.trim(), status, subject, keyId, workspaceId: owner }),
          ...readTimeRange(query),
        }
        const before = after && String(after.position('text')[0])
        const wanted = offset + limit
        const found = await searchMessages(slowReader, search, await listWorkspaceIds(reader), wanted, before)
        return {
          items: await toFound(reader, found.messages.slice(offset)),
          total: after?.total ?? found.messages.length,
          hasMore: found.end !== undefined,
          end: found.end === undefined ? undefined : [found.end],
        }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/messages/:messageId',
      access: { permission: 'email:read', scope: 'record' },
      operationId: 'getMessage',
      chapter: CHAPTER,
      summary: 'Get a message with its trace.',
      params: Params,
      response: DetailSchema,
      errors: ['not_found', 'conflict'],
      async handle({ operator, params }) {
        const { id } = await getMessageNamed(database, params.messageId, operator)
        const found = await snapshot(reader, async db => {
          const message = await findAnyMessage(db, id)
          if (!message) throw noSuchMessage(params.messageId)
          const [content] = await findContents(db, [message.contentId])
          const bounce = await findBounceOf(db, id)
          const { shown, queued } = await messageWithTrace(db, message)
          return {
            shown: {
              ...shown,
              is_captured: shown.trace.some(
                ({ outcome, hosts }) => outcome === 'delivered' && hosts.length === 0,
              ),
              workspace_id: message.workspaceId,
              envelope_sender: returnPath(id, message.recipient),
              key_id: content?.submittedBy?.keyId ?? null,
              peer: content?.submittedBy?.peer ?? null,
              bounce: bounce ? bounceToApi(bounce) : null,
            },
            queued,
          }
        })
        return withWait(parts, found)
      },
    }),
    adminDownloadRoute({
      method: 'GET',
      path: '/messages/:messageId/source',
      access: { permission: 'email:read', scope: 'record' },
      operationId: 'getMessageSource',
      chapter: CHAPTER,
      summary: 'Download the source of a message.',
      description:
        'As transmitted, without the DKIM signature. Merge tags show the contact as it is now. Texts are kept for `retention.content`.',
      params: Params,
      mediaType: 'message/rfc822',
      exampleAnswer: 'Date: Mon, 05 Jan 2026 10:00:00 +0000\r\nSubject: Your order\r\n\r\nThank you.\r\n',
      errors: ['not_found', 'conflict'],
      async handle({ operator, params }) {
        const message = await getMessageNamed(database, params.messageId, operator)
        const source = await messageSource({ ...parts, reader }, message)
        return {
          fileName: `${message.id}.eml`,
          async *pieces() {
            yield source
          },
        }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/messages/:messageId/authentication',
      access: { permission: 'email:read', scope: 'record' },
      operationId: 'getMessageAuthentication',
      chapter: CHAPTER,
      summary: 'Check DKIM, SPF and DMARC of a message.',
      description:
        'Whether its signatures and its envelope sender are aligned with the domain of From, judged as a receiver would now: with the keys ' +
        'of today and what DNS says at this moment. SPF is evaluated for the addresses that mail leaves from; behind a relay, that of the ' +
        'relay counts instead.',
      params: Params,
      response: MessageAuthenticationSchema,
      errors: ['not_found', 'conflict'],
      async handle({ operator, params }) {
        const message = await getMessageNamed(database, params.messageId, operator)
        const [content] = await findContents(reader, [message.contentId])
        const composed = await composeMessage({ ...parts, reader }, message, 'signed')
        return judgeMessage(parts, composed, content?.from.address ?? '')
      },
    }),
    ...contentRoutes(parts),
  ]
}

function contentRoutes(parts: MessageAdminParts): Route[] {
  const { database } = parts
  const head = {
    method: 'GET',
    access: { permission: 'email:read', scope: 'record' },
    chapter: CHAPTER,
    params: Params,
    errors: ['not_found', 'conflict'],
  } as const
  const sourceOf = async (named: string, operator: OperatorPrincipal) =>
    messageSource({ ...parts, reader: database.reader }, await getMessageNamed(database, named, operator))
  return [
    adminRoute({
      ...head,
      path: '/messages/:messageId/content',
      operationId: 'getMessageContent',
      summary: 'Get header, text and attachments of a message.',
      description: 'Read from its source.',
      response: MailContentSchema,
      handle: async ({ operator, params }) => mailContent(await sourceOf(params.messageId, operator)),
    }),
    adminPageRoute({
      ...head,
      path: '/messages/:messageId/rendered',
      operationId: 'getRenderedMessage',
      summary: 'Show the HTML of a message.',
      description: MAIL_PAGE_DESCRIPTION,
      query: mailPageQuery,
      mediaType: 'text/html',
      exampleAnswer: MAIL_PAGE_EXAMPLE,
      handle: async ({ operator, params, query }) =>
        mailPage(await sourceOf(params.messageId, operator), query),
    }),
  ]
}

/** @throws AppError validation_error if another filter is given */
function readAlone(query: Static<typeof SearchQuery>, named: string): string {
  const { to, from, status, since, until, subject, key_id: keyId } = query
  const others = [to, from, status, since, until, subject, keyId]
  if (others.every(value => value === undefined)) return named
  throw new AppError('validation_error', 'message_id cannot be combined with other filters', {
    path: 'message_id',
  })
}

async function listCopies(db: Queries, named: string, owner: string | undefined): Promise<FoundMessage[]> {
  const messages = (await findMatching(db, named)).filter(
    ({ workspaceId }) => owner === undefined || workspaceId === owner,
  )
  const contents = await findContents(db, [...new Set(messages.map(({ contentId }) => contentId))])
  return messages.map(message => {
    const content = contents.find(({ id }) => id === message.contentId)
    return {
      ...message,
      subject: content?.subject ?? '',
      from: content?.from.address ?? '',
      ...given({ submittedBy: content?.submittedBy }),
    }
  })
}

/** Accepts a message's id, its content's id, or a Message-ID with or without `<>`. */
async function findMatching(db: Queries, named: string): Promise<Message[]> {
  const id = named.trim().replace(/^<(.*)>$/, '$1')
  // Our Message-IDs are an id at the appliance's hostname.
  const local = (id.split('@')[0] ?? '').toLowerCase()
  if (isUuid(local)) {
    const message = await findAnyMessage(db, local)
    if (message) return [message]
    const copies = await findMessagesOf(db, local)
    if (copies.length > 0) return copies
  }
  if (!id.includes('@')) return []
  const contentId = await findRelayedContent(db, id)
  return contentId === undefined ? [] : findMessagesOf(db, contentId)
}

/** @throws AppError not_found, also if the operator has no role in its workspace; forbidden; conflict if several are meant */
async function getMessageNamed(
  { reader, slowReader }: Database,
  named: string,
  operator: OperatorPrincipal,
): Promise<Message> {
  const [message, ...others] = await findMatching(slowReader, named)
  if (!message) throw noSuchMessage(named)
  const workspace = await findActingWorkspace(reader, message.workspaceId)
  requirePermission(operator, 'email:read', workspace?.liveId ?? message.workspaceId)
  if (others.length > 0)
    throw new AppError(
      'conflict',
      `${named} went to ${others.length + 1} recipients; use one of these ids: ${[message, ...others]
        .slice(0, 12)
        .map(({ id, recipient }) => `${id} (${recipient})`)
        .join(', ')}`,
    )
  return message
}

function noSuchMessage(named: string): AppError {
  return new AppError('not_found', `no message ${named}`)
}

async function toFound(db: Queries, messages: readonly FoundMessage[]): Promise<FoundMessageView[]> {
  return (await withDeliveryStates(db, messages)).map(found => ({
    message_id: found.id,
    workspace_id: found.workspaceId,
    status: found.status,
    delivery_state: found.deliveryState,
    is_captured: found.isCaptured,
    reason: found.reason,
    from: found.from,
    to: found.recipient,
    subject: found.subject,
    key_id: found.submittedBy?.keyId ?? null,
    peer: found.submittedBy?.peer ?? null,
    created_at: isoTime(found.createdAt),
    is_sandbox: found.isSandbox,
  }))
}
