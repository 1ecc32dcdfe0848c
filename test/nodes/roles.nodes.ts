/** Nodes with different roles, and nodes that are drained: who does what, and that all of it is done. */
import t, { type Test } from 'tap'
import { initialise, install, routeTo, type Installation, type Serving } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

type Environment = Readonly<Record<string, string>>

interface Node extends Serving, Pick<Installation, 'run' | 'json'> {
  readonly name: string
  readonly installation: Installation
}

interface NodeView {
  readonly name: string
  readonly state: string
  readonly roles: readonly string[]
  readonly leases: readonly string[]
}

/** Nodes `mx1.postroad.test`, `mx2...` on one database. @param environments of each node */
async function openNodes(t: Test, environments: readonly Environment[]) {
  const sink = await openSink(t)
  const shared = { ...routeTo(sink.port), POSTROAD_SHUTDOWN_GRACE: '10s' }
  const first = await initialise(t, { env: { ...shared, ...named(1), ...environments[0] } })
  const database = { POSTROAD_DATABASE_URL: first.environment['POSTROAD_DATABASE_URL'] ?? '' }
  const nodes: Node[] = []
  for (const [at, env] of environments.entries()) {
    const installation =
      at === 0 ? first : install(t, { env: { ...shared, ...database, ...named(at + 1), ...env } })
    if (at > 0) installation.writeConfig('')
    nodes.push({
      ...installation,
      ...(await installation.serve()),
      name: `mx${at + 1}.postroad.test`,
      installation,
    })
  }
  const [one, two] = nodes
  if (!one || !two) throw new Error('a node is missing')
  const list = () => one.json<NodeView[]>('nodes')
  await until('all to be known', async () => (await list()).length === nodes.length)
  return { sink, first, one, two, list }
}

const named = (number: number) => ({ POSTROAD_HOSTNAME: `mx${number}.postroad.test` })
const mailTo = (to: string) => ({
  to: [to],
  from_email: 'shop@sender.test',
  subject: 'Hello',
  html: '<p>Hello</p>',
})

async function send(node: Serving, key: string, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, at) => node.send(key, mailTo(`p${at}@d${at % 12}.test`))),
  )
}

const deliveredBy = async (node: Serving) =>
  Number(
    /postroad_delivery_attempts_total\{destination="other",outcome="delivered"\} (\d+)/.exec(
      await (await fetch(`${node.baseUrl}/metrics`)).text(),
    )?.[1],
  )

const queued = (nodes: Pick<Installation, 'sql'>) =>
  nodes.sql<{ queued: number }>('select count(*)::int as queued from queue')[0]?.queued

t.test('a node without the role mta delivers nothing, and its mail is delivered by the other', async t => {
  const { first, one, two, list } = await openNodes(t, [
    { POSTROAD_ROLES_MTA: 'false' },
    { POSTROAD_ROLES_SCHEDULER: 'false', POSTROAD_ROLES_SUBMISSION: 'false' },
  ])
  await send(one, first.key, 24)
  await until('all to be delivered', () => queued(first) === 0)
  t.equal(await deliveredBy(one), 0)
  t.equal(await deliveredBy(two), 24)
  t.match(await list(), [
    {
      name: 'mx1.postroad.test',
      roles: ['http', 'submission', 'inbound', 'scheduler'],
      leases: ['background'],
    },
    { name: 'mx2.postroad.test', roles: ['http', 'inbound', 'mta'], leases: [] },
  ])
  t.match(
    two.log.find(({ event }) => event === 'server started'),
    { submission: '', inbound: /:\d+/ },
  )
})

t.test('while no node has a role, its work waits, and health says so', async t => {
  const { first, one, two } = await openNodes(t, [
    { POSTROAD_ROLES_MTA: 'false', POSTROAD_ROLES_SCHEDULER: 'false' },
    {},
  ])
  await until('the work to be taken', () => first.sql('select name from leases').length === 1)
  await two.end('SIGTERM')
  await send(one, first.key, 3)
  const { status, body } = await until('the reasons', async () => {
    const answer = await one.get('/health')
    return answer.body.data.reasons.length === 2 ? answer : undefined
  })
  t.match(
    { status, body },
    {
      status: 200,
      body: {
        data: { status: 'degraded', reasons: [{ code: 'no_delivery_node' }, { code: 'no_scheduler_node' }] },
      },
    },
  )
  t.equal(queued(first), 3)
  await two.installation.serve()
  await until('all to be delivered', () => queued(first) === 0)
  t.match((await one.get('/health')).body.data, { status: 'ok', reasons: [] })
})

