/** Each event as received, caused by the operation that causes it, on the running appliance. */
import t, { type Test } from 'tap'
import { Compile } from 'typebox/compile'
import { bodySchema } from '../../src/webhooks/events/event-schemas.js'
import { WEBHOOK_EVENT_NAMES, type WebhookEvent } from '../../src/webhooks/events/webhook-event.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { until, untilLater } from '../support/until.js'
import { openWebhooks } from './open-webhooks.js'

const LIVE_MAIL = { from_email: 'shop@shop.example', subject: 'Your {{order}}', text: 'Thanks' }

async function open(t: Test, isSandbox = false) {
  const opened = await openWebhooks(t, options => openTestAppliance(t, options))
  const { receiver, workspaceId } = opened
  await opened.run('workspace', 'set', workspaceId, 'default_from_email=shop@shop.example')
  const key = isSandbox ? await opened.makeKey('--sandbox') : opened.key
  for (const event of WEBHOOK_EVENT_NAMES) await opened.subscribe(event, '/', key)
  const ask = (method: 'post' | 'patch' | 'put', path: string, body: unknown) =>
    opened[method](`/api/v1${path}`, body, { key })
  return {
    ...opened,
    key,
    make: async (path: string, body: unknown): Promise<Record<string, string>> =>
      (await ask('post', path, body)).body.data,
    patch: (path: string, body: unknown) => ask('patch', path, body),
    /** The deliveries of the event, once there are that many; checked against its schema. */
    told: async (event: WebhookEvent, count = 1) => {
      const those = (await receiver.has(count, event)).map(({ json }) => json)
      const schema = Compile(bodySchema(event))
      for (const one of those)
        t.ok(schema.Check(one), `${event}: ${JSON.stringify([...schema.Errors(one)].slice(0, 2))}`)
      t.equal(those.length, count, event)
      return those.map(({ data }) => data)
    },
  }
}

// proves: Events > contact.created | contact.updated | contact.subscribed | contact.unsubscribed
// proves: Events > The contents of data per; decisions: Webhooks > Event data email* message_id to
t.test('changes of contacts are events', async t => {
  const { make, patch, told } = await open(t)
  const { id = '' } = await make('/contacts', { email: 'ann@x.example', attributes: { plan: 'Pro' } })
  t.match(await told('contact.created'), [{ id, email: 'ann@x.example', attributes: { plan: 'Pro' } }])
  await patch(`/contacts/${id}`, { first_name: 'Ann' })
  t.match(await told('contact.updated'), [{ id, first_name: 'Ann', changed: ['first_name'] }])
  await patch(`/contacts/${id}`, { subscribed: false })
  t.match(await told('contact.unsubscribed'), [{ contact_id: id, list_id: null, source: 'api' }])
  await patch(`/contacts/${id}`, { subscribed: true })
  t.match(await told('contact.subscribed'), [{ contact_id: id, list_id: null, source: 'api' }])
})

// proves: Postroad > event contact.deleted
t.test('deleted contacts are events, singly, in bulk and all together', async t => {
  const { make, told, key, ...postroad } = await open(t)
  const added = async (email: string) => (await make('/contacts', { email }))['id'] ?? ''
  const [ann, bob, cid] = [
    await added('ann@x.example'),
    await added('bob@x.example'),
    await added('cid@x.example'),
  ]
  await postroad.delete(`/api/v1/contacts/${ann}`, { key })
  t.same(await told('contact.deleted'), [{ contact_id: ann, email: 'ann@x.example', is_restorable: false }])
  await make('/contacts/bulk-delete', { contact_ids: [bob] })
  await make('/contacts/delete-all', { confirm: true })
  const [, inBulk, withAll] = await told('contact.deleted', 3)
  t.same(inBulk, { contact_id: bob, email: 'bob@x.example', is_restorable: false })
  t.same(withAll, { contact_id: cid, email: 'cid@x.example', is_restorable: true })
})

t.test('a deletion that could not be delivered before the person was erased never is', async t => {
  const { make, told, receiver, key, clock, ...postroad } = await open(t)
  const { id = '' } = await make('/contacts', { email: 'ann@x.example' })
  await told('contact.created')
  receiver.answers({ status: 500 })
  await postroad.delete(`/api/v1/contacts/${id}`, { key })
  const tried = (await receiver.has(1, 'contact.deleted')).length
  await make('/contacts/erase', { email: 'ann@x.example' })
  receiver.answers({ status: 200 })
  clock.skip(86_400_000)
  await make('/contacts', { email: 'bob@x.example' })
  await told('contact.created', 2)
  t.equal((await receiver.has(tried, 'contact.deleted')).length, tried)
})

