/** Operators, sessions and tokens as the admin API answers and reads them. */
import Type, { type Static, type TSchemaOptions } from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isoTime, isoTimeOrNull, readMoment } from '../../core/moments.js'
import {
  Address,
  Id,
  IdOrNull,
  Moment,
  MomentOrNull,
  orNull,
  TextOrNull,
} from '../../http/answer/answer-fields.js'
import { ALL_WORKSPACES, ROLES } from '../../http/roles.js'
import { SESSION_LIFETIME } from './access.js'
import {
  ACCOUNT_MAIL_KINDS,
  ACCOUNT_MAIL_STATES,
  type AccountMail,
  type AccountMailState,
} from './account-mail-store.js'
import type { CreatedToken, NewToken } from './credentials.js'
import type { Invitation } from './invitation-store.js'
import type { HeldRole, Operator } from './operator-store.js'
import type { OperatorToken, Session, SignInMethod } from './session-store.js'

export const RoleName = (remarks: TSchemaOptions = {}) => Type.Enum([...ROLES], remarks)

export const RolesSchema = Type.Array(
  Type.Object(
    {
      workspace_id: IdOrNull({ description: 'Null: all workspaces.' }),
      role: RoleName(),
      from_groups: Type.Boolean({
        description: "Given by the person's groups at the OpenID provider, and updated at each sign-in.",
      }),
    },
    { title: 'RoleGrant' },
  ),
  { description: 'A role in a workspace adds to one for all workspaces; at most one in each.' },
)

export function rolesToApi(grants: readonly HeldRole[]): Static<typeof RolesSchema> {
  return grants.map(({ workspaceId, role, givenBy }) => ({
    workspace_id: workspaceId === ALL_WORKSPACES ? null : workspaceId,
    role,
    from_groups: givenBy === 'oidc',
  }))
}

export const OperatorSchema = Type.Object(
  {
    id: Id(),
    email: Address(),
    name: Type.String(),
    roles: RolesSchema,
    has_password: Type.Boolean(),
    has_totp: Type.Boolean({ description: 'Whether the password must be followed by a one-time code.' }),
    created_at: Moment(),
    last_sign_in_at: MomentOrNull(),
    address_proved: Type.Boolean({
      description:
        'Whether a link that was mailed to the address was opened, or an OpenID provider vouched for it. Until then, a wider role or an ' +
        'OpenID account first removes everything that was set up in the account.',
    }),
    invitation: orNull(
      Type.Object(
        {
          expires_at: Moment(),
          mail: orNull(Type.Enum([...ACCOUNT_MAIL_STATES]), { description: 'State of the latest mail.' }),
        },
        { title: 'PendingInvitation' },
      ),
      { description: 'The role was offered and is not accepted yet; there is nothing but this record.' },
    ),
  },
  { title: 'Operator' },
)

export const CredentialsRemoved = Type.Boolean({
  description:
    'Whether password, codes, passkeys, tokens, sessions and handed links of the account were removed, because its address had not been proved.',
})

export function operatorToApi(operator: Operator): Static<typeof OperatorSchema> {
  return {
    id: operator.id,
    email: operator.email,
    name: operator.name,
    roles: rolesToApi(operator.grants),
    has_password: operator.passwordHash !== null,
    has_totp: operator.totpSecret !== null,
    created_at: isoTime(operator.createdAt),
    last_sign_in_at: isoTimeOrNull(operator.lastSignInAt),
    address_proved: operator.provedAt !== null,
    invitation: null,
  }
}

/** Shows the same whether the address has an account or not. */
export function invitationToApi(
  { id, email, name, grant, createdAt, expiresAt }: Invitation,
  mail: AccountMailState | undefined,
): Static<typeof OperatorSchema> {
  return {
    id,
    email,
    name,
    roles: rolesToApi([grant]),
    has_password: false,
    has_totp: false,
    created_at: isoTime(createdAt),
    last_sign_in_at: null,
    address_proved: false,
    invitation: { expires_at: isoTime(expiresAt), mail: mail ?? null },
  }
}

