/** `GET /health`, for monitors: whether the service works, and why not. */
import Type, { type Static } from 'typebox'
import { given } from '../core/given.js'
import { openRoute, Reply, type Route } from '../http/route.js'
import { HEALTH_REASON_CODES, weightOf, type Weight } from './health-reasons.js'
import type { JudgeHealth } from './judge-health.js'

const Health = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded', 'failing'], {
      description:
        '`degraded`: somebody should look, `reasons` say at what; `failing`: nothing can be stored. `ready` says whether new mail is taken.',
    }),
    ready: Type.Boolean({
      description: 'Whether new mail is taken: the status is 200 where it is, and 503 where it is not.',
    }),
    version: Type.String(),
    reasons: Type.Array(
      Type.Object({
        code: Type.Enum(HEALTH_REASON_CODES, { description: 'Stays what it is, for programs.' }),
        text: Type.String({ description: 'For the operator.' }),
      }),
      {
        description:
          'What is to be looked at, the worst first; empty where nothing is. `webhook_disabled` alone leaves the status `ok`.',
      },
    ),
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
    reason: Type.Optional(
      Type.String({ description: 'The text of the first reason of what is not `ok`, for the operator.' }),
    ),
  },
  { title: 'Health' },
)

export interface HealthRouteParts {
  readonly version: string
  readonly judge: JudgeHealth
}

/** Health at `/api/v1/health` and, for monitors that want no prefix, at `/health`. */
export function healthRoutes({ version, judge }: HealthRouteParts): Route[] {
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
        'Tries to write to the database, at most once a second. 200 means that new mail is taken; what can be amiss is a full disk, or a database that is gone, locked or damaged. `reasons` tell as well of what is amiss while mail is taken.',
      response: Health,
      otherAnswers: { 503: Health },
      handle: async () => {
        const { reasons, setAside, disabledWebhooks } = await judge()
        const weights = new Set<Weight>(reasons.map(weightOf))
        const ready = !weights.has('failing') && !weights.has('refusing')
        const answer: Static<typeof Health> = {
          status: statusOf(weights),
          ready,
          version,
          reasons: reasons.map(({ code, text }) => ({ code, text })),
          ...given({
            set_aside_events: setAside,
            disabled_webhooks: disabledWebhooks,
            reason: reasons.find(one => weightOf(one) !== 'notice')?.text,
          }),
        }
        return ready ? answer : new Reply(503, answer)
      },
    }),
  )
}

function statusOf(weights: ReadonlySet<Weight>): 'ok' | 'degraded' | 'failing' {
  if (weights.has('failing')) return 'failing'
  return weights.has('refusing') || weights.has('degraded') ? 'degraded' : 'ok'
}
