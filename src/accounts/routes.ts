/** Routes about the service and the calling key: health, key introspection. */
import Type from 'typebox'
import type { CheckHealth } from '../db/health.js'
import { PERMISSIONS } from '../http/principal.js'
import { openRoute, Reply, route, type Route } from '../http/route.js'

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
    status: Type.Enum(['ok', 'degraded', 'failing'], {
      description:
        '`degraded`: new mail is refused while what was accepted is still delivered; `failing`: nothing can be stored. Both come with status 503.',
    }),
    version: Type.String(),
    reason: Type.Optional(Type.String({ description: 'Of what is not `ok`, for the operator.' })),
  },
  { title: 'Health' },
)

/** Health at `/api/v1/health` and, for monitors that want no prefix, at `/health`. */
export function healthRoutes(version: string, check: CheckHealth): Route[] {
  return [false, true].map(isAtRoot =>
    openRoute({
      method: 'GET',
      path: '/health',
      isAtRoot,
      access: 'public',
      operationId: 'getHealth',
      chapter: 'Health',
      summary: 'Whether the service works; needs no key.',
      description:
        'Tries to write to the database, at most once a second. 200 means that new mail is taken; what can be amiss is a full disk, or a database that is gone, locked or damaged.',
      response: Health,
      otherAnswers: { 503: Health },
      handle: async () => {
        const fault = await check()
        if (!fault) return { status: 'ok' as const, version }
        return new Reply(503, {
          status: fault.isFatal ? ('failing' as const) : ('degraded' as const),
          version,
          reason: fault.reason,
        })
      },
    }),
  )
}
