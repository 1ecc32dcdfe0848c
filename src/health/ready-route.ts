/** `GET /health/ready` for load balancers: whether this node should get new connections. Reads no database of several nodes. */
import Type, { type Static } from 'typebox'
import type { NodeStanding } from '../cluster/membership.js'
import { openRoute, Reply, type Route } from '../http/route.js'
import { weightOf } from './health-reasons.js'
import type { JudgeHealth } from './judge-health.js'

const Ready = Type.Object(
  {
    ready: Type.Boolean({
      description:
        'Whether this node should get new connections. If not, the status code is 503 instead of 200.',
    }),
    reason: Type.Optional(
      Type.Enum(['starting', 'draining', 'stopping', 'database_unreachable'], {
        description:
          'Why not. `database_unreachable`: the database has not confirmed this node for 9 seconds; with SQLite, a write failed.',
      }),
    ),
  },
  { title: 'Readiness' },
)

type Readiness = Static<typeof Ready>

export interface ReadyRouteParts {
  readonly judge: JudgeHealth
  /** Undefined if no server runs. */
  readonly node: () => NodeStanding | undefined
}

/** At `/api/v1/health/ready` and, without the prefix, at `/health/ready`. */
export function readyRoutes(parts: ReadyRouteParts): Route[] {
  return [false, true].map(isAtRoot =>
    openRoute({
      method: 'GET',
      path: '/health/ready',
      isAtRoot,
      access: 'public',
      operationId: 'getReadiness',
      chapter: 'Health',
      summary: 'Check whether this node is ready.',
      description:
        'For load balancers; needs no key. 503 while this node starts, is drained, stops, or cannot reach the database. A full disk does not ' +
        'count: links in mail still work. `GET /health` says how the service is.',
      response: Ready,
      otherAnswers: { 503: Ready },
      handle: async () => {
        const readiness = await readinessOf(parts)
        return readiness.ready ? readiness : new Reply(503, readiness)
      },
    }),
  )
}

async function readinessOf({ node, judge }: ReadyRouteParts): Promise<Readiness> {
  const { state, isTrusted, isShared } = node() ?? { state: 'starting', isTrusted: true, isShared: true }
  if (state !== 'active') return { ready: false, reason: state }
  const isReachable = isShared
    ? isTrusted
    : (await judge()).reasons.every(reason => weightOf(reason) !== 'failing')
  return isReachable ? { ready: true } : { ready: false, reason: 'database_unreachable' }
}
