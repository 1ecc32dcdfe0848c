/** Names that the server gives to jobs and checks, as the console says them. */
import t from 'tap'
import { en } from '../../../src/console/web/i18n/en'
import { keepLanguageIn } from '../../../src/console/web/i18n/i18n'
import { checkName, jobName } from '../../../src/console/web/lib/server-names'
import { openTestAppliance } from '../../support/program/appliance.js'
import { tokenWith } from '../../support/program/operators.js'
import { until } from '../../support/until.js'

t.beforeEach(() => keepLanguageIn({ language: 'en', locale: 'en', texts: en }))

t.test('every job has a name that says what it does', async t => {
  const postroad = await openTestAppliance(t)
  const key = await tokenWith(postroad, 'viewer')
  const { body } = await postroad.get('/api/admin/v1/jobs?limit=1000', { key })
  const names = (body.data as { name: string }[]).map(({ name }) => name)
  t.ok(names.length > 40)
  for (const name of names) {
    const [, what] = /^prune (.+)$/.exec(name) ?? []
    t.ok(what === undefined ? name in en.serverNames.jobs : what in en.serverNames.kept, name)
  }
  t.equal(jobName('prune messages'), 'Delete old data: messages')
  t.equal(jobName('of a later version'), 'of a later version')
})

t.test('every check has a name, or is about a setting', async t => {
  const postroad = await openTestAppliance(t, { zone: {} })
  const key = await tokenWith(postroad, 'owner')
  await postroad.post('/api/admin/v1/doctor', '', { key })
  type Examination = { ended_at: string | null; checks: { name: string }[] }
  const { checks } = await until('the examination to end', async () => {
    await postroad.clock.advance(2_000)
    const { body } = await postroad.get('/api/admin/v1/doctor/latest', { key })
    const found = body.data as Examination
    return found.ended_at === null ? undefined : found
  })
  t.ok(checks.length > 10)
  for (const { name } of checks) t.not(checkName(name), name, name)
  t.equal(checkName('dns.spf_hello'), 'SPF of the server name')
  t.equal(checkName('mta.capture'), 'Setting mta.capture')
})
