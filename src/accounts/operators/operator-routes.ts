/**
 * Routes that manage operators. The services check the caller's privileges in each change's transaction (`privileges.ts`).
 *
 * A new or reset account gets a one-time link, in the answer or by mail.
 */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { DONE, Done, orNull } from '../../http/answer/answer-fields.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import { ALL_WORKSPACES } from '../../http/roles.js'
import type { AdminAccess, Route } from '../../http/route.js'
import {
  NewTokenSchema,
  newTokenToApi,
  readNewToken,
  operatorToApi,
  OperatorSchema,
  RoleName,
  SessionSchema,
  sessionToApi,
  TokenBody,
  TokenSchema,
  tokenToApi,
} from './answers.js'
import { createToken, type CredentialParts } from './credentials.js'
import { findOperator, listOperators, type Operator } from './operator-store.js'
import {
  createOperator,
  endSessions,
  getOperator,
  listSessionsOf,
  listTokensOf,
  removeOperator,
  removeRole,
  renameOperator,
  resetOperator,
  revokeTokenOf,
  setRole,
} from './operators.js'
import { visibleTo } from './privileges.js'
import { openLinkMail, signInUrl, type LinkMailParts } from './link-mail.js'

export interface OperatorRouteParts extends CredentialParts, LinkMailParts {}

const READ: AdminAccess = { permission: 'operators:read', scope: 'record' }
const WRITE: AdminAccess = { permission: 'operators:write', scope: 'record', isSensitive: true }
const common = { chapter: 'Operators' }

const OperatorParams = Type.Object({
  id: Type.String({ maxLength: 254, description: 'Id or email address of the operator.' }),
})

const WithId = { ...OperatorParams.properties }

const LinkFields = {
  link: orNull(Type.String(), {
    description: 'One-time link to sign in and set a password or passkey. Null if it was mailed.',
  }),
  link_token: orNull(Type.String(), { description: 'Token of the link, for `POST /session/link`.' }),
}

const LinkedOperator = Type.Object(
  { ...OperatorSchema.properties, ...LinkFields },
  { title: 'LinkedOperator' },
)

const SendMail = Type.Optional(
  Type.Boolean({ description: 'Mail the link instead of answering it. Default: false.' }),
)

export function operatorRoutes(parts: OperatorRouteParts): Route[] {
  return [...accountRoutes(parts), ...roleRoutes(parts), ...sessionRoutes(parts), ...tokenRoutes(parts)]
}