t.test('a drained node hands over everything, keeps serving, and takes work again when resumed', async t => {
  const { first, one, two, list } = await openNodes(t, [{}, {}])
  t.match(await list(), [{ state: 'active', leases: ['background'] }, { leases: [] }])
  t.match(await one.get('/health/ready'), { status: 200, body: { data: { ready: true } } })
  // From the other node: the command reaches it through the database.
  t.match(await two.run('nodes', 'drain', 'mx1.postroad.test'), {
    status: 0,
    out: /mx1.postroad.test is drained/,
  })
  await two.logged('background work taken over')
  t.match(await list(), [
    { state: 'draining', leases: [] },
    { state: 'active', leases: ['background'] },
  ])
  t.match(await one.get('/health/ready'), {
    status: 503,
    body: { data: { ready: false, reason: 'draining' } },
  })
  t.match(await two.get('/health/ready'), { status: 200 })
  t.match((await one.get('/health')).body.data, {
    ready: true,
    node: { name: 'mx1.postroad.test', state: 'draining' },
  })
  await send(one, first.key, 24)
  await until('all to be delivered', () => queued(first) === 0)
  t.equal(await deliveredBy(one), 0)
  t.equal(await deliveredBy(two), 24)

  t.match(await one.run('nodes', 'drain', 'mx2.postroad.test'), { status: 0 })
  await two.logged('background work handed over')
  t.match(await one.run('nodes', 'resume', 'mx1.postroad.test'), { status: 0 })
  await until('it to take the work again', async () => (await list())[0]?.leases.length === 1)
  await until(
    'the work to be started again',
    () => one.log.filter(({ event }) => event === 'background work taken over').length === 2,
  )
  await send(two, first.key, 24)
  await until('all to be delivered', () => queued(first) === 0)
  t.equal(await deliveredBy(one), 24)
  await until(
    'the events to be processed',
    async () => (await one.get('/health')).body.data.node.consumer_lag_events === 0,
  )
  const key = { key: first.key }
  await until(
    'all to be counted',
    async () => (await one.get('/api/v1/analytics', key)).body.data?.delivered === 48,
  )
  t.equal(first.sql('select 1 from set_aside_events').length, 0)
})

t.test('a drained node stays drained when it is started again', async t => {
  const { first, one, two, list } = await openNodes(t, [{}, {}])
  await one.run('nodes', 'drain', 'mx2.postroad.test')
  await two.end('SIGTERM')
  const again = await two.installation.serve()
  await again.logged('node starts drained')
  t.match(await again.get('/health/ready'), { status: 503 })
  t.match(await list(), [{ state: 'active' }, { name: 'mx2.postroad.test', state: 'draining' }])
  t.match(await one.run('nodes', 'resume', 'mx2.postroad.test'), { status: 0, out: /takes work again/ })
  await until('it to be ready', async () => (await again.get('/health/ready')).status === 200)
  t.match(await one.run('nodes', 'resume', 'mx2.postroad.test'), { status: 1, err: /is not drained/ })
  t.match(await one.run('nodes', 'drain', 'mx9.postroad.test'), { status: 1, err: /no node mx9/ })
  t.same(
    first
      .sql<{ action: string }>("select action from activities where action like 'node.%' order by seq")
      .map(({ action }) => action),
    ['node.drained', 'node.resumed'],
  )
})

t.test('a node that stops while it delivers has handed over its work before it ends', async t => {
  const { sink, first, one, two } = await openNodes(t, [{}, {}])
  sink.atDot = 'hold'
  await send(one, first.key, 12)
  await sink.arrivedOnce(2)
  one.signal('SIGTERM')
  await until('the lease to move', () => {
    const [lease] = first.sql<{ name: string }>(
      'select nodes.name from leases join nodes on nodes.id = leases.node_id',
    )
    return lease?.name === 'mx2.postroad.test'
  })
  t.match(
    first.sql('select name from nodes where is_stopping = 1'),
    [{ name: 'mx1.postroad.test' }],
    'it still runs',
  )
  sink.release()
  t.equal((await one.ended).status, 0)
  await until('all to be delivered', () => queued(first) === 0)
  t.equal((await two.get('/health/ready')).status, 200)
})
