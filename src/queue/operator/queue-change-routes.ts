/**
 * Operators' changes of the queue in the admin API: hold, release, retry, delete, end back-offs.
 *
 * A change names one part of the queue. What concerns several workspaces requires a role in all of them. A change of many messages is made in
 * several requests: each works for a few seconds and returns where the next one continues, so that no proxy gives up on it.
 */
import Type, { type Static } from 'typebox'
import { endRestoreHold } from '../../accounts/restore-hold-store.js'
import { AppError } from '../../core/errors.js'
import type { Database } from '../../db/database.js'
import { adminRoute } from '../../http/admin-route.js'
import { DONE, Done, TextOrNull } from '../../http/answer/answer-fields.js'
import { mayOperate, requirePermission, type OperatorPrincipal } from '../../http/operator.js'
import { ALL_WORKSPACES } from '../../http/roles.js'
import type { Route } from '../../http/route.js'
import { changeQueue, partInWords, recordChange, selectionOf, type NamedPart } from './change-queue.js'
import {
  countChanged,
  findWorkspaceIds,
  listDestinations,
  listEntries,
  type QueueChange,
  type QueuePosition,
  type QueuePower,
} from './queue-admin-store.js'
import { domainField, QUEUE_CHAPTER, siteField, workspaceField } from './queue-fields.js'
import { readDomain, type QueueRouteParts } from './queue-routes.js'
import { destinationsOf } from './queue-status.js'

/** Longest work of one request, ms. */
const CHANGE_MS = 10_000

export function queueChangeRoutes(parts: QueueRouteParts): Route[] {
  return [
    changeRoute(parts, 'hold', 'holdQueue', 'Hold queued messages.'),
    changeRoute(parts, 'release', 'releaseQueue', 'Release held messages.'),
    changeRoute(parts, 'retry', 'retryQueue', 'Retry queued messages now.'),
    changeRoute(parts, 'delete', 'deleteQueued', 'Delete queued messages.'),
    resetBackoffRoute(parts),
  ]
}

const Part = {
  message_ids: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
      minItems: 1,
      maxItems: 1_000,
      description: 'Ids of messages; those not in the queue are ignored.',
    }),
  ),
  domain: Type.Optional(domainField),
  site: Type.Optional(siteField),
  workspace_id: Type.Optional(workspaceField),
  all: Type.Optional(Type.Literal(true, { description: 'The whole queue.' })),
}

const ChangeBody = Type.Object(
  {
    ...Part,
    dry_run: Type.Optional(
      Type.Boolean({ default: false, description: 'Only count the messages that would change.' }),
    ),
    after: Type.Optional(
      Type.String({ maxLength: 400, description: '`next` of the previous request, if it was not null.' }),
    ),
  },
  { additionalProperties: false },
)

const ChangedSchema = Type.Object(
  {
    changed: Type.Integer({ description: 'Messages changed, or that would be.' }),
    next: TextOrNull({
      description: 'Not null: more messages remain. Repeat the request with this value as `after`.',
    }),
  },
  { title: 'QueueChanged' },
)
export type QueueChanged = Static<typeof ChangedSchema>

const DESCRIPTIONS: Readonly<Record<QueueChange, string>> = {
  hold: 'Held messages are not tried until they are released.',
  release:
    '`all` also ends the hold after a restore. What an operator of all workspaces held stays held for others.',
  retry: 'Makes messages due now and ends the back-off of their sites. Scheduled messages keep their time.',
  delete: 'Messages become `failed`. An attempt in progress is not interrupted, only its retries are.',
}

function changeRoute(parts: QueueRouteParts, kind: QueueChange, operationId: string, summary: string): Route {
  return adminRoute({
    method: 'POST',
    path: `/queue/${kind}`,
    access: { permission: 'queue:write', scope: 'record' },
    operationId,
    chapter: QUEUE_CHAPTER,
    summary,
    description:
      `Name exactly one of message_ids, domain, site and all; workspace_id narrows domain and site, or stands alone. ${DESCRIPTIONS[kind]} ` +
      `A request works for about ${CHANGE_MS / 1_000} seconds; if \`next\` is not null, repeat it.`,
    body: ChangeBody,
    response: ChangedSchema,
    exampleAnswer: { changed: 12, next: null },
    example: { domain: 'example.com', dry_run: true },
    errors: ['not_found'],
    handle: async ({ body, operator }) => change(parts, kind, body, operator),
  })
}

