/** The doctor by the admin API, and as a command for a remote appliance. */
import t from 'tap'
import type { Check } from '../../src/appliance/doctor/check.js'
import { DoctorRuns } from '../../src/appliance/system/doctor-routes.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { until } from '../support/until.js'

const DOCTOR = '/api/admin/v1/doctor'

t.test('an operator examines the appliance, and a viewer reads the results', async t => {
  const postroad = await openTestAppliance(t, { zone: {} })
  const operator = { key: await tokenWith(postroad, 'operator') }
  const viewer = { key: await tokenWith(postroad, 'viewer') }
  t.match(await postroad.get(`${DOCTOR}/latest`, viewer), { status: 404 })
  t.match(await postroad.post(DOCTOR, '', viewer), { status: 403 })
  const first = await postroad.post(DOCTOR, '', operator)
  t.match(first, { status: 202, body: { data: { ended_at: null } } })
  const { id } = first.body.data
  const report = async () => (await postroad.get(`${DOCTOR}/latest`, viewer)).body.data
  const ended = await until('the examination to end', async () => {
    await postroad.clock.advance(2_000)
    const found = await report()
    return found.ended_at === null ? undefined : found
  })
  t.equal(ended.id, id)
  const byName = new Map(ended.checks.map((check: { name: string }) => [check.name, check]))
  t.match(byName.get('server'), { status: 'ok', what: 'the server is running' })
  t.match(byName.get('schema'), { status: 'ok' })
  t.match(byName.get('port http'), { status: 'ok' })
  t.match(byName.get('dns.hostname'), { status: 'fail', fix: /./ })
  t.match(await postroad.get(`${DOCTOR}/${id}`, viewer), { body: { data: { id } } })
  t.match(await postroad.get(`${DOCTOR}/0192f000-0000-7000-8000-00000000abcd`, viewer), { status: 404 })
})

t.test(
  'one examination runs at a time, shows finished checks meanwhile, and is cut off by a stop',
  async t => {
    let end = (): void => {}
    const ended = new Promise<void>(resolve => (end = resolve))
    let reportCheck: (check: Check) => void = () => {}
    let stopping: AbortSignal | undefined
    let count = 0
    const runs = new DoctorRuns({
      clock: new FakeClock(),
      newId: () => `id${++count}`,
      examine: (report, signal) => {
        ;[reportCheck, stopping] = [report, signal]
        signal.addEventListener('abort', end)
        return ended
      },
    })
    t.throws(() => runs.get('latest'), { code: 'not_found' })
    t.equal(runs.start().id, 'id1')
    t.equal(runs.start().id, 'id1', 'the running one')
    reportCheck({ status: 'ok', name: 'disk', what: 'free' })
    t.match(runs.get('latest'), { id: 'id1', endedAt: null, checks: [{ name: 'disk' }] })
    await runs.stop()
    t.equal(stopping?.aborted, true)
    t.match(runs.get('id1'), { endedAt: Number })
    t.equal(runs.start().id, 'id2')
    t.throws(() => runs.get('id1'), { code: 'not_found' }, 'only the last one is kept')
  },
)

t.test('doctor checks a remote appliance from there', async t => {
  const postroad = await openTestAppliance(t, { zone: {} })
  const remote = ['--server', postroad.baseUrl, '--token', await tokenWith(postroad, 'operator')]
  const { status, out } = await postroad.run('doctor', ...remote)
  t.equal(status, 1, 'the hostname is not in DNS')
  t.match(out, /^ok {4}server: the server is running$/m)
  t.match(out, /^\d+ checks: \d+ failed/m)
  t.match(await postroad.run('doctor', '--json', ...remote), { out: /^\[/ })
})

t.test('doctor sees what was done to the schema since the start', async t => {
  const postroad = await openTestAppliance(t, { zone: {} })
  const remote = ['--server', postroad.baseUrl, '--token', await tokenWith(postroad, 'operator')]
  postroad.sql('create index contacts_by_name on contacts (last_name)')
  const own = await postroad.run('doctor', ...remote)
  t.match(
    own.out,
    /^ok {4}schema: .* of this version, and what Postroad did not create: index contacts_by_name$/m,
  )
  postroad.sql('drop table write_trials')
  const damaged = await postroad.run('doctor', ...remote)
  t.match(
    damaged.out,
    /^FAIL {2}schema: .*: table write_trials is missing\n {6}it was changed by hand: undo/m,
  )
})
