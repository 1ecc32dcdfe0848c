/**
 * Routes of the calling operator's own account.
 *
 * Credentials are changed in a session with a recent sign-in, never with a token, so that a leaked token cannot become a way to sign in.
 */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { readOptionalName } from '../../core/names.js'
import { isoTimeOrNull } from '../../core/moments.js'
import { snapshot } from '../../db/snapshot.js'
import { Address, DONE, Done, MomentOrNull, orNull } from '../../http/answer/answer-fields.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import type { AdminAccess, Route } from '../../http/route.js'
import {
  CredentialsRemoved,
  NewTokenSchema,
  newTokenToApi,
  readNewToken,
  RoleName,
  RolesSchema,
  rolesToApi,
  SessionSchema,
  sessionToApi,
  TokenBody,
  TokenSchema,
  tokenToApi,
} from './answers.js'
import {
  changePassword,
  createToken,
  disableTotp,
  enableTotp,
  endOwnSessions,
  proposeTotp,
  renewRecoveryCodes,
  revokeToken,
  type CredentialParts,
} from './credentials.js'
import { acceptInvitation } from './invitations.js'
import { countRecoveryCodes, findOperator, updateOperator } from './operator-store.js'
import { hasIdentity } from './identity-store.js'
import { PASSWORD_LENGTH } from './password.js'
import { listSessions, listTokens } from './session-store.js'

export interface MeRouteParts extends CredentialParts {
  /** Names the account in authenticator apps. */
  readonly hostname: string
  /** Issuer of the OpenID provider; undefined without one. */
  readonly oidcIssuer: string | undefined
}

const OWN: AdminAccess = { permission: 'any', scope: 'appliance' }
const OWN_SENSITIVE: AdminAccess = { ...OWN, isSensitive: true }
const common = { chapter: 'Your account' }

const MeSchema = Type.Object(
  {
    id: Type.String(),
    email: orNull(Address(), { description: 'Null for a user of the shell.' }),
    name: Type.String(),
    roles: RolesSchema,
    has_password: Type.Boolean(),
    has_totp: Type.Boolean(),
    has_oidc: Type.Boolean({
      description: 'Whether you can sign in, and confirm who you are, with OpenID Connect.',
    }),
    recovery_codes_left: Type.Integer(),
    limited_to: orNull(RoleName(), { description: 'Role that limits the token of this request.' }),
    signed_in_with: Type.Enum(['session', 'token', 'shell']),
    confirmed_at: MomentOrNull({
      description: 'Last sign-in of the session; sensitive actions require one within 15 minutes.',
    }),
  },
  { title: 'Me' },
)

const RecoveryCodes = Type.Object(
  {
    recovery_codes: Type.Array(Type.String(), {
      description: 'Each replaces one code of the app, once. Shown only here.',
    }),
  },
  { title: 'RecoveryCodes' },
)

const IdParams = Type.Object({ id: Type.String({ maxLength: 64 }) })

export function meRoutes(parts: MeRouteParts): Route[] {
  return [
    meRoute(parts),
    renameRoute(parts),
    passwordRoute(parts),
    ...totpRoutes(parts),
    ...sessionsRoutes(parts),
    ...tokenRoutes(parts),
    invitationRoute(parts),
  ]
}

function meRoute(parts: MeRouteParts): Route {
  return adminRoute({
    ...common,
    method: 'GET',
    path: '/me',
    access: OWN,
    operationId: 'getMe',
    summary: 'Get your own account.',
    response: MeSchema,
    handle: ({ operator }) => meToApi(parts, operator),
  })
}

function renameRoute(parts: MeRouteParts): Route {
  return adminRoute({
    ...common,
    method: 'PATCH',
    path: '/me',
    access: OWN,
    operationId: 'updateMe',
    summary: 'Change your name.',
    body: Type.Object({ name: Type.String({ maxLength: 200 }) }, { additionalProperties: false }),
    response: MeSchema,
    async handle({ operator, body }) {
      requireSession(operator)
      const name = readOptionalName(body.name)
      await parts.database.write(tx => updateOperator(tx.db, operator.id, { name }))
      return meToApi(parts, { ...operator, name })
    },
  })
}

