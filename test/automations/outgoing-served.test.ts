/** What automations tell others of on the running appliance: webhooks of their events, and requests of their webhook steps. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'
import { openWebhooks } from '../webhooks/open-webhooks.js'

t.test('webhooks are told when a run begins and ends; a webhook step is a request of its own', async t => {
  const { receiver, subscribe, addContact, key, ...postroad } = await openWebhooks(t, options =>
    openTestAppliance(t, options),
  )
  for (const event of ['flow.triggered', 'flow.completed']) await subscribe(event)
  const post = (path: string, body: object) => postroad.post(`/api/v1${path}`, body, { key })
  const config = { url: `${receiver.url}/step`, headers: { 'X-Token': 'mine' }, body: { who: '{{email}}' } }
  const flow = { name: 'Tell', trigger_type: 'contact_created', steps: [{ step_type: 'webhook', config }] }
  const { id } = (await post('/automations', flow)).body.data
  await postroad.patch(`/api/v1/automations/${id}`, { status: 'active' }, { key })
  const contact = (await addContact('ann@one.test')).body.data.id
  const [triggered] = await receiver.has(1, 'flow.triggered')
  const [completed] = await receiver.has(1, 'flow.completed')
  const about = { automation_id: id, contact_id: contact, trigger_type: 'contact_created' }
  t.match([triggered?.json.data, completed?.json.data], [about, about])
  const [asked] = receiver.received.filter(({ path }) => path === '/step')
  const run = triggered?.json.data.run_id
  t.match(asked, {
    json: { who: 'ann@one.test' },
    headers: { 'x-token': 'mine', 'idempotency-key': `${run}.0` },
  })
  t.equal(asked?.headers['x-service-event'], undefined, 'apart from subscriptions')
  const shown = await until('the end of the run', async () => {
    const { body } = await postroad.get(`/api/v1/automations/${id}/runs/${run}`, { key })
    return body.data.status === 'completed' ? body.data : undefined
  })
  t.match(shown.steps, [{ outcome: 'completed', detail: { status_code: 200, body: 'ok' } }])
})