// proves: Events > list.member_added | list.member_removed
// proves: decisions: Added after the whole contract > List events contactsubscribed/contactunsubscribed accompany every
t.test('joining and leaving lists are events', async t => {
  const { make, told, key, ...postroad } = await open(t)
  const { id = '' } = await make('/contacts', { email: 'ann@x.example' })
  const list = await make('/lists', { name: 'Friends' })
  await make(`/lists/${list['id']}/members`, { contact_ids: [id] })
  const membership = {
    list_id: list['id'],
    list_name: 'Friends',
    contact_id: id,
    email: 'ann@x.example',
    source: 'api',
  }
  t.match(await told('list.member_added'), [membership])
  const subscription = { contact_id: id, email: 'ann@x.example', list_id: list['id'], source: 'api' }
  t.same(await told('contact.subscribed'), [subscription])
  await postroad.delete(`/api/v1/lists/${list['id']}/members`, { key }, { contact_ids: [id] })
  t.match(await told('list.member_removed'), [membership])
  t.same(await told('contact.unsubscribed'), [subscription])
})

// proves: decisions: Added after the whole contract > List events contactsubscribed/contactunsubscribed accompany every
t.test('a contact subscribes to the list that it is created in or imported into', async t => {
  const { make, told, key, ...postroad } = await open(t)
  const list = await make('/lists', { name: 'Friends' })
  const { id = '' } = await make('/contacts', { email: 'ann@x.example', list_id: list['id'] })
  const ofList = { list_id: list['id'] }
  t.match(await told('contact.subscribed'), [{ contact_id: id, ...ofList, source: 'api' }])
  await postroad.post(`/api/v1/contacts/import?list_id=${list['id']}`, 'email\nbob@x.example\n', {
    key,
    headers: { 'Content-Type': 'text/csv' },
  })
  const subscribed = await told('contact.subscribed', 2)
  t.match(
    subscribed.find(({ email }) => email === 'bob@x.example'),
    { ...ofList, source: 'import' },
  )
})

t.test('each contact of an import has events of its own', async t => {
  const { make, told, key, ...postroad } = await open(t)
  const list = await make('/lists', { name: 'Friends' })
  await make('/contacts', { email: 'n0@x.example', first_name: 'Ann' })
  await told('contact.created')
  const rows = Array.from({ length: 120 }, (_, at) => `n${at}@x.example,N${at},${at === 0 ? 'no' : ''}`)
  await postroad.post(
    `/api/v1/contacts/import?list_id=${list['id']}`,
    `email,first_name,subscribed\n${rows.join('\n')}\n`,
    { key, headers: { 'Content-Type': 'text/csv' } },
  )
  const created = await told('contact.created', 120)
  t.equal(new Set(created.map(({ email }) => email)).size, 120)
  t.match(
    created.find(({ email }) => email === 'n7@x.example'),
    { first_name: 'N7', subscribed: true },
  )
  t.match(await told('contact.updated'), [
    { email: 'n0@x.example', first_name: 'N0', subscribed: false, changed: ['first_name', 'subscribed'] },
  ])
  t.match(await told('contact.unsubscribed'), [{ email: 'n0@x.example', list_id: null, source: 'import' }])
  const joined = await told('list.member_added', 120)
  t.equal(new Set(joined.map(({ contact_id }) => contact_id)).size, 120)
})

// proves: Events > contact.created | contact.updated | contact.subscribed | contact.unsubscribed | form.submitted
// proves: Events > The contents of data per; decisions: Webhooks > Event data email* message_id to
t.test('a form submission is an event with source form', async t => {
  const { make, told, receiver, ...postroad } = await open(t)
  const list = await make('/lists', { name: 'Friends' })
  const form = await make('/forms', { name: 'Newsletter', list_ids: [list['id']] })
  await postroad.post(`/f/${form['id']}`, { email: 'ann@x.example' })
  const [submitted] = await told('form.submitted')
  t.match(submitted, { form_id: form['id'], fields: {} })
  t.match(await told('list.member_added'), [{ list_id: list['id'], source: 'form' }])
  t.match(await told('contact.subscribed'), [
    { contact_id: submitted.contact_id, list_id: list['id'], source: 'form' },
  ])
  t.match(await told('contact.created'), [{ id: submitted.contact_id }])
  t.equal(receiver.received.length, 4)
})

// proves: Events > email.sent | email.delivered | email.opened | email.clicked | email.bounced | email.complained
// proves: decisions: Webhooks > emailsent fires when the message
t.test('handing over and delivering mail are events', async t => {
  const { make, told } = await open(t)
  const { id = '' } = await make('/contacts', { email: 'ann@x.example' })
  const sent = await make('/email/send', {
    ...LIVE_MAIL,
    to: 'ann@x.example',
    template_data: { order: 'cup' },
  })
  const [{ message_id: messageId }] = sent['results'] as unknown as [{ message_id: string }]
  const mail = {
    message_id: messageId,
    to: 'ann@x.example',
    contact_id: id,
    subject: 'Your {{order}}',
    batch_id: null,
  }
  t.match(await told('email.sent'), [mail])
  t.match(await told('email.delivered'), [{ ...mail, remote_mta: String }])
})

