/** API keys in the admin API. A key is in an answer only when it is created. */
import Type, { type Static } from 'typebox'
import { AppError } from '../core/errors.js'
import { given } from '../core/given.js'
import { isoTime, isoTimeOrNull } from '../core/moments.js'
import { adminListRoute, adminRoute } from '../http/admin-route.js'
import { Id, Moment, MomentOrNull } from '../http/answer/answer-fields.js'
import { requirePermission, type OperatorPrincipal } from '../http/operator.js'
import { cursorQuery, type Page } from '../http/pagination.js'
import { KEY_TYPES, PERMISSIONS } from '../http/principal.js'
import type { OperatorPermission } from '../http/roles.js'
import type { Route } from '../http/route.js'
import { findKey, listApiKeys, type ApiKey } from './key-store.js'
import {
  changeKey,
  createKey,
  DEFAULT_KEY_LIMITS,
  revokeKey,
  type KeyParts,
  type ScheduledMail,
} from './keys.js'

const KeySchema = Type.Object(
  {
    id: Id(),
    workspace_id: Id(),
    name: Type.String(),
    hint: Type.String({ description: 'Prefix and last four characters of the key.' }),
    type: Type.Enum([...KEY_TYPES]),
    permissions: Type.Array(Type.Enum(['*', ...PERMISSIONS]), { description: '`*` means all permissions.' }),
    is_sandbox: Type.Boolean(),
    rate_limit: Type.Integer({ description: 'Requests per minute; 0 = unlimited.' }),
    email_rate_limit: Type.Integer({ description: 'Recipients per minute; 0 = unlimited.' }),
    created_at: Moment(),
    revoked_at: MomentOrNull(),
    last_used_at: MomentOrNull({ description: 'Last request or SMTP login, accurate to a minute.' }),
  },
  { title: 'ApiKey' },
)

const CreatedKeySchema = Type.Object(
  { ...KeySchema.properties, key: Type.String({ description: 'The key itself, shown only now.' }) },
  { title: 'CreatedApiKey' },
)

const rateLimit = (what: string) =>
  Type.Integer({
    minimum: 0,
    maximum: 1_000_000_000,
    description: `${what} per minute, default 100, 0 = unlimited.`,
  })

const settings = {
  name: Type.String({ minLength: 1, maxLength: 200, description: 'What the key is for.' }),
  permissions: Type.Array(Type.String({ maxLength: 64 }), {
    minItems: 1,
    maxItems: 100,
    description: 'Permissions, or `sending_access` or `full_access`; default `full_access`.',
  }),
  rate_limit: rateLimit('Requests'),
  email_rate_limit: rateLimit('Recipients'),
}

const ById = Type.Object({ id: Type.String({ maxLength: 64 }) })
const OfWorkspace = Type.Object({ workspaceId: Type.String({ maxLength: 64 }) })

const Revoked = Type.Object(
  {
    success: Type.Literal(true),
    scheduled: Type.Integer({
      description: 'Scheduled messages that were accepted with the key and will still be sent.',
    }),
    cancelled: Type.Integer({ description: 'Scheduled messages that were cancelled.' }),
  },
  { title: 'RevokedApiKey' },
)

export interface KeyRouteParts extends KeyParts {
  readonly scheduledMail: ScheduledMail
}

