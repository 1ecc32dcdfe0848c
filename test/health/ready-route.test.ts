/** What a load balancer reads of a node, in each state. */
import t from 'tap'
import type { NodeStanding } from '../../src/cluster/membership.js'
import { readyRoutes } from '../../src/health/ready-route.js'
import type { HealthReason } from '../../src/health/health-reasons.js'

const STANDING: NodeStanding = {
  name: 'mx1.example.com',
  roles: ['http', 'mta'],
  state: 'active',
  leases: [],
  heartbeatAgeMs: 100,
  isShared: true,
  isTrusted: true,
  countTaking: () => 1,
}

async function answer(
  standing: Partial<NodeStanding>,
  reasons: readonly HealthReason[] = [],
): Promise<unknown> {
  const [route] = readyRoutes({
    node: () => ({ ...STANDING, ...standing }),
    judge: async () => ({ reasons, setAside: 0, disabledWebhooks: 0, consumerLag: 0 }),
  })
  return route?.handle({} as never)
}

t.test('an active node is ready', async t => {
  t.match(await answer({}), { status: 200, value: { ready: true } })
})

for (const state of ['starting', 'draining', 'stopping'] as const)
  t.test(`a node that is ${state} is not ready`, async t => {
    t.match(await answer({ state }), { status: 503, value: { ready: false, reason: state } })
  })

t.test('a node that the database has not confirmed for long is not ready', async t => {
  t.match(await answer({ isTrusted: false }), { status: 503, value: { reason: 'database_unreachable' } })
})

t.test('with SQLite a failed write counts, a full disk does not', async t => {
  const only = { isShared: false }
  t.match(await answer(only, [{ code: 'database_busy', text: 'locked' }]), {
    status: 503,
    value: { reason: 'database_unreachable' },
  })
  t.match(await answer(only, [{ code: 'disk_low', text: 'nearly full' }]), { status: 200 })
})
