/** `GET /health`, for monitors: whether the service works. */
import Type from 'typebox'
import { given } from '../core/given.js'
import type { CheckHealth } from '../db/health.js'
import { openRoute, Reply, type Route } from '../http/route.js'

const Health = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded', 'failing'], {
      description:
        '`degraded`: new mail is refused while what was accepted is still delivered; `failing`: nothing can be stored. Both come with status 503.',
    }),
    version: Type.String(),
    set_aside_events: Type.Optional(
      Type.Integer({
        description:
          'Events of which something that should have followed could not be done; 0 where all is well. `postroad event list` names them.',
      }),
    ),
    disabled_webhooks: Type.Optional(
      Type.Integer({
        description:
          'Webhooks that were disabled in the last seven days, since their receiver failed for days or was gone; the activity log names them.',
      }),
    ),
    reason: Type.Optional(Type.String({ description: 'Of what is not `ok`, for the operator.' })),
  },
  { title: 'Health' },
)

export interface HealthRouteParts {
  readonly version: string
  readonly check: CheckHealth
  /** Undefined: not known. */
  readonly countSetAside: () => Promise<number | undefined>
  readonly countDisabledWebhooks: () => Promise<number | undefined>
}

/** Health at `/api/v1/health` and, for monitors that want no prefix, at `/health`. */
export function healthRoutes({ version, check, ...counts }: HealthRouteParts): Route[] {
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
        if (!fault) {
          const noted = given({
            set_aside_events: await counts.countSetAside(),
            disabled_webhooks: await counts.countDisabledWebhooks(),
          })
          return { status: 'ok' as const, version, ...noted }
        }
        return new Reply(503, {
          status: fault.isFatal ? ('failing' as const) : ('degraded' as const),
          version,
          reason: fault.reason,
        })
      },
    }),
  )
}
