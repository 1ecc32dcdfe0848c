/** Nodes that are drained, resumed or stopped: others take their work, and all of it is done. */
import t from 'tap'
import { LEASES } from '../../src/cluster/leases.js'
import { deliveredBy, openNodes, queued, sendMails } from '../support/program/nodes.js'
import { until } from '../support/until.js'

t.test('a drained node hands over everything, keeps serving, and takes work again when resumed', async t => {
  const { first, one, two, list } = await openNodes(t, [{}, {}])
  await until('the work to be shared', async () =>
    (await list()).every(({ leases }) => leases.length >= Math.floor(LEASES.length / 2)),
  )
  t.match(await one.get('/health/ready'), { status: 200, body: { data: { ready: true } } })
  // From the other node: the command reaches it through the database.
  t.match(await two.run('nodes', 'drain', 'mx1.postroad.test'), {
    status: 0,
    out: /mx1.postroad.test is drained/,
  })
  await until('the other to do all', async () => (await list())[1]?.leases.length === LEASES.length)
  t.match(await list(), [
    { state: 'draining', leases: [] },
    { state: 'active', leases: LEASES },
  ])
  t.match(await one.get('/health/ready'), {
    status: 503,
    body: { data: { ready: false, reason: 'draining' } },
  })
  t.match(await two.get('/health/ready'), { status: 200 })
  t.match((await one.get('/health')).body.data, {
    ready: true,
    node: { name: 'mx1.postroad.test', state: 'draining', shared: true },
  })
  await sendMails(one, first.key, 24)
  await until('all to be delivered', () => queued(first) === 0)
  t.equal(await deliveredBy(one), 0)
  t.equal(await deliveredBy(two), 24)

  t.match(await one.run('nodes', 'drain', 'mx2.postroad.test'), { status: 0 })
  await until('the work to be handed over', async () => (await list())[1]?.leases.length === 0)
  const startsOf = () => one.log.filter(({ event }) => event === 'background work taken over').length
  const before = startsOf()
  t.match(await one.run('nodes', 'resume', 'mx1.postroad.test'), { status: 0 })
  await until('it to take the work again', async () => (await list())[0]?.leases.length === LEASES.length)
  await until('the work to be started again', () => startsOf() === before + LEASES.length)
  await sendMails(two, first.key, 24)
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
  await sendMails(one, first.key, 12)
  await sink.arrivedOnce(2)
  one.signal('SIGTERM')
  await until('the leases to move', () => {
    const held = first.sql<{ name: string }>(
      'select nodes.name from leases join nodes on nodes.id = leases.node_id',
    )
    return held.length === LEASES.length && held.every(({ name }) => name === 'mx2.postroad.test')
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