// proves: Events > email.sent | email.delivered | email.opened | email.clicked | email.bounced | email.complained
// proves: decisions: Webhooks > emailsent fires when the message; Postroad > event email.failed
// proves: decisions: Added after the whole contract > Opens and clicks A click
t.test('opens, clicks, bounces and complaints are events', async t => {
  const { make, told, key, ...postroad } = await open(t, true)
  for (const outcome of ['bounced', 'complained', 'clicked', 'failed'])
    await make('/email/send', { ...LIVE_MAIL, to: `${outcome}@simulator.test` })
  const visit = { ip: String, user_agent: String, is_bot: false }
  t.match(await told('email.opened'), [{ to: 'clicked@simulator.test', ...visit, inferred: true }])
  t.match(await told('email.clicked'), [{ to: 'clicked@simulator.test', ...visit, url: String }])
  t.match(await told('email.complained'), [{ to: 'complained@simulator.test', feedback_type: String }])
  t.match(await told('email.failed'), [
    { to: 'failed@simulator.test', reason: 'simulated: the message could not be built' },
  ])
  const [bounced] = await told('email.bounced')
  t.match(bounced, {
    to: 'bounced@simulator.test',
    bounce_type: 'permanent',
    smtp_status: /^5\./,
    diagnostic_code: String,
    isp_name: null,
  })
  const found = await postroad.get(`/api/v1/bounces/${bounced.bounce_id}`, { key })
  t.match(
    found,
    { status: 200, body: { data: { message_id: bounced.message_id } } },
    'by the id in the event',
  )
})

// proves: Events > conversion.created
t.test('a conversion is an event', async t => {
  const { make, told } = await open(t)
  const { id } = await make('/contacts', { email: 'ann@x.example' })
  const conversion = await make('/conversions', { contact_id: id, value: 20, metadata: { order: 7 } })
  t.same(await told('conversion.created'), [conversion])
})

// proves: Events > flow.triggered | flow.completed
t.test('entering and completing an automation are events', async t => {
  const { make, patch, told } = await open(t)
  const { id = '' } = await make('/contacts', { email: 'ann@x.example' })
  const flow = await make('/automations', {
    name: 'Welcome',
    trigger_type: 'manual',
    steps: [{ step_type: 'tag', config: { action: 'add', tagName: 'welcomed' } }],
  })
  await patch(`/automations/${flow['id']}`, { status: 'active' })
  await make(`/automations/${flow['id']}/trigger`, { contact_id: id })
  const run = { automation_id: flow['id'], run_id: String, contact_id: id, trigger_type: String }
  t.match(await told('flow.triggered'), [run])
  t.match(await told('flow.completed'), [run])
})

// proves: Events > Automation webhook steps (see step
t.test('a webhook step of an automation is a separate request', async t => {
  const { make, patch, told, receiver } = await open(t)
  const { id = '' } = await make('/contacts', { email: 'ann@x.example' })
  const flow = await make('/automations', {
    name: 'Call',
    trigger_type: 'manual',
    steps: [
      {
        step_type: 'webhook',
        config: { url: `${receiver.url}/step`, method: 'PUT', headers: { 'X-Mine': '1' }, body: { a: 1 } },
      },
    ],
  })
  await patch(`/automations/${flow['id']}`, { status: 'active' })
  await make(`/automations/${flow['id']}/trigger`, { contact_id: id })
  await told('flow.completed')
  const [step] = receiver.received.filter(({ path }) => path === '/step')
  t.match(step, { headers: { 'x-mine': '1' }, json: { a: 1 } })
  t.notOk('x-service-signature' in step!.headers)
})

// proves: Events > campaign.sent | campaign.completed
t.test('start and completion of a campaign are events', async t => {
  const { make, told, key, ...postroad } = await open(t)
  const list = await make('/lists', { name: 'News' })
  for (const email of ['ann@x.example', 'bob@x.example'])
    await make('/contacts', { email, list_id: list['id'] })
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const campaign = await make('/campaigns', {
    ...{ name: 'Spring', subject: 'News', template_id: template['id'], list_id: list['id'] },
  })
  const headers = { 'Idempotency-Key': 'once' }
  await postroad.post(`/api/v1/campaigns/${campaign['id']}/send/api`, {}, { key, headers })
  const about = { campaign_id: campaign['id'], name: 'Spring', total_recipients: 2 }
  t.match(await told('campaign.sent'), [about])
  t.match(await told('campaign.completed'), [{ ...about, stats: { sends: 2, delivered: 2, bounces: 0 } }])
  t.match(await told('email.sent', 2), [{ campaign_id: campaign['id'] }, { campaign_id: campaign['id'] }])
})