export function keyRoutes(parts: KeyRouteParts): Route[] {
  const { reader } = parts.database

  async function list(workspaceId: string | undefined, page: Page) {
    const found = await listApiKeys(reader, workspaceId, page)
    return { ...found, items: found.items.map(keyToApi) }
  }

  /** @throws AppError not_found, forbidden */
  async function getKey(
    operator: OperatorPrincipal,
    permission: OperatorPermission,
    id: string,
  ): Promise<ApiKey> {
    const found = await findKey(reader, { id })
    if (!found) throw new AppError('not_found', `no key ${id}`)
    requirePermission(operator, permission, found.key.workspaceId)
    return found.key
  }

  return [
    adminListRoute({
      method: 'GET',
      path: '/keys',
      access: { permission: 'keys:read', scope: 'query' },
      operationId: 'listKeys',
      chapter: 'Keys',
      summary: 'List API keys.',
      description: 'Without their secrets, revoked ones included, oldest first.',
      query: Type.Object(
        {
          ...cursorQuery,
          workspace_id: Type.Optional(
            Type.String({ maxLength: 64, description: 'Only keys of this workspace; default: all.' }),
          ),
        },
        { additionalProperties: false },
      ),
      item: KeySchema,
      handle: ({ workspaceId }, page) => list(workspaceId, page),
    }),
    adminListRoute({
      method: 'GET',
      path: '/workspaces/:workspaceId/keys',
      access: { permission: 'keys:read', scope: 'path' },
      operationId: 'listWorkspaceKeys',
      chapter: 'Keys',
      summary: 'List the API keys of a workspace.',
      params: OfWorkspace,
      query: Type.Object(cursorQuery, { additionalProperties: false }),
      item: KeySchema,
      handle: ({ params }, page) => list(params.workspaceId, page),
    }),
    adminRoute({
      method: 'POST',
      path: '/workspaces/:workspaceId/keys',
      access: { permission: 'keys:write', scope: 'path', isSensitive: true },
      operationId: 'createKey',
      chapter: 'Keys',
      summary: 'Create an API key.',
      description: 'The answer contains the key, which cannot be read again.',
      params: OfWorkspace,
      body: Type.Object(
        {
          name: settings.name,
          sandbox: Type.Optional(Type.Boolean({ description: 'A sandbox key: its mail is not delivered.' })),
          permissions: Type.Optional(settings.permissions),
          rate_limit: Type.Optional(settings.rate_limit),
          email_rate_limit: Type.Optional(settings.email_rate_limit),
        },
        { additionalProperties: false, title: 'NewApiKey' },
      ),
      status: 201,
      location: (value: { id: string }) => `/keys/${value.id}`,
      response: CreatedKeySchema,
      async handle({ operator, params: { workspaceId }, body }) {
        const { row, key } = await createKey(
          parts,
          {
            workspaceId,
            name: body.name,
            isSandbox: body.sandbox ?? false,
            ...given({ permissions: body.permissions }),
            rateLimit: body.rate_limit ?? DEFAULT_KEY_LIMITS.rateLimit,
            emailRateLimit: body.email_rate_limit ?? DEFAULT_KEY_LIMITS.emailRateLimit,
          },
          operator.actor,
        )
        return { ...keyToApi(row), key }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/keys/:id',
      access: { permission: 'keys:read', scope: 'record' },
      operationId: 'getKey',
      chapter: 'Keys',
      summary: 'Get an API key.',
      params: ById,
      response: KeySchema,
      handle: async ({ operator, params }) => keyToApi(await getKey(operator, 'keys:read', params.id)),
    }),
    adminRoute({
      method: 'PATCH',
      path: '/keys/:id',
      access: { permission: 'keys:write', scope: 'record', isSensitive: true },
      operationId: 'updateKey',
      chapter: 'Keys',
      summary: 'Change an API key.',
      description: 'Takes effect at once.',
      params: ById,
      body: Type.Partial(Type.Object(settings), {
        additionalProperties: false,
        minProperties: 1,
        title: 'ApiKeyChanges',
      }),
      response: KeySchema,
      async handle({ operator, params, body }) {
        await getKey(operator, 'keys:write', params.id)
        const { name, permissions, rate_limit, email_rate_limit } = body
        const changes = given({ name, permissions, rateLimit: rate_limit, emailRateLimit: email_rate_limit })
        return keyToApi(await changeKey(parts, params.id, changes, operator.actor))
      },
    }),
    adminRoute({
      method: 'DELETE',
      path: '/keys/:id',
      access: { permission: 'keys:write', scope: 'record', isSensitive: true },
      operationId: 'revokeKey',
      chapter: 'Keys',
      summary: 'Revoke an API key.',
      description:
        'It stops working at once and stays in the list. Mail that was accepted with it is still sent, at its scheduled time too: ' +
        '`scheduled` says how much waits, and `cancel_scheduled` cancels it, of a key already revoked as well.',
      params: ById,
      query: Type.Object(
        {
          cancel_scheduled: Type.Optional(
            Type.Boolean({ default: false, description: 'Also cancels what is scheduled with the key.' }),
          ),
        },
        { additionalProperties: false },
      ),
      response: Revoked,
      async handle({ operator, params, query }) {
        const key = await getKey(operator, 'keys:write', params.id)
        const cancels = query.cancel_scheduled === true
        if (key.revokedAt === null || !cancels) await revokeKey(parts, params.id, operator.actor)
        const cancelled = cancels ? await parts.scheduledMail.cancel(key) : 0
        return { success: true as const, scheduled: await parts.scheduledMail.count(key), cancelled }
      },
    }),
  ]
}

function keyToApi(key: ApiKey): Static<typeof KeySchema> {
  return {
    id: key.id,
    workspace_id: key.workspaceId,
    name: key.name,
    hint: key.hint,
    type: key.type,
    permissions: [...key.permissions],
    is_sandbox: key.isSandbox,
    rate_limit: key.rateLimit,
    email_rate_limit: key.emailRateLimit,
    created_at: isoTime(key.createdAt),
    revoked_at: isoTimeOrNull(key.revokedAt),
    last_used_at: isoTimeOrNull(key.lastUsedAt),
  }
}