export const AccountMailSchema = Type.Object(
  {
    id: Id(),
    kind: Type.Enum([...ACCOUNT_MAIL_KINDS], {
      description:
        '`join`: an invitation to a workspace. `lost`: asked for by the person, without a sign-in.',
    }),
    to: Address(),
    state: Type.Enum([...ACCOUNT_MAIL_STATES]),
    reason: TextOrNull({ description: 'How the last attempt ended.' }),
    attempts: Type.Integer(),
    created_at: Moment(),
    next_attempt_at: MomentOrNull(),
    finished_at: MomentOrNull(),
  },
  { title: 'AccountMail' },
)

export function accountMailToApi(mail: AccountMail): Static<typeof AccountMailSchema> {
  return {
    id: mail.id,
    kind: mail.kind,
    to: mail.recipient,
    state: mail.state,
    reason: mail.reason,
    attempts: mail.attempts,
    created_at: isoTime(mail.createdAt),
    next_attempt_at: isoTimeOrNull(mail.nextAttemptAt),
    finished_at: isoTimeOrNull(mail.finishedAt),
  }
}

const METHODS: readonly SignInMethod[] = ['password', 'passkey', 'oidc', 'link']

export const SessionSchema = Type.Object(
  {
    id: Id(),
    method: Type.Enum([...METHODS], { description: 'How it was signed in.' }),
    ip: Type.String({ description: 'IP address that signed in.' }),
    user_agent: Type.String(),
    created_at: Moment(),
    last_seen_at: Moment({ description: 'Accurate to a minute.' }),
    confirmed_at: Moment({ description: 'When the operator last proved who they are.' }),
    expires_at: Moment({ description: 'If it is not used; 7 days after sign-in at the latest.' }),
    is_current: Type.Boolean({ description: 'The session of this request.' }),
  },
  { title: 'Session' },
)

export function sessionToApi(session: Session, currentId: string): Static<typeof SessionSchema> {
  const { seenAt, createdAt } = session
  return {
    id: session.id,
    method: session.method,
    ip: session.peer,
    user_agent: session.userAgent,
    created_at: isoTime(createdAt),
    last_seen_at: isoTime(seenAt),
    confirmed_at: isoTime(session.confirmedAt),
    expires_at: isoTime(Math.min(seenAt + SESSION_LIFETIME.idleMs, createdAt + SESSION_LIFETIME.maxMs)),
    is_current: session.id === currentId,
  }
}

export const TokenSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    hint: Type.String({ description: 'Its last four characters.' }),
    role: orNull(RoleName(), {
      description: 'Limits the token to this role; null: all that its operator may do.',
    }),
    created_at: Moment(),
    last_used_at: MomentOrNull({ description: 'Accurate to a minute.' }),
    expires_at: MomentOrNull(),
  },
  { title: 'OperatorToken' },
)

export const NewTokenSchema = Type.Object(
  {
    ...TokenSchema.properties,
    token: Type.String({ description: '`pa_...`; shown only here.' }),
  },
  { title: 'NewOperatorToken' },
)

export function tokenToApi(token: OperatorToken): Static<typeof TokenSchema> {
  return {
    id: token.id,
    name: token.name,
    hint: token.hint,
    role: token.role,
    created_at: isoTime(token.createdAt),
    last_used_at: isoTimeOrNull(token.lastUsedAt),
    expires_at: isoTimeOrNull(token.expiresAt),
  }
}

export function newTokenToApi({ row, token }: CreatedToken): Static<typeof NewTokenSchema> {
  return { ...tokenToApi(row), token }
}

/** Body of the routes that create tokens. */
export const TokenBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100, description: 'What it is for.' }),
    role: Type.Optional(
      RoleName({ description: 'Limits it to this role; default: all that its operator may do.' }),
    ),
    expires_at: Type.Optional(Moment({ maxLength: 64, description: 'Default: never.' })),
  },
  { additionalProperties: false },
)

/** @throws AppError validation_error */
export function readNewToken({ name, role, expires_at }: Static<typeof TokenBody>): NewToken {
  const expiresAt = expires_at === undefined ? undefined : readMoment(expires_at)
  if (expires_at !== undefined && expiresAt === undefined)
    throw new AppError('validation_error', `expires_at ${expires_at} is not an ISO 8601 time`, {
      path: 'expires_at',
    })
  return { name, ...given({ role, expiresAt }) }
}