function passwordRoute(parts: MeRouteParts): Route {
  const { minLength, maxLength } = PASSWORD_LENGTH
  return adminRoute({
    ...common,
    method: 'PUT',
    path: '/me/password',
    access: OWN_SENSITIVE,
    operationId: 'setPassword',
    summary: 'Set your password.',
    description: 'Ends all your other sessions.',
    body: Type.Object(
      {
        password: Type.String({ maxLength: 1_000, description: `${minLength} to ${maxLength} characters.` }),
      },
      { additionalProperties: false },
    ),
    example: { password: 'correct horse battery' },
    response: Done,
    async handle({ operator, body }) {
      requireSession(operator)
      await changePassword(parts, operator, body.password)
      return DONE
    },
  })
}

function totpRoutes(parts: MeRouteParts): Route[] {
  return [
    adminRoute({
      ...common,
      method: 'POST',
      path: '/me/totp',
      access: OWN_SENSITIVE,
      operationId: 'proposeTotp',
      summary: 'Propose an authenticator app secret.',
      description: 'Nothing is stored until `PUT /me/totp`.',
      response: Type.Object(
        {
          secret: Type.String({ description: 'Base32.' }),
          url: Type.String({ description: '`otpauth://...`, for a QR code.' }),
        },
        { title: 'TotpProposal' },
      ),
      handle: async ({ operator }) => {
        requireSession(operator)
        return proposeTotp(parts.random, parts.hostname, operator.email)
      },
    }),
    adminRoute({
      ...common,
      method: 'PUT',
      path: '/me/totp',
      access: OWN_SENSITIVE,
      operationId: 'enableTotp',
      summary: 'Require codes of an app.',
      body: Type.Object(
        {
          secret: Type.String({ maxLength: 64, description: 'From `POST /me/totp`.' }),
          code: Type.String({ maxLength: 16, description: 'The code that the app shows.' }),
        },
        { additionalProperties: false },
      ),
      response: RecoveryCodes,
      async handle({ operator, body: { secret, code } }) {
        requireSession(operator)
        return { recovery_codes: await enableTotp(parts, operator.id, secret, code, operator.actor) }
      },
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/me/totp',
      access: OWN_SENSITIVE,
      operationId: 'disableTotp',
      summary: 'Sign in without codes.',
      response: Done,
      async handle({ operator }) {
        requireSession(operator)
        await disableTotp(parts, operator.id, operator.actor)
        return DONE
      },
    }),
    adminRoute({
      ...common,
      method: 'POST',
      path: '/me/recovery-codes',
      access: OWN_SENSITIVE,
      operationId: 'renewRecoveryCodes',
      summary: 'Replace your recovery codes.',
      response: RecoveryCodes,
      errors: ['conflict'],
      async handle({ operator }) {
        requireSession(operator)
        return { recovery_codes: await renewRecoveryCodes(parts, operator.id, operator.actor) }
      },
    }),
  ]
}

function sessionsRoutes(parts: MeRouteParts): Route[] {
  const { database } = parts
  return [
    adminListRoute({
      ...common,
      method: 'GET',
      path: '/me/sessions',
      access: OWN,
      operationId: 'listMySessions',
      summary: 'List your sessions.',
      query: PageQuery,
      item: SessionSchema,
      async handle({ operator }, page) {
        requireAccount(operator)
        const all = await listSessions(database.reader, operator.id)
        return listingOf(
          all,
          page,
          one => sessionToApi(one, operator.credential.id),
          ({ id }) => id,
        )
      },
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/me/sessions',
      access: OWN,
      operationId: 'endMyOtherSessions',
      summary: 'End your other sessions.',
      response: Done,
      async handle({ operator }) {
        requireSession(operator)
        await endOwnSessions(parts, operator)
        return DONE
      },
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/me/sessions/:id',
      access: OWN,
      operationId: 'endMySession',
      summary: 'End one of your sessions.',
      params: IdParams,
      response: Done,
      async handle({ operator, params: { id } }) {
        requireSession(operator)
        await endOwnSessions(parts, operator, id)
        return DONE
      },
    }),
  ]
}

