/** Routes about the service and the calling key: health, key introspection. */
import Type from 'typebox'
import type { CheckHealth } from '../db/health.js'
import { openRoute, Reply, route, type Route } from '../http/route.js'

const KeyPermissions = Type.Object({
  name: Type.String(),
  type: Type.String({ description: 'full_access, sending_access or custom.' }),
  permissions: Type.Array(Type.String(), { description: '`*` stands for all.' }),
  rate_limit: Type.Integer({ description: 'Requests per minute; 0 = unlimited.' }),
  is_sandbox: Type.Boolean(),
})

export function accountRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api-key/permissions',
      access: 'key',
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

const Health = Type.Object({
  status: Type.String({
    description:
      '`ok`. With status 503: `degraded` where new mail is refused while what was accepted is still delivered, `failing` where nothing can be stored.',
  }),
  version: Type.String(),
  reason: Type.Optional(Type.String({ description: 'Of what is not `ok`, for the operator.' })),
})

/** Health at `/api/v1/health` and, for monitors that want no prefix, at `/health`. */
export function healthRoutes(version: string, check: CheckHealth): Route[] {
  return [false, true].map(isAtRoot =>
    openRoute({
      method: 'GET',
      path: '/health',
      isAtRoot,
      access: 'public',
      summary: 'Whether the service works; needs no key.',
      description:
        'Tries to write to the database, at most once a second. 200 means that new mail is taken; what can be amiss is a full disk, or a database that is gone, locked or damaged.',
      response: Health,
      otherStatuses: [503],
      handle: async () => {
        const fault = await check()
        if (!fault) return { status: 'ok', version }
        return new Reply(503, {
          status: fault.isFatal ? 'failing' : 'degraded',
          version,
          reason: fault.reason,
        })
      },
    }),
  )
}
