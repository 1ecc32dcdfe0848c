/** `GET /health`, for monitors: whether the service works. */
import Type from 'typebox'
import type { CheckHealth } from '../db/health.js'
import { openRoute, Reply, type Route } from '../http/route.js'

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