async function change(
  parts: QueueRouteParts,
  kind: QueueChange,
  body: Static<typeof ChangeBody>,
  operator: OperatorPrincipal,
): Promise<QueueChanged> {
  const { database, clock, runningQueue } = parts
  const named = readPart(body)
  await requireWritable(database, named, operator)
  const selection = await selectionOf(parts, named)
  const now = clock.now()
  const by: QueuePower = mayOperate(operator, 'queue:write', ALL_WORKSPACES) ? 'appliance' : 'workspace'
  if (body.dry_run === true)
    return { changed: await countChanged(database.slowReader, selection, { kind, now, by }), next: null }
  const queue = runningQueue()
  const done = await changeQueue(
    { ...parts, isServing: queue !== undefined },
    { kind, selection, by, after: readPosition(body.after), limitMs: CHANGE_MS },
  )
  await recordChange(parts, kind, partInWords(named), operator.actor, done)
  if (!done.end && kind === 'release' && body.all === true)
    await database.write(async tx => {
      tx.changed('queue')
      await endRestoreHold(tx.db)
    })
  if (!done.end && kind === 'retry')
    await queue?.retryNow(await retriedDestinations(database, named, selection))
  return { changed: done.changed, next: done.end ? writePosition(done.end) : null }
}

/** With more destinations than this, the back-off of all sites is reset. */
const MAX_NAMED = 1_000

/** @returns undefined for all */
async function retriedDestinations(
  { reader }: Database,
  { messageIds }: NamedPart,
  { destinations }: { readonly destinations?: readonly string[] },
): Promise<ReadonlySet<string> | undefined> {
  const named = messageIds
    ? (await listEntries(reader, { messageIds }, messageIds.length)).map(({ destination }) => destination)
    : destinations
  return named && named.length <= MAX_NAMED ? new Set(named) : undefined
}

/** @throws AppError validation_error unless exactly one part is named */
function readPart(body: Static<typeof ChangeBody>): NamedPart {
  const { message_ids: messageIds, domain, site, workspace_id: workspaceId, all } = body
  const given = [messageIds, domain, site, all].filter(value => value !== undefined).length
  const isNarrowed = workspaceId !== undefined && (messageIds !== undefined || all !== undefined)
  if (given > 1 || (given === 0 && workspaceId === undefined) || isNarrowed)
    throw new AppError(
      'validation_error',
      'name exactly one of message_ids, domain, site, all and workspace_id; workspace_id may narrow domain or site',
    )
  return { messageIds, domain: readDomain(domain, 'domain'), site, workspaceId }
}

/** @throws AppError not_found, forbidden */
async function requireWritable(
  { reader }: Database,
  { messageIds, workspaceId }: NamedPart,
  operator: OperatorPrincipal,
): Promise<void> {
  const concerned = messageIds ? await findWorkspaceIds(reader, messageIds) : [workspaceId ?? ALL_WORKSPACES]
  for (const id of concerned) requirePermission(operator, 'queue:write', id)
}

function writePosition({ destination, messageId }: QueuePosition): string {
  return destination === undefined ? messageId : `${messageId} ${destination}`
}

function readPosition(text: string | undefined): QueuePosition | undefined {
  if (text === undefined) return undefined
  const [messageId = '', destination] = text.split(' ')
  return { messageId, ...(destination === undefined ? {} : { destination }) }
}

function resetBackoffRoute({ database, locateSite, runningQueue }: QueueRouteParts): Route {
  return adminRoute({
    method: 'POST',
    path: '/queue/reset-backoff',
    access: { permission: 'queue:write', scope: 'appliance' },
    operationId: 'resetBackoff',
    chapter: QUEUE_CHAPTER,
    summary: 'End the back-off of sites.',
    description: 'Messages keep their next attempt; those that are due are tried at once.',
    body: Type.Object(
      { domain: Part.domain, site: Part.site, all: Part.all },
      { additionalProperties: false, description: 'Exactly one of them.' },
    ),
    example: { all: true },
    response: Done,
    async handle({ body }) {
      if (Object.keys(body).length !== 1)
        throw new AppError('validation_error', 'name exactly one of domain, site and all')
      const domain = readDomain(body.domain, 'domain')
      const destinations =
        body.site === undefined
          ? domain && [domain]
          : await destinationsOf(body.site, await listDestinations(database.slowReader), locateSite)
      await runningQueue()?.retryNow(destinations ? new Set(destinations) : undefined)
      return DONE
    },
  })
}
