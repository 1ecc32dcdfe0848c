/**
 * `GET /health` for monitors: whether the service works, and if not, why.
 *
 * Without a credential it reports only whether new mail is accepted. Version, node and reasons require an operator, a direct connection from
 * this machine, or access to `/metrics`.
 */
import Type, { type Static } from 'typebox'
import type { NodeStanding } from '../cluster/membership.js'
import { LEASES } from '../cluster/leases.js'
import { NODE_STATES, ROLES } from '../cluster/roles.js'
import { given } from '../core/given.js'
import type { ClientRequest } from '../http/network-access.js'
import { openRoute, Reply, type Route } from '../http/route.js'
import { HEALTH_REASON_CODES, weightOf, type Weight } from './health-reasons.js'
import type { JudgeHealth } from './judge-health.js'

const FOR_KNOWN =
  'Needs an operator, a direct connection from this machine, or access to `/metrics` (`metrics.networks`, `metrics.token`).'

const Health = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded', 'failing'], {
      description:
        '`degraded`: needs attention, see `reasons`; `failing`: nothing can be stored. `ready` says whether new mail is accepted. Without ' +
        'details only `ok` or, while no new mail is accepted, `failing`.',
    }),
    ready: Type.Boolean({
      description: 'Whether new mail is accepted. If not, the status code is 503 instead of 200.',
    }),
    version: Type.Optional(Type.String({ description: `${FOR_KNOWN} So do all fields below.` })),
    node: Type.Optional(
      Type.Object(
        {
          name: Type.String({ description: '`hostname` of its configuration.' }),
          state: Type.Enum(['starting', ...NODE_STATES], {
            description: '`draining`: an operator drained it, so it takes no new work.',
          }),
          roles: Type.Array(Type.Enum([...ROLES]), { description: 'What it does.' }),
          leases: Type.Array(Type.Enum([...LEASES]), {
            description: 'Kinds of background work that it does for all nodes; with SQLite every kind.',
          }),
          shared: Type.Boolean({
            description: 'Whether other nodes may share the database; never with SQLite.',
          }),
          heartbeat_age_seconds: Type.Number({
            description: 'Time since the database last confirmed this node; 0 with SQLite.',
          }),
          consumer_lag_events: Type.Optional(
            Type.Integer({
              description:
                'Events that the slowest event consumer of this node has not processed; absent if it runs none.',
            }),
          ),
        },
        { description: 'The node that answers.' },
      ),
    ),
    captures_mail: Type.Optional(
      Type.Boolean({
        description: 'Whether this node keeps mail in its local inbox instead of sending it (`mta.capture`).',
      }),
    ),
    reasons: Type.Optional(
      Type.Array(
        Type.Object({
          code: Type.Enum(HEALTH_REASON_CODES, { description: 'Stable identifier.' }),
          text: Type.String({ description: 'Human-readable explanation.' }),
        }),
        {
          description:
            'Current problems, most severe first; empty if there are none. `webhook_disabled` and `feed_failing` alone leave the status `ok`.',
        },
      ),
    ),
    set_aside_events: Type.Optional(
      Type.Integer({
        description:
          'Events with effects that could not be applied; 0 if there are none. `postroad event list` lists them.',
      }),
    ),
    disabled_webhooks: Type.Optional(
      Type.Integer({
        description:
          'Webhooks disabled in the last seven days because their endpoint kept failing or was gone; the activity log names them.',
      }),
    ),
    reason: Type.Optional(
      Type.String({ description: 'Text of the most severe reason that affects the service.' }),
    ),
  },
  { title: 'Health' },
)

export interface HealthRouteParts {
  readonly version: string
  readonly judge: JudgeHealth
  /** `mta.capture`. */
  readonly isCaptured: boolean
  /** Undefined if no server runs. */
  readonly node: () => NodeStanding | undefined
  /** Whether a request without an operator gets the details. */
  readonly knowsMonitor: (request: ClientRequest) => boolean
}

/** Health at `/api/v1/health` and, without the prefix, at `/health`. */
export function healthRoutes({ version, judge, isCaptured, node, knowsMonitor }: HealthRouteParts): Route[] {
  return [false, true].map(isAtRoot =>
    openRoute({
      method: 'GET',
      path: '/health',
      isAtRoot,
      access: 'public',
      knows: knowsMonitor,
      operationId: 'getHealth',
      chapter: 'Health',
      summary: 'Check service health.',
      description:
        'Needs no key. Details require an operator, a direct connection from this machine, or access to `/metrics`. Tries a database write, at most once a second. 200 means that new mail is accepted; 503 means that the disk is full, or the database is missing, locked or damaged. `reasons` also lists problems that do not stop new mail.',
      response: Health,
      otherAnswers: { 503: Health },
      handle: async ({ isKnown = false }) => {
        const { reasons, setAside, disabledWebhooks, consumerLag } = await judge()
        const weights = new Set<Weight>(reasons.map(weightOf))
        const ready = !weights.has('failing') && !weights.has('refusing')
        if (!isKnown) {
          const short: Static<typeof Health> = { status: ready ? 'ok' : 'failing', ready }
          return ready ? short : new Reply(503, short)
        }
        const answer: Static<typeof Health> = {
          status: statusOf(weights),
          ready,
          version,
          ...given({ node: nodeToApi(node(), consumerLag) }),
          captures_mail: isCaptured,
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

function nodeToApi(
  standing: NodeStanding | undefined,
  consumerLag: number | undefined,
): Static<typeof Health>['node'] {
  if (!standing) return undefined
  const { name, state, roles, leases, isShared, heartbeatAgeMs } = standing
  return {
    name,
    state,
    roles: [...roles],
    leases: [...leases],
    shared: isShared,
    heartbeat_age_seconds: Math.round(heartbeatAgeMs / 100) / 10,
    ...given({ consumer_lag_events: consumerLag }),
  }
}

function statusOf(weights: ReadonlySet<Weight>): 'ok' | 'degraded' | 'failing' {
  if (weights.has('failing')) return 'failing'
  return weights.has('refusing') || weights.has('degraded') ? 'degraded' : 'ok'
}
