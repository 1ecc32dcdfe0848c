/**
 * Routes that manage operators. The services check the caller's privileges in each change's transaction (`privileges.ts`).
 *
 * A new or reset account gets a one-time link, in the answer or by mail. Operators of single workspaces invite by mail only, and learn nothing of
 * operators elsewhere.
 */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import { DONE, Done, orNull } from '../../http/answer/answer-fields.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import { ALL_WORKSPACES, type RoleGrant } from '../../http/roles.js'
import type { AdminAccess, Route } from '../../http/route.js'
import { findInvitationMails, listAccountMails } from './account-mail-store.js'
import {
  accountMailToApi,
  AccountMailSchema,
  CredentialsRemoved,
  invitationToApi,
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
import type { Invitation } from './invitation-store.js'
import { findVisibleInvitation, invite, listVisibleInvitations, withdrawInvitation } from './invitations.js'
import { signInUrl } from './links.js'
import { findOperator, listOperators } from './operator-store.js'
import {
  createOperator,
  createOperatorByMail,
  endSessions,
  getOperator,
  listSessionsOf,
  listTokensOf,
  removeOperator,
  removeRole,
  renameOperator,
  resetOperator,
  resetOperatorByMail,
  revokeTokenOf,
  setRole,
  type LinkMail,
} from './operators.js'
import { isOfAppliance, requireMayGrant, visibleTo } from './privileges.js'

export interface OperatorRouteParts extends CredentialParts, LinkMail {
  readonly publicUrl: string
}

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
  Type.Boolean({
    description: 'Mail the link instead of answering it. Default: false; invitations are always mailed.',
  }),
)

export function operatorRoutes(parts: OperatorRouteParts): Route[] {
  return [
    ...listRoutes(parts),
    createRoute(parts),
    ...accountRoutes(parts),
    ...roleRoutes(parts),
    ...sessionRoutes(parts),
    ...tokenRoutes(parts),
    mailRoute(parts),
  ]
}

function listRoutes(parts: OperatorRouteParts): Route[] {
  const { reader } = parts.database
  return [
    adminListRoute({
      ...common,
      method: 'GET',
      path: '/operators',
      access: READ,
      operationId: 'listOperators',
      summary: 'List operators.',
      description:
        'Those with a role in a workspace whose operators you may list, with these roles only, and then the invitations to these workspaces.',
      query: PageQuery,
      item: OperatorSchema,
      async handle({ operator }, page) {
        const all = await listOperators(reader)
        const visible = all.flatMap(one => visibleTo(operator, one) ?? []).map(operatorToApi)
        const invitations = await listVisibleInvitations(parts, operator)
        const mails = await findInvitationMails(
          reader,
          invitations.map(({ id }) => id),
        )
        const invited = invitations.map(one => invitationToApi(one, mails.get(one.id)))
        return listingOf(
          [...visible, ...invited],
          page,
          one => one,
          ({ id }) => id,
        )
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
      async handle({ operator, params }) {
        const invitation = await findVisibleInvitation(parts, operator, params.id)
        if (invitation) return invitedToApi(parts, invitation)
        return operatorToApi(await getOperator(parts, operator, await idOf(parts, operator, params.id)))
      },
    }),
  ]
}

function createRoute(parts: OperatorRouteParts): Route {
  return adminRoute({
    ...common,
    method: 'POST',
    path: '/operators',
    access: WRITE,
    operationId: 'createOperator',
    summary: 'Create or invite an operator.',
    description:
      'With a role in all workspaces that includes `operators:write`, this creates the account. Otherwise it invites: the link is always ' +
      'mailed, and the role is given when the holder of the address accepts it.',
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
    errors: ['duplicate', 'not_found'],
    async handle({ operator: acting, body: { email, name, role, workspace_id: workspaceId, send_mail } }) {
      const grant = { workspaceId: workspaceId ?? ALL_WORKSPACES, role }
      const wanted = { email, ...given({ name }), grant }
      if (!isOfAppliance(acting)) {
        if (send_mail === false) requireMayHandLinks(acting, grant)
        return withLink(parts, await invitedToApi(parts, await invite(parts, wanted, acting)))
      }
      if (send_mail === true)
        return withLink(parts, operatorToApi(await createOperatorByMail(parts, wanted, acting)))
      const { operator, link } = await createOperator(parts, wanted, 'invitation', acting)
      return withLink(parts, operatorToApi(operator), link)
    },
  })
}

function accountRoutes(parts: OperatorRouteParts): Route[] {
  return [
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
        operatorToApi(
          await renameOperator(parts, await idOf(parts, operator, params.id), body.name, operator),
        ),
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/operators/:id',
      access: WRITE,
      operationId: 'deleteOperator',
      summary: 'Remove an operator.',
      description: 'Ends sessions and tokens at once. With the id of an invitation, withdraws it.',
      params: OperatorParams,
      response: Done,
      errors: ['conflict'],
      async handle({ operator, params }) {
        const invitation = await findVisibleInvitation(parts, operator, params.id)
        if (invitation) await withdrawInvitation(parts, invitation.id, operator)
        else await removeOperator(parts, await idOf(parts, operator, params.id), operator)
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
        'Deletes password, passkeys and TOTP, ends sessions and tokens, and makes a one-time link. The address counts as proved again once a ' +
        'link that was mailed is opened.',
      params: OperatorParams,
      body: Type.Object({ send_mail: SendMail }, { additionalProperties: false }),
      isBodyOptional: true,
      response: LinkedOperator,
      async handle({ operator: acting, params, body }) {
        const id = await idOf(parts, acting, params.id)
        if (body.send_mail === true)
          return withLink(parts, operatorToApi(await resetOperatorByMail(parts, id, acting)))
        const { operator, link } = await resetOperator(parts, id, acting)
        return withLink(parts, operatorToApi(operator), link)
      },
    }),
  ]
}