// proves: Events > campaign.completed; Postroad > event campaign.winner_required
t.test('an A/B test that waits for a person is an event', async t => {
  const { make, told, key, ...postroad } = await open(t)
  const list = await make('/lists', { name: 'News' })
  for (const name of ['ann', 'bob', 'cyd', 'dan'])
    await make('/contacts', { email: `${name}@x.example`, list_id: list['id'] })
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const send = async (name: string, test: object) => {
    const { id = '' } = await make('/campaigns', {
      ...{ name, subject: 'News', template_id: template['id'], list_id: list['id'] },
      ab_test: { variants: [{}, { subject: 'Other news' }], sample_size: 2, metric: 'opens', ...test },
    })
    const headers = { 'Idempotency-Key': name }
    await postroad.post(`/api/v1/campaigns/${id}/send/api`, {}, { key, headers })
    return id
  }
  const byHand = await send('By hand', { decide_after_minutes: null })
  const about = { name: 'By hand', total_recipients: 4 }
  t.match(await told('campaign.winner_required'), [{ campaign_id: byHand, ...about }])

  const once = (id: string, path: string, what: object) =>
    untilLater(postroad.clock, `${path} of ${id}`, async () => {
      const { body } = await postroad.get(`/api/v1/campaigns/${id}${path}`, { key })
      return Object.entries(what).every(([name, value]) => body.data[name] === value)
    })
  // Of two that nobody opened one is decided by the rule, the other is left to a person.
  const byRule = await send('By rule', { decide_after_minutes: 5, if_unclear: 'best' })
  const unclear = await send('Unclear', { decide_after_minutes: 5, if_unclear: 'manual' })
  for (const id of [byRule, unclear]) await once(id, '/ab-test', { phase: 'waiting' })
  await postroad.clock.advance(5 * 60_000)
  await once(byRule, '', { status: 'completed' })
  t.match((await told('campaign.winner_required', 2))[1], { campaign_id: unclear, name: 'Unclear' })

  // A pause does not ask again.
  for (const act of ['pause', 'resume']) await make(`/campaigns/${unclear}/${act}`, {})
  await make(`/campaigns/${unclear}/ab-test/winner`, { variant: 'A' })
  await once(unclear, '', { status: 'completed' })
  await told('campaign.completed', 2)
  await told('campaign.winner_required', 2)
})

// proves: Postroad > event campaign.waiting
// proves: decisions: Added after a day's work > Nothing waits without saying why
t.test('a campaign that waits for a minute is an event, once for each wait and reason', async t => {
  const { make, told, key, clock, ...postroad } = await open(t)
  await postroad.run('workspace', 'set', postroad.workspaceId, 'hourly_limit=1', 'daily_limit=0')
  const list = await make('/lists', { name: 'News' })
  for (const name of ['ann', 'bob', 'cyd'])
    await make('/contacts', { email: `${name}@x.example`, list_id: list['id'] })
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const { id = '' } = await make('/campaigns', {
    ...{ name: 'Spring', subject: 'News', template_id: template['id'], list_id: list['id'] },
  })
  await postroad.post(`/api/v1/campaigns/${id}/send/api`, {}, { key, headers: { 'Idempotency-Key': 'k' } })
  const about = { campaign_id: id, name: 'Spring', total_recipients: 3 }
  /** Those sent so far, once there are that many; time goes on meanwhile, though never to the next hour. */
  const waits = async (count: number) => {
    await until(`${count} events`, async () => {
      await clock.advance(5_000)
      const { body } = await postroad.get(`/api/v1/campaigns/${id}`, { key })
      t.ok(clock.now() < Date.parse('2026-01-05T10:55:00Z'), String(body.data.status))
      return (await postroad.receiver.has(0, 'campaign.waiting')).length >= count
    })
    return (await told('campaign.waiting', count)).map(({ waiting_for, ...others }) => {
      t.match(others, about)
      return waiting_for
    })
  }
  const hour = { reason: 'hourly_limit', limit: 1, until: '2026-01-05T11:00:00.000Z' }
  t.match(await waits(1), [hour])
  for (let minute = 0; minute < 5; minute += 1) await clock.advance(60_000)
  t.match(await waits(1), [hour], 'once')
  // A pause is another wait, and so is what follows it.
  await make(`/campaigns/${id}/pause`, {})
  t.match(await waits(2), [hour, { reason: 'hold' }])
  await make(`/campaigns/${id}/resume`, {})
  t.match(await waits(3), [hour, { reason: 'hold' }, hour])
})
