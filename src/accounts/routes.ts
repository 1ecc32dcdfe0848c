/** Routes about the service and the calling key: health, key introspection. */
import Type from 'typebox'
import { PERMISSIONS } from '../http/principal.js'
import { openRoute, route, type Route } from '../http/route.js'

const KeyPermissions = Type.Object(
  {
    name: Type.String(),
    type: Type.Enum(['full_access', 'sending_access', 'custom']),
    permissions: Type.Array(Type.Enum(['*', ...PERMISSIONS]), { description: '`*` stands for all.' }),
    rate_limit: Type.Integer({ description: 'Requests per minute; 0 = unlimited.' }),
    is_sandbox: Type.Boolean(),
  },
  { title: 'KeyPermissions' },
)

export function accountRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api-key/permissions',
      access: 'key',
      operationId: 'getKeyPermissions',
      chapter: 'Workspace',
      summary: 'What the calling key is and may do.',
      response: KeyPermissions,
      handle: async ({ principal }) => ({
        name: principal.keyName,
        type: principal.keyType,
        permissions: [...principal.permissions],
        rate_limit: principal.rateLimit,
        is_sandbox: principal.isSandbox,
      }),
    }),
  ]
}

const Health = Type.Object(
  {
    status: Type.String({ description: '`ok`; anything else comes with status 500.' }),
    version: Type.String(),
  },
  { title: 'Health' },
)

/** Health at `/api/v1/health` and, for monitors that want no prefix, at `/health`. */
export function healthRoutes(version: string, checkDatabase: () => Promise<void>): Route[] {
  return [false, true].map(isAtRoot =>
    openRoute({
      method: 'GET',
      path: '/health',
      isAtRoot,
      access: 'public',
      operationId: 'getHealth',
      chapter: 'Health',
      summary: 'Whether the service works; needs no key.',
      response: Health,
      handle: async () => {
        await checkDatabase()
        return { status: 'ok', version }
      },
    }),
  )
}