function tokenRoutes(parts: MeRouteParts): Route[] {
  return [
    adminListRoute({
      ...common,
      method: 'GET',
      path: '/me/tokens',
      access: OWN,
      operationId: 'listMyTokens',
      summary: 'List your tokens.',
      query: PageQuery,
      item: TokenSchema,
      async handle({ operator }, page) {
        requireAccount(operator)
        return listingOf(
          await listTokens(parts.database.reader, operator.id),
          page,
          tokenToApi,
          ({ id }) => id,
        )
      },
    }),
    adminRoute({
      ...common,
      method: 'POST',
      path: '/me/tokens',
      access: OWN_SENSITIVE,
      operationId: 'createMyToken',
      summary: 'Create a token.',
      description:
        'A token that creates another one gives it neither a wider role nor a longer life than its own.',
      body: TokenBody,
      status: 201,
      response: NewTokenSchema,
      errors: ['limit_reached'],
      async handle({ operator, body }) {
        requireAccount(operator)
        return newTokenToApi(await createToken(parts, operator.id, readNewToken(body), operator))
      },
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/me/tokens/:id',
      access: OWN,
      operationId: 'revokeMyToken',
      summary: 'Revoke a token.',
      params: IdParams,
      response: Done,
      async handle({ operator, params: { id } }) {
        const { credential } = operator
        // A token may revoke itself, but not lock its operator's other scripts out.
        if (credential.kind !== 'token' || credential.id !== id) requireSession(operator)
        await revokeToken(parts, operator, id)
        return DONE
      },
    }),
  ]
}

function invitationRoute(parts: MeRouteParts): Route {
  return adminRoute({
    ...common,
    method: 'POST',
    path: '/me/invitations',
    access: OWN,
    operationId: 'acceptInvitation',
    summary: 'Accept an invitation to a workspace.',
    description:
      'If the address of the account was not proved before, it is now, and everything else that was set up in the account is removed.',
    body: Type.Object(
      { token: Type.String({ minLength: 20, maxLength: 100, description: 'The last part of the link.' }) },
      { additionalProperties: false },
    ),
    response: Type.Object({ credentials_removed: CredentialsRemoved }, { title: 'InvitationAccepted' }),
    errors: ['not_found', 'conflict'],
    async handle({ operator, body: { token } }) {
      requireSession(operator)
      const { isAccessRemoved } = await acceptInvitation(parts, operator, token)
      return { credentials_removed: isAccessRemoved }
    },
  })
}

async function meToApi(
  { database, oidcIssuer }: Pick<MeRouteParts, 'database' | 'oidcIssuer'>,
  operator: OperatorPrincipal,
) {
  const { credential } = operator
  const { account, hasOidc, codesLeft } = await snapshot(database.reader, async db => ({
    account: await findOperator(db, { id: operator.id }),
    hasOidc: oidcIssuer !== undefined && (await hasIdentity(db, operator.id, oidcIssuer)),
    codesLeft: await countRecoveryCodes(db, operator.id),
  }))
  return {
    id: operator.id,
    email: operator.email === '' ? null : operator.email,
    name: operator.name,
    roles: rolesToApi(operator.grants),
    has_password: typeof account?.passwordHash === 'string',
    has_totp: typeof account?.totpSecret === 'string',
    has_oidc: hasOidc,
    recovery_codes_left: codesLeft,
    limited_to: operator.limitedTo ?? null,
    signed_in_with: credential.kind,
    confirmed_at: isoTimeOrNull(credential.kind === 'session' ? operator.confirmedAt : null),
  }
}

/** @throws AppError conflict */
function requireAccount({ credential }: OperatorPrincipal): void {
  if (credential.kind === 'shell')
    throw new AppError('conflict', 'a user of the shell has no account; name the operator')
}

/** @throws AppError conflict, forbidden */
export function requireSession(operator: OperatorPrincipal): void {
  requireAccount(operator)
  if (operator.credential.kind !== 'session')
    throw new AppError('forbidden', 'your own account can be changed in a session only, not with a token')
}