function accountRoutes(parts: OperatorRouteParts): Route[] {
  return [
    adminListRoute({
      ...common,
      method: 'GET',
      path: '/operators',
      access: READ,
      operationId: 'listOperators',
      summary: 'List operators.',
      description: 'Those with a role in a workspace whose operators you may list, with these roles only.',
      query: PageQuery,
      item: OperatorSchema,
      async handle({ operator }, page) {
        const all = await listOperators(parts.database.reader)
        const visible = all.flatMap(one => visibleTo(operator, one) ?? [])
        return listingOf(visible, page, operatorToApi)
      },
    }),
    adminRoute({
      ...common,
      method: 'POST',
      path: '/operators',
      access: WRITE,
      operationId: 'createOperator',
      summary: 'Create an operator.',
      body: Type.Object(
        {
          email: Type.String({ minLength: 1, maxLength: 254 }),
          name: Type.Optional(Type.String({ maxLength: 200 })),
          role: RoleName(),
          workspace_id: Type.Optional(
            orNull(Type.String({ maxLength: 64 }), {
              description: 'Workspace of the role. Null or absent: all workspaces.',
            }),
          ),
          send_mail: SendMail,
        },
        { additionalProperties: false },
      ),
      status: 201,
      response: LinkedOperator,
      errors: ['duplicate', 'missing_from_email'],
      async handle({ operator: acting, body }) {
        const workspaceId = body.workspace_id ?? ALL_WORKSPACES
        const sendLink = body.send_mail ? await openLinkMail(parts, workspaceId, 'invitation') : undefined
        const { operator, link } = await createOperator(
          parts,
          {
            email: body.email,
            ...(body.name === undefined ? {} : { name: body.name }),
            grant: { workspaceId, role: body.role },
          },
          'invitation',
          acting,
          sendLink,
        )
        return linkedToApi(parts, operator, sendLink ? undefined : link)
      },
    }),
    adminRoute({
      ...common,
      method: 'GET',
      path: '/operators/:id',
      access: READ,
      operationId: 'getOperator',
      summary: 'Get an operator.',
      params: OperatorParams,
      response: OperatorSchema,
      handle: async ({ operator, params }) =>
        operatorToApi(await getOperator(parts, operator, await idOf(parts, params.id))),
    }),
    adminRoute({
      ...common,
      method: 'PATCH',
      path: '/operators/:id',
      access: WRITE,
      operationId: 'updateOperator',
      summary: 'Rename an operator.',
      params: OperatorParams,
      body: Type.Object({ name: Type.String({ maxLength: 200 }) }, { additionalProperties: false }),
      response: OperatorSchema,
      handle: async ({ operator, params, body }) =>
        operatorToApi(await renameOperator(parts, await idOf(parts, params.id), body.name, operator)),
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/operators/:id',
      access: WRITE,
      operationId: 'deleteOperator',
      summary: 'Remove an operator.',
      description: 'Ends sessions and tokens at once.',
      params: OperatorParams,
      response: Done,
      errors: ['conflict'],
      async handle({ operator, params }) {
        await removeOperator(parts, await idOf(parts, params.id), operator)
        return DONE
      },
    }),
    adminRoute({
      ...common,
      method: 'POST',
      path: '/operators/:id/reset',
      access: WRITE,
      operationId: 'resetOperator',
      summary: "Reset an operator's credentials.",
      description:
        'Deletes password, passkeys and TOTP, ends sessions and tokens, and makes a one-time link.',
      params: OperatorParams,
      body: Type.Object({ send_mail: SendMail }, { additionalProperties: false }),
      isBodyOptional: true,
      response: LinkedOperator,
      errors: ['missing_from_email'],
      async handle({ operator: acting, params, body }) {
        const id = await idOf(parts, params.id)
        const { grants } = await getOperator(parts, acting, id)
        const sendLink = body.send_mail
          ? await openLinkMail(parts, grants[0]?.workspaceId ?? ALL_WORKSPACES, 'reset')
          : undefined
        const { operator, link } = await resetOperator(parts, id, acting, sendLink)
        return linkedToApi(parts, operator, sendLink ? undefined : link)
      },
    }),
  ]
}

function roleRoutes(parts: OperatorRouteParts): Route[] {
  const params = Type.Object({
    ...WithId,
    workspaceId: Type.String({ maxLength: 64, description: 'Id of the workspace, or `all`.' }),
  })
  const path = '/operators/:id/roles/:workspaceId'
  const placeOf = (named: string) => (named === 'all' ? ALL_WORKSPACES : named)
  return [
    adminRoute({
      ...common,
      method: 'PUT',
      path,
      access: WRITE,
      operationId: 'setOperatorRole',
      summary: 'Grant a role.',
      params,
      body: Type.Object({ role: RoleName() }, { additionalProperties: false }),
      response: OperatorSchema,
      errors: ['conflict'],
      async handle({ operator: acting, params: { id, workspaceId }, body: { role } }) {
        const grant = { workspaceId: placeOf(workspaceId), role }
        const operator = await setRole(parts, await idOf(parts, id), grant, acting)
        return operatorToApi(visibleTo(acting, operator) ?? operator)
      },
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path,
      access: WRITE,
      operationId: 'removeOperatorRole',
      summary: 'Take a role away.',
      params,
      response: Done,
      errors: ['conflict'],
      async handle({ operator: acting, params: { id, workspaceId } }) {
        await removeRole(parts, await idOf(parts, id), placeOf(workspaceId), acting)
        return DONE
      },
    }),
  ]
}

