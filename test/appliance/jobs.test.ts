/** Scheduled jobs by the admin API and the command line. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { initialise } from '../support/program/process.js'
import { until } from '../support/until.js'

interface JobView {
  readonly name: string
  readonly running: boolean
  readonly last_started_at: string | null
  readonly last_ended_at: string | null
}

const JOBS = '/api/admin/v1/jobs'

t.test('an operator runs a job now and reads its result; a viewer only reads', async t => {
  const postroad = await openTestAppliance(t)
  const operator = { key: await tokenWith(postroad, 'operator') }
  const viewer = { key: await tokenWith(postroad, 'viewer') }
  const find = async (name: string) =>
    ((await postroad.get(JOBS, viewer)).body.data as JobView[]).find(job => job.name === name)
  t.match(await find('shrink database'), { running: false, last_started_at: null, next_run_at: /Z$/ })
  const path = `${JOBS}/${encodeURIComponent('shrink database')}/run`
  t.match(await postroad.post(path, '', viewer), { status: 403 })
  t.match(await postroad.post(path, '', operator), {
    status: 202,
    body: { data: { name: 'shrink database', last_started_at: /Z$/ } },
  })
  t.match(
    await until('the run to end', async () => {
      const job = await find('shrink database')
      return job?.last_ended_at ? job : undefined
    }),
    { running: false, last_error: null },
  )
  t.match(await postroad.post(`${JOBS}/nonsense/run`, '', operator), {
    status: 404,
    body: { error: { message: /no job nonsense/ } },
  })
})

t.test('jobs run waits for the end of the run, and needs a running server', async t => {
  const postroad = await initialise(t)
  t.match(await postroad.run('jobs', 'run', 'recheck-domains'), {
    status: 1,
    err: /the server is not running/,
  })
  await postroad.serve()
  t.match(await postroad.json('jobs', 'run', 'recheck-domains'), {
    name: 'recheck-domains',
    running: false,
    last_ended_at: /Z$/,
  })
  t.match(await postroad.run('jobs', 'run', 'recheck-domains'), { out: /recheck-domains +ok/ })
  t.match(await postroad.run('jobs'), { err: '' })
})
