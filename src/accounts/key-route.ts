import Type from 'typebox'
import { KEY_TYPES, PERMISSIONS } from '../http/principal.js'
import { route, type Route } from '../http/route.js'

const KeyPermissions = Type.Object(
  {
    name: Type.String(),
    type: Type.Enum([...KEY_TYPES]),
    permissions: Type.Array(Type.Enum(['*', ...PERMISSIONS]), { description: '`*` means all permissions.' }),
    rate_limit: Type.Integer({ description: 'Requests per minute; 0 = unlimited.' }),
    is_sandbox: Type.Boolean(),
  },
  { title: 'KeyPermissions' },
)

export function keyRoute(): Route {
  return route({
    method: 'GET',
    path: '/api-key/permissions',
    access: 'key',
    operationId: 'getKeyPermissions',
    chapter: 'Workspace',
    summary: 'Get the permissions of the API key.',
    response: KeyPermissions,
    handle: async ({ principal }) => ({
      name: principal.keyName,
      type: principal.keyType,
      permissions: [...principal.permissions],
      rate_limit: principal.rateLimit,
      is_sandbox: principal.isSandbox,
    }),
  })
}
