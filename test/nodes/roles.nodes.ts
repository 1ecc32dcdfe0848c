/** Nodes with different roles: who does what, and that all of it is done. */
import t from 'tap'
import { LEASES } from '../../src/cluster/leases.js'
import { deliveredBy, openNodes, queued, sendMails } from '../support/program/nodes.js'
import { until } from '../support/until.js'

t.test('a node without the role mta delivers nothing, and its mail is delivered by the other', async t => {
  const { first, one, two, list } = await openNodes(t, [
    { POSTROAD_ROLES_MTA: 'false' },
    { POSTROAD_ROLES_SCHEDULER: 'false', POSTROAD_ROLES_SUBMISSION: 'false' },
  ])
  await sendMails(one, first.key, 24)
  await until('all to be delivered', () => queued(first) === 0)
  t.equal(await deliveredBy(one), 0)
  t.equal(await deliveredBy(two), 24)
  t.match(await list(), [
    {
      name: 'mx1.postroad.test',
      roles: ['http', 'submission', 'inbound', 'scheduler'],
      leases: [...LEASES],
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
  await until('the work to be taken', () => first.sql('select name from leases').length === LEASES.length)
  await two.end('SIGTERM')
  await sendMails(one, first.key, 3)
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