function sessionRoutes(parts: OperatorRouteParts): Route[] {
  const end = { ...common, method: 'DELETE', access: WRITE, response: Done } as const
  return [
    adminListRoute({
      ...common,
      method: 'GET',
      path: '/operators/:id/sessions',
      access: { permission: 'operators:write', scope: 'record' },
      operationId: 'listOperatorSessions',
      summary: "List an operator's sessions.",
      params: OperatorParams,
      query: PageQuery,
      item: SessionSchema,
      async handle({ operator, params: { id } }, page) {
        const all = await listSessionsOf(parts, await idOf(parts, id), operator)
        return listingOf(all, page, one => sessionToApi(one, operator.credential.id))
      },
    }),
    adminRoute({
      ...end,
      path: '/operators/:id/sessions',
      operationId: 'endOperatorSessions',
      summary: "End an operator's sessions.",
      params: OperatorParams,
      async handle({ operator, params: { id } }) {
        await endSessions(parts, await idOf(parts, id), undefined, operator)
        return DONE
      },
    }),
    adminRoute({
      ...end,
      path: '/operators/:id/sessions/:sessionId',
      operationId: 'endOperatorSession',
      summary: 'End a session of an operator.',
      params: Type.Object({ ...WithId, sessionId: Type.String({ maxLength: 64 }) }),
      async handle({ operator, params: { id, sessionId } }) {
        await endSessions(parts, await idOf(parts, id), sessionId, operator)
        return DONE
      },
    }),
  ]
}

function tokenRoutes(parts: OperatorRouteParts): Route[] {
  return [
    adminListRoute({
      ...common,
      method: 'GET',
      path: '/operators/:id/tokens',
      access: { permission: 'operators:write', scope: 'record' },
      operationId: 'listOperatorTokens',
      summary: "List an operator's tokens.",
      params: OperatorParams,
      query: PageQuery,
      item: TokenSchema,
      handle: async ({ operator, params: { id } }, page) =>
        listingOf(await listTokensOf(parts, await idOf(parts, id), operator), page, tokenToApi),
    }),
    adminRoute({
      ...common,
      method: 'POST',
      path: '/operators/:id/tokens',
      access: WRITE,
      operationId: 'createOperatorToken',
      summary: 'Create a token for an operator.',
      description: 'For users of the shell only: a token acts in the name of its operator.',
      params: OperatorParams,
      body: TokenBody,
      status: 201,
      location: (token: { id: string }, { id }: { id: string }) =>
        `/operators/${encodeURIComponent(id)}/tokens/${token.id}`,
      response: NewTokenSchema,
      errors: ['limit_reached'],
      async handle({ operator, params: { id }, body }) {
        requireShell(operator)
        return newTokenToApi(await createToken(parts, await idOf(parts, id), readNewToken(body), operator))
      },
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/operators/:id/tokens/:tokenId',
      access: WRITE,
      operationId: 'revokeOperatorToken',
      summary: 'Revoke a token of an operator.',
      params: Type.Object({ ...WithId, tokenId: Type.String({ maxLength: 64 }) }),
      response: Done,
      async handle({ operator, params: { id, tokenId } }) {
        await revokeTokenOf(parts, await idOf(parts, id), tokenId, operator)
        return DONE
      },
    }),
  ]
}

/** @throws AppError forbidden */
function requireShell({ credential }: OperatorPrincipal): void {
  if (credential.kind !== 'shell')
    throw new AppError('forbidden', 'operators create their own tokens, with POST /me/tokens')
}

/** @param named id or email address @throws AppError not_found */
async function idOf({ database }: OperatorRouteParts, named: string): Promise<string> {
  if (isUuid(named)) return named
  const operator = await findOperator(database.reader, { email: named })
  if (!operator) throw new AppError('not_found', `no operator ${named}`)
  return operator.id
}

function linkedToApi({ publicUrl }: OperatorRouteParts, operator: Operator, link: string | undefined) {
  return {
    ...operatorToApi(operator),
    link: link === undefined ? null : signInUrl(publicUrl, link),
    link_token: link ?? null,
  }
}
