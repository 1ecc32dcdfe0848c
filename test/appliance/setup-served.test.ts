/** The setup checklist on the running appliance. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { until } from '../support/until.js'

interface Step {
  readonly name: string
  readonly done: boolean
  readonly record_id: string | null
  readonly detail: string | null
  readonly problems: readonly string[]
}

async function open(t: Test, env: Readonly<Record<string, string>> = {}) {
  const postroad = await openTestAppliance(t, { zone: {}, env })
  const key = await tokenWith(postroad, 'operator')
  const path = `/api/admin/v1/workspaces/${postroad.workspaceId}/setup`
  const steps = async (as = key) => (await postroad.get(path, { key: as })).body.data.steps as Step[]
  return {
    postroad,
    key,
    path,
    steps,
    undone: async () => (await steps()).filter(({ done }) => !done).map(({ name }) => name),
  }
}

t.test('each step is done once the server has what it asks for', async t => {
  const { postroad, key, path, steps, undone } = await open(t)
  const api = { key: await postroad.makeKey() }
  t.same(await undone(), ['company', 'sender', 'mail', 'contacts', 'campaign'])

  const workspace = path.replace(/\/setup$/, '')
  await postroad.patch(workspace, { company_name: 'Shop', company_address: ' ' }, { key })
  t.ok((await undone()).includes('company'), 'a name alone is not enough')
  await postroad.patch(workspace, { company_address: '1 High Street' }, { key })
  t.same(await undone(), ['sender', 'mail', 'contacts', 'campaign'])

  const pending = await postroad.post('/api/v1/domains', { domain: 'shop.example' }, api)
  t.match(await steps(), [{}, { name: 'sender', done: false, record_id: pending.body.data.id }])
  await postroad.run('domain', 'add', 'lan.example', '--vouch', '--workspace', postroad.workspaceId)
  t.match(await steps(), [{}, { name: 'sender', done: true, detail: 'lan.example' }])

  const mail = { to: 'ann@one.test', from_email: 'me@lan.example', subject: 'Hello', text: 'Hello.' }
  const sent = await postroad.post('/api/v1/email/send', mail, api)
  t.match((await steps())[2], { name: 'mail', done: true, record_id: sent.body.data.results[0].message_id })

  await postroad.post('/api/v1/contacts', { email: 'ann@one.test' }, api)
  t.same(await undone(), ['campaign'])
})

t.test('the first email is a request that is accepted as it stands, in each language', async t => {
  const { postroad, key, path } = await open(t)
  const { first_email: samples } = (await postroad.get(path, { key })).body.data
  t.ok(samples.length >= 5)
  for (const { code } of samples as { code: string }[]) t.match(code, 'POSTROAD_KEY')
  const curl = (samples as { language: string; code: string }[]).find(({ language }) => language === 'curl')
  const json = /-d '(?<json>.*)'/s.exec(curl?.code ?? '')?.groups?.['json'] ?? ''
  const { status } = await postroad.post('/api/v1/email/send', JSON.parse(json), {
    key: await postroad.makeKey(),
  })
  t.equal(status, 200)
})

t.test('a dismissed checklist stays dismissed until it is shown again', async t => {
  const { postroad, key, path } = await open(t)
  t.match(await postroad.patch(path, { dismissed: true }, { key }), {
    body: { data: { dismissed_at: /^\d{4}-/ } },
  })
  t.match(await postroad.get(path, { key }), { body: { data: { dismissed_at: /^\d{4}-/ } } })
  await postroad.patch(path, { dismissed: false }, { key })
  t.match(await postroad.get(path, { key }), { body: { data: { dismissed_at: null } } })
  const viewer = { key: await tokenWith(postroad, 'viewer') }
  t.match(await postroad.get(path, viewer), { status: 200 })
  t.match(await postroad.patch(path, { dismissed: true }, viewer), { status: 403 })
  t.match(await postroad.patch(path, { dismissed: 'no' }, { key }), { status: 400 })
  const unknown = path.replace(postroad.workspaceId, '0192f000-0000-7000-8000-00000000abcd')
  t.match(await postroad.get(unknown, { key }), { status: 404 })
})

t.test(
  'what other hosts see of the server is a step for operators of the appliance, as the doctor found it',
  async t => {
    const { postroad, steps } = await open(t, { POSTROAD_MTA_CAPTURE: 'false' })
    const ended = await until('the checks to end', async () => {
      await postroad.clock.advance(2_000)
      const delivery = (await steps()).find(({ name }) => name === 'delivery')
      return delivery?.problems.includes('dns.ptr') === true ? delivery : undefined
    })
    t.match(ended, { done: false })
    const only = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'owner' }])
    t.notOk((await steps(only)).some(({ name }) => name === 'delivery'))
  },
)