/** Results only: the content is not stored. */
function mailRoute({ database }: OperatorRouteParts): Route {
  return adminListRoute({
    ...common,
    method: 'GET',
    path: '/account-mail',
    access: { permission: 'system:read', scope: 'appliance' },
    operationId: 'listAccountMail',
    summary: 'List mail with links to operators.',
    description:
      'Invitations and resets of the last 30 days, newest first, with the result of the last attempt.',
    query: PageQuery,
    item: AccountMailSchema,
    async handle(_, page) {
      const found = await listAccountMails(database.reader, page)
      return { ...found, items: found.items.map(accountMailToApi) }
    },
  })
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
      description:
        'A wider role for an operator whose address is not proved first removes everything that was set up in the account; send a link with ' +
        '`POST /operators/{id}/reset` then. Who has no role yet is invited with `POST /operators`.',
      params,
      body: Type.Object({ role: RoleName() }, { additionalProperties: false }),
      response: Type.Object(
        { ...OperatorSchema.properties, credentials_removed: CredentialsRemoved },
        { title: 'RoleGranted' },
      ),
      errors: ['conflict'],
      async handle({ operator: acting, params: { id, workspaceId }, body: { role } }) {
        const grant = { workspaceId: placeOf(workspaceId), role }
        const subject = await idOf(parts, acting, id)
        const { operator, isAccessRemoved } = await setRole(parts, subject, grant, acting)
        return {
          ...operatorToApi(visibleTo(acting, operator) ?? operator),
          credentials_removed: isAccessRemoved,
        }
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
        await removeRole(parts, await idOf(parts, acting, id), placeOf(workspaceId), acting)
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
        const all = await listSessionsOf(parts, await idOf(parts, operator, id), operator)
        return listingOf(
          all,
          page,
          one => sessionToApi(one, operator.credential.id),
          ({ id }) => id,
        )
      },
    }),
    adminRoute({
      ...end,
      path: '/operators/:id/sessions',
      operationId: 'endOperatorSessions',
      summary: "End an operator's sessions.",
      params: OperatorParams,
      async handle({ operator, params: { id } }) {
        await endSessions(parts, await idOf(parts, operator, id), undefined, operator)
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
        await endSessions(parts, await idOf(parts, operator, id), sessionId, operator)
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
        listingOf(
          await listTokensOf(parts, await idOf(parts, operator, id), operator),
          page,
          tokenToApi,
          ({ id }) => id,
        ),
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
        return newTokenToApi(
          await createToken(parts, await idOf(parts, operator, id), readNewToken(body), operator),
        )
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
        await revokeTokenOf(parts, await idOf(parts, operator, id), tokenId, operator)
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

/** @throws AppError forbidden, and what granting throws */
function requireMayHandLinks(acting: OperatorPrincipal, grant: RoleGrant): void {
  requireMayGrant(acting, grant)
  throw new AppError(
    'forbidden',
    'only operators of all workspaces get links to pass on; leave send_mail out, and the link is mailed',
  )
}

/**
 * @param named id or email address
 * @throws AppError not_found, worded alike for an invisible and for an unknown address
 */
async function idOf(
  { database }: OperatorRouteParts,
  acting: OperatorPrincipal,
  named: string,
): Promise<string> {
  if (isUuid(named)) return named
  const operator = await findOperator(database.reader, { email: named })
  if (!operator || !visibleTo(acting, operator)) throw new AppError('not_found', `no operator ${named}`)
  return operator.id
}

async function invitedToApi({ database }: OperatorRouteParts, invitation: Invitation) {
  const mails = await findInvitationMails(database.reader, [invitation.id])
  return invitationToApi(invitation, mails.get(invitation.id))
}

/** @param link undefined if it was mailed */
function withLink(
  { publicUrl }: OperatorRouteParts,
  operator: Static<typeof OperatorSchema>,
  link?: string,
): Static<typeof LinkedOperator> {
  return {
    ...operator,
    link: link === undefined ? null : signInUrl(publicUrl, link),
    link_token: link ?? null,
  }
}
