/** The calling operator's own account, as a resource of the admin API. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { Moment } from '../../http/answer/answer-fields.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import { ROLES, ALL_WORKSPACES } from '../../http/roles.js'
import { adminRoute } from '../../http/admin-route.js'
import type { Route } from '../../http/route.js'
import { resource } from '../../resource/resource.js'
import type { SignInParts } from './sign-in.js'

export interface OperatorResourceParts extends SignInParts {
  readonly publicUrl: string
}

export const operators = resource({
  chapters: { 'Sign-in': 'Sessions and your own account.' },
  open: (_parts: OperatorResourceParts) => ({ routes: [meRoute()] }),
})

export const RolesSchema = Type.Array(
  Type.Object({
    workspace_id: Type.Union([Type.String(), Type.Null()], { description: 'Null: all workspaces.' }),
    role: Type.Enum([...ROLES]),
  }),
  { description: 'A role in a workspace adds to one for all workspaces.' },
)

export function rolesToApi(grants: OperatorPrincipal['grants']): Static<typeof RolesSchema> {
  return grants.map(({ workspaceId, role }) => ({
    workspace_id: workspaceId === ALL_WORKSPACES ? null : workspaceId,
    role,
  }))
}

const MeSchema = Type.Object(
  {
    id: Type.String(),
    email: Type.String(),
    name: Type.String(),
    roles: RolesSchema,
    limited_to: Type.Union([Type.Enum([...ROLES]), Type.Null()], {
      description: 'Role that limits the token of this request.',
    }),
    signed_in_with: Type.Enum(['session', 'token', 'shell']),
    confirmed_at: Type.Union([Moment(), Type.Null()], {
      description: 'Last sign-in of the session; sensitive actions require one within 15 minutes.',
    }),
  },
  { title: 'Me' },
)

function meRoute(): Route {
  return adminRoute({
    method: 'GET',
    path: '/me',
    access: { permission: 'any', scope: 'appliance' },
    operationId: 'getMe',
    chapter: 'Sign-in',
    summary: 'Get your own account.',
    response: MeSchema,
    handle: async ({ operator }) => ({
      id: operator.id,
      email: operator.email,
      name: operator.name,
      roles: rolesToApi(operator.grants),
      limited_to: operator.limitedTo ?? null,
      signed_in_with: operator.credential.kind,
      confirmed_at: operator.credential.kind === 'session' ? isoTime(operator.confirmedAt) : null,
    }),
  })
}
