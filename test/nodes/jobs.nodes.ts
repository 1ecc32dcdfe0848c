/** Jobs that are run by request to any node. */
import t from 'tap'
import { ANSWER_MS } from '../../src/scheduler/job-requests.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openNodes } from '../support/program/nodes.js'
import { until } from '../support/until.js'

t.test('a job is run from the node that does not run the jobs, and its result is seen there', async t => {
  const { first, one, two, list } = await openNodes(t, [{}, {}])
  await until('the work to be shared', async () => ((await list())[1]?.leases.length ?? 0) > 2)
  const job = 'recheck-domains'
  t.match(await two.json('jobs', 'run', job), {
    name: job,
    running: false,
    last_ended_at: /Z$/,
    last_error: null,
  })
  const [before] = first.sql<{ ended_at: number }>(`select ended_at from jobs where name = '${job}'`)
  t.match(await two.run('jobs', 'run', job), { status: 0, out: /recheck-domains +ok/ })
  const [after] = first.sql<{ ended_at: number }>(`select ended_at from jobs where name = '${job}'`)
  t.ok((after?.ended_at ?? 0) > (before?.ended_at ?? 0), 'it ran again')
  t.match(await two.run('jobs', 'run', 'nonsense'), { status: 1, err: /no job nonsense/ })
  t.match(await one.run('jobs', 'run', 'nonsense'), { status: 1, err: /no job nonsense/ })
  // A job of a kind that the second node does, run from the first.
  const leases = (await list())[1]?.leases ?? []
  t.ok(leases.includes('contacts'), leases.join())
  t.match(await one.run('jobs', 'run', 'finish-contact-sweeps'), { status: 0 })
  t.equal((await one.json<unknown[]>('jobs')).length, (await two.json<unknown[]>('jobs')).length)
  t.equal(first.sql('select id from job_requests').length, 0, 'nothing is left of the requests')
})

t.test('without a node that runs jobs, a request to run one fails in bounded time', async t => {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_ROLES_SCHEDULER: 'false' } })
  let isAnswered = false
  const answer = postroad.run('jobs', 'run', 'recheck-domains').finally(() => (isAnswered = true))
  const requests = () => postroad.sql('select id from job_requests').length
  await until('the request', () => requests() === 1)
  await postroad.clock.advance(ANSWER_MS - 1_000)
  t.notOk(isAnswered)
  await until('the answer', async () => {
    await postroad.clock.advance(1_000)
    return isAnswered
  })
  t.match(await answer, { status: 1, err: /no node that runs the job answered within 10 seconds/ })
  t.equal(requests(), 0)
})
