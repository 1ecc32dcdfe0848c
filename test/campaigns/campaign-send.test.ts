/** Sending campaigns over HTTP on the running appliance: everybody once, who is left out, pause, resume, cancel, later, sandbox. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t from 'tap'
import { simpleParser } from 'mailparser'
import { until } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

const conflict = { status: 409, body: { error: { code: 'conflict' } } }

// proves: Other resources > Analytics totals sends campaign_sends api_sends
// proves: States and transitions > Campaign POST send
// proves: Campaigns and templates > GET /campaigns/:id | POST /campaigns/:id/send/api
t.test('a campaign goes to everybody in the list who may be mailed, once each, and is completed', async t => {
  const { draft, sendIt, campaignOnce, get, post, patch, one, capture } = await openCampaigns(t)
  const id = await draft(addresses(150), { subject: 'Hi {{firstName|you}}', from_name: 'Shop' })
  const contacts = (await get('/contacts?limit=1000')).body.data as { id: string; email: string }[]
  const idOf = (email: string) => contacts.find(one => one.email === email)!.id
  await patch(`/contacts/${idOf('c0@x.test')}`, { subscribed: false })
  await post('/suppressions', { email: 'c1@x.test', scope: 'marketing' })
  await patch(`/contacts/${idOf('c2@x.test')}`, { first_name: 'Ann' })
  await until('the contact follows', async () => {
    const { unsubscribed } = (await get(`/campaigns/${id}/audience`)).body.data
    return unsubscribed === 2
  })
  const answer = await sendIt(id)
  t.match(answer, {
    status: 202,
    body: {
      data: {
        total_recipients: 148,
        batches_queued: 1,
        excluded: { unsubscribed: 2, suppressed: 0, bounced: 0 },
        status: 'sending',
        scheduled_at: null,
      },
    },
  })
  const done = await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.match(done, {
    total_recipients: 148,
    progress: { pending: 0, queued: 0, done: 148, skipped: 0, cancelled: 0 },
    stats: { sends: 148, delivered: 148, bounces: 0 },
    rates: { delivery_rate: 1, bounce_rate: 0 },
  })
  t.equal(one('select count(distinct recipient) from messages'), 148)
  t.equal(one('select count(*) from messages'), 148)
  t.equal(one('select count(*) from message_contents'), 1, 'one content for all')
  t.equal(one('select count(*) from campaign_letters'), 0)
  const { message_id: ann } = (await get(`/campaigns/${id}/recipients?limit=1`)).body.data[0]
  t.match((await get(`/email/${ann}`)).body.data, { to: 'c2@x.test', status: 'delivered', campaign_id: id })
  const raw = String((await capture(ann)).body.data.raw)
  const mail = await simpleParser(Buffer.from(raw, 'latin1'))
  t.match(mail, { subject: 'Hi Ann', from: { value: [{ name: 'Shop' }] } })
  t.match(mail.html, 'Hello Ann')
  t.ok(mail.headers.get('list'), 'there is a way to unsubscribe')
  t.same(
    [
      one("select count(*) from events where kind = 'campaign.sent'"),
      one("select payload from events where kind = 'campaign.completed'"),
    ],
    [
      1,
      JSON.stringify({
        ...{ campaignId: id, name: 'January', totalRecipients: 148 },
        stats: {
          ...{ sends: 148, delivered: 148, opens: 0, unique_opens: 0, clicks: 0, unique_clicks: 0 },
          ...{ bounces: 0, complaints: 0, unsubscribes: 0 },
        },
      }),
    ],
  )
  const analytics = (await get('/analytics?period=1d')).body.data
  t.match(analytics, { campaign_sends: 148, delivered: 148 })
})

// proves: Email > Applies to POST /email/send POST
// answers: POST /campaigns/{id}/send/api: idempotency_conflict
t.test('sending takes an Idempotency-Key, without which it is refused, and happens once', async t => {
  const { draft, sendIt, campaignOnce, post, one } = await openCampaigns(t)
  const id = await draft(addresses(3))
  t.match(await post(`/campaigns/${id}/send/api`, {}), {
    status: 400,
    body: { error: { code: 'validation_error', path: 'Idempotency-Key' } },
  })
  const first = await sendIt(id, {}, undefined, 'same')
  const again = await sendIt(id, {}, undefined, 'same')
  t.same([first.status, again.status, again.body], [202, 202, first.body])
  t.same(
    [first, again].map(({ headers }) => headers.get('X-Idempotency-Status')),
    ['new', 'cached'],
  )
  t.match(await sendIt(id, { send_at: '2026-01-05T12:00:00Z' }, undefined, 'same'), {
    status: 409,
    body: { error: { code: 'idempotency_conflict' } },
  })
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.equal(one('select count(*) from messages'), 3)
})

// proves: States and transitions > Campaign POST send | Campaign statuses after draft and
// proves: Campaigns and templates > POST /campaigns/:id/send/api
// answers: DELETE /campaigns/{id}: conflict; PATCH /campaigns/{id}: conflict; POST /campaigns/{id}/resume: conflict
// answers: POST /campaigns/{id}/send/api: conflict
t.test('what was sent is neither changed, sent again nor deleted', async t => {
  const { draft, sendIt, patch, remove, post } = await openCampaigns(t)
  const id = await draft(addresses(1))
  await sendIt(id)
  const refused = { status: 409, body: { error: { code: 'conflict' } } }
  t.match(await sendIt(id), refused)
  t.match(await patch(`/campaigns/${id}`, { name: 'y' }), refused)
  t.match(await remove(`/campaigns/${id}`), refused)
  t.match(await post(`/campaigns/${id}/resume`, {}), refused)
})

// proves: States and transitions > Campaign POST send; Campaigns and templates > POST /campaigns/:id/send/api
// answers: POST /campaigns/{id}/send/api: missing_from_email, domain_invalid, template_not_found, invalid_schedule
t.test('a campaign is checked for completeness when it is sent', async t => {
  const { draft, sendIt, patch, remove, get, run, workspaceId } = await openCampaigns(t)
  const id = await draft(addresses(2))
  for (const send_at of ['2026-01-05T09:59:59Z', '2026-01-08T10:00:01Z'])
    t.match(await sendIt(id, { send_at }), {
      status: 400,
      body: { error: { code: 'invalid_schedule', path: 'send_at' } },
    })
  t.match(await sendIt(id, { send_at: 'soon' }), { status: 400, body: { error: { path: 'send_at' } } })
  await run('workspace', 'set', workspaceId, 'default_from_email=')
  t.match(await sendIt(id), { status: 400, body: { error: { code: 'missing_from_email' } } })
  await run('domain', 'add', 'shop.test', '--workspace', workspaceId)
  await patch(`/campaigns/${id}`, { from_email: 'a@shop.test' })
  t.match(await sendIt(id), { status: 403, body: { error: { code: 'domain_invalid' } } })
  await patch(`/campaigns/${id}`, { from_email: 'a@elsewhere.test' })
  const { list_id: list, template_id: template } = (await get(`/campaigns/${id}`)).body.data
  await remove(`/lists/${list}`)
  t.match(await sendIt(id), { status: 404, body: { error: { code: 'not_found', path: 'list_id' } } })
  await remove(`/templates/${template}`)
  t.match(await sendIt(id), { status: 404, body: { error: { code: 'template_not_found' } } })
  t.match((await get(`/campaigns/${id}`)).body.data, { status: 'draft' })
})

// proves: Campaigns and templates > POST /campaigns/:id/send/api
// proves: decisions: Added after the whole contract > Campaigns A scheduled campaign evaluates
t.test('a scheduled campaign evaluates its segment when it starts, and never again', async t => {
  const { draft, sendIt, campaignOnce, get, patch, make, one, clock } = await openCampaigns(t)
  const id = await draft(addresses(5))
  const segment = await make('/segments', {
    name: 'C',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'starts_with', value: 'c' }] },
  })
  await patch(`/campaigns/${id}`, { segment_id: segment })
  t.match((await sendIt(id, { send_at: '2026-01-05T11:00:00Z' })).body.data, {
    status: 'scheduled',
    scheduled_at: '2026-01-05T11:00:00.000Z',
    total_recipients: 5,
  })
  t.equal(one('select count(*) from campaign_recipients'), 0)
  await make('/contacts', { email: 'c6@x.test' })
  await make('/contacts', { email: 'd1@x.test' })
  const [gone] = (await get('/contacts?search=c0@x.test')).body.data
  await patch(`/contacts/${gone.id}`, { subscribed: false })
  const rule = { field: 'email', operator: 'contains', value: '@x.test' }
  await patch(`/segments/${segment}`, { conditions: { match: 'all', rules: [rule] } })
  t.match((await get(`/campaigns/${id}`)).body.data, { total_recipients: 5 }, 'an estimate')
  t.match((await get(`/campaigns/${id}/audience`)).body.data, { total: 7, mailable: 6 })
  clock.skip(3_590_000)
  await clock.advance(10_000)
  t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'completed'), {
    total_recipients: 6,
    excluded: { unsubscribed: 1, bounced: 0, suppressed: 0 },
    stats: { delivered: 6 },
  })
  t.equal(one("select count(*) from messages where recipient = 'd1@x.test'"), 1)
  await make('/contacts', { email: 'c7@x.test' })
  await clock.advance(10_000)
  t.equal(one('select count(*) from messages'), 6)
})

t.test('a scheduled campaign whose list is deleted before its time fails, and mails nobody', async t => {
  const { draft, sendIt, campaignOnce, one, clock, dataDir } = await openCampaigns(t)
  const id = await draft(addresses(3))
  await sendIt(id, { send_at: '2026-01-05T11:00:00Z' })
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
  handle.prepare('delete from lists').run()
  handle.close()
  clock.skip(3_590_000)
  await clock.advance(10_000)
  t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'failed'), {
    error: /list no longer exists/,
  })
  await campaignOnce(id, 'its counts', one => one.total_recipients === 0)
  t.equal(one('select count(*) from messages'), 0)
})

// proves: Campaigns and templates > POST /campaigns/:id/send/api
// proves: decisions: Added after the whole contract > Campaigns A scheduled campaign evaluates
t.test('who unsubscribes, bounces, is suppressed or deleted before the hand-over is skipped', async t => {
  const { draft, sendIt, campaignOnce, get, post, patch, remove, one, clock } = await openCampaigns(t)
  // Its recipients are fixed now, and handed over when the window opens.
  const id = await draft(addresses(6), { send_window: { from: '11:00', until: '12:00' } })
  await sendIt(id)
  await until('the rows', () => one('select count(*) from campaign_recipients') === 6)
  const contacts = (await get('/contacts')).body.data as { id: string; email: string }[]
  const idOf = (name: string) => contacts.find(one => one.email === `${name}@x.test`)!.id
  await patch(`/contacts/${idOf('c0')}`, { subscribed: false })
  await remove(`/contacts/${idOf('c1')}`)
  await post('/suppressions', { email: 'c2@x.test', reason: 'hard_bounce' })
  await post('/suppressions', { email: '@gone.test' })
  await patch(`/contacts/${idOf('c3')}`, { email: 'c3@gone.test' })
  await patch(`/contacts/${idOf('c4')}`, { email: 'new@x.test' })
  await until('the contact follows', async () => (await get(`/contacts/${idOf('c2')}`)).body.data.bounced)
  clock.skip(3_590_000)
  await clock.advance(60_000)
  t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'completed'), {
    total_recipients: 6,
    progress: { done: 2, skipped: 4, pending: 0, queued: 0 },
  })
  const recipients = (await get(`/campaigns/${id}/recipients?status=skipped`)).body
  t.equal(recipients.pagination.total, 4)
  t.same(
    recipients.data.map((one: { reason: string }) => one.reason),
    ['unsubscribed', 'deleted', 'bounced', 'suppressed'],
  )
  t.equal(one("select count(*) from messages where recipient = 'new@x.test'"), 1, 'where they are now')
})

t.test('who would get an empty subject is skipped, and the others get theirs', async t => {
  const { draft, sendIt, campaignOnce, get, patch } = await openCampaigns(t)
  const id = await draft(addresses(3), { subject: '{{firstName}}' })
  const [{ id: contact }] = (await get('/contacts?search=c1@x.test')).body.data
  await patch(`/contacts/${contact}`, { first_name: 'Ann' })
  await sendIt(id)
  t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'completed'), {
    progress: { done: 1, skipped: 2, queued: 0 },
    stats: { delivered: 1 },
  })
  const { data } = (await get(`/campaigns/${id}/recipients?status=skipped`)).body
  t.match(data, [{ reason: 'empty_subject' }, { reason: 'empty_subject' }])
})

// proves: States and transitions > Campaign statuses after draft and
// answers: POST /campaigns/{id}/cancel: conflict; POST /campaigns/{id}/pause: conflict
// answers: POST /campaigns/{id}/resume: conflict
t.test('pause stops the hand-over, resume continues with the rest, cancel is final', async t => {
  const { draft, sendIt, campaignOnce, post, get, one, clock } = await openCampaigns(t)
  const id = await draft(addresses(40), { rate_per_hour: 3_600 })
  t.match(await post(`/campaigns/${id}/pause`, {}), conflict)
  await sendIt(id)
  await campaignOnce(id, 'the first', ({ progress }) => progress.done >= 2)
  t.match(await post(`/campaigns/${id}/pause`, {}), { status: 200, body: { data: { status: 'paused' } } })
  t.match(await post(`/campaigns/${id}/pause`, {}), conflict)
  const handed = Number(one('select count(*) from messages'))
  clock.skip(300_000)
  await clock.advance(10_000)
  t.equal(one('select count(*) from messages'), handed)
  t.match(await post(`/campaigns/${id}/resume`, {}), { status: 200, body: { data: { status: 'sending' } } })
  t.match(await post(`/campaigns/${id}/resume`, {}), conflict)
  await until('more', async () => {
    await clock.advance(1_000)
    return Number(one('select count(*) from messages')) > handed + 3
  })
  t.match(await post(`/campaigns/${id}/cancel`, {}), { status: 200, body: { data: { status: 'cancelled' } } })
  t.match(await post(`/campaigns/${id}/cancel`, {}), conflict)
  const end = await campaignOnce(id, 'the end', ({ progress: { pending, queued } }) => pending + queued === 0)
  t.equal(end.progress.done + end.progress.cancelled, 40)
  t.equal(one('select count(*) from messages'), one('select count(distinct recipient) from messages'))
  t.match((await get(`/campaigns/${id}/recipients?status=cancelled`)).body.pagination, {
    total: end.progress.cancelled,
  })
  t.match(await post(`/campaigns/${id}/resume`, {}), conflict)
})

// proves: States and transitions > Campaign statuses after draft and
t.test('a campaign paused before its time is scheduled again when it is resumed, or cancelled', async t => {
  const { draft, sendIt, post, campaignOnce, clock, one } = await openCampaigns(t)
  const [id, other] = [await draft(addresses(2)), await draft(addresses(2, 'y.test'))]
  await sendIt(id, { send_at: '2026-01-05T11:00:00Z' })
  await sendIt(other, { send_at: '2026-01-05T11:00:00Z' })
  t.match((await post(`/campaigns/${id}/pause`, {})).body.data, { status: 'paused' })
  t.match((await post(`/campaigns/${id}/resume`, {})).body.data, { status: 'scheduled' })
  t.match((await post(`/campaigns/${other}/cancel`, {})).body.data, { status: 'cancelled' })
  clock.skip(3_590_000)
  await clock.advance(10_000)
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.match(await campaignOnce(other, 'the end', one => one.total_recipients === 0), {
    status: 'cancelled',
    progress: { pending: 0, cancelled: 0 },
  })
  t.equal(one('select count(*) from messages'), 2)
})

// proves: States and transitions > Campaign statuses after draft and
t.test('cancel takes back what is still queued', async t => {
  const { draft, sendIt, post, campaignOnce, one } = await openCampaigns(t, {
    // Nobody answers there.
    env: { POSTROAD_MTA_CAPTURE: 'false', POSTROAD_MTA_RETRY_FIRST: '1h' },
    toml: '[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = 9\ntls = "none"',
  })
  const id = await draft(addresses(30))
  await sendIt(id)
  await campaignOnce(id, 'the hand-over', ({ progress }) => progress.queued === 30)
  await post(`/campaigns/${id}/cancel`, {})
  await campaignOnce(id, 'the end', ({ progress }) => progress.cancelled === 30)
  await until('an empty queue', () => one('select count(*) from queue') === 0)
  t.equal(one("select count(*) from messages where status = 'failed'"), 30)
})

t.test(
  "a test mail goes to the given addresses as the campaign's mail would, and counts in no campaign",
  async t => {
    const { draft, post, get, one, make, messageOnce, key } = await openCampaigns(t)
    const id = await draft(addresses(2), { subject: 'Hi {{firstName|you}}' })
    await make('/contacts', { email: 'me@y.test', first_name: 'Me' })
    const { status, body } = await post(`/campaigns/${id}/test`, { to: ['me@y.test', 'nobody'] })
    t.match({ status, body }, { status: 200, body: { data: { sent: 1, skipped: 1, total: 2 } } })
    const [{ message_id: message }] = body.data.results
    await messageOnce(key, message, 'delivered')
    t.match((await get(`/email/${message}`)).body.data, { subject: 'Hi {{firstName|you}}', to: 'me@y.test' })
    t.equal(one('select count(*) from messages where campaign_id is not null'), 0)
    t.match((await get(`/campaigns/${id}`)).body.data, { status: 'draft', stats: { sends: 0 } })
    t.match(await post(`/campaigns/${id}/test`, { to: 'nobody' }), {
      status: 400,
      body: { error: { path: 'to' } },
    })
    t.match(await post(`/campaigns/${id}/test`, { to: addresses(11) }), { status: 400 })
  },
)

// answers: POST /campaigns/{id}/test: limit_reached, missing_from_email, domain_invalid, template_not_found
t.test('a test is refused for what the campaign would be refused for, and for limits', async t => {
  const { draft, post, patch, remove, get, run, workspaceId } = await openCampaigns(t)
  const id = await draft([])
  const test = (to = 'a@x.test') => post(`/campaigns/${id}/test`, { to })
  await run('workspace', 'set', workspaceId, 'hourly_limit=1')
  t.equal((await test()).status, 200)
  t.match(await test(), { status: 403, body: { error: { code: 'limit_reached' } } })
  await run('workspace', 'set', workspaceId, 'hourly_limit=0', 'default_from_email=')
  t.match(await test(), { status: 400, body: { error: { code: 'missing_from_email' } } })
  await run('domain', 'add', 'shop.test', '--workspace', workspaceId)
  await patch(`/campaigns/${id}`, { from_email: 'a@shop.test' })
  t.match(await test(), { status: 403, body: { error: { code: 'domain_invalid' } } })
  await remove(`/templates/${(await get(`/campaigns/${id}`)).body.data.template_id}`)
  t.match(await test(), { status: 404, body: { error: { code: 'template_not_found' } } })
})

// proves: Email > Applies to POST /email/send POST
// answers: POST /campaigns: conflict
t.test('a request that comes while the first is in flight is a conflict, and sends nothing', async t => {
  const { draft, sendIt, campaignOnce, get, post, one } = await openCampaigns(t)
  const id = await draft(addresses(3))
  const sent = await Promise.all(Array.from({ length: 10 }, () => sendIt(id, {}, undefined, 'same')))
  const other = sent.filter(({ status }) => status !== 202)
  for (const answer of other) t.match(answer, { status: 409, body: { error: { code: 'conflict' } } })
  t.ok(sent.some(({ status }) => status === 202))
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.equal(one('select count(*) from messages'), 3)
  const { template_id, list_id } = (await get(`/campaigns/${id}`)).body.data
  const body = { name: 'x', subject: 'x', template_id, list_id }
  const headers = { 'Idempotency-Key': 'made' }
  const made = await Promise.all(Array.from({ length: 10 }, () => post('/campaigns', body, { headers })))
  const late = made.filter(({ status }) => status !== 201)
  for (const answer of late) t.match(answer, { status: 409, body: { error: { code: 'conflict' } } })
  t.equal((await get('/campaigns')).body.pagination.total, 2)
})

// proves: decisions: Email > Sandbox each workspace has a
t.test('with a sandbox key a campaign runs to its end without mail, and the simulator plays', async t => {
  const { draft, sendIt, as, makeKey, campaignOnce, one } = await openCampaigns(t)
  const sandbox = as(await makeKey('--sandbox'))
  const roles = ['delivered', 'bounced', 'complained', 'opened', 'clicked']
  const id = await draft(
    [...roles.map(role => `${role}@simulator.test`), 'opened+2@simulator.test', 'ann@x.test'],
    {},
    sandbox,
  )
  t.match(await sendIt(id, {}, sandbox), { status: 202, body: { data: { total_recipients: 7 } } })
  t.match(await campaignOnce(id, 'the end', ({ status }) => status === 'completed', sandbox), {
    is_sandbox: true,
    progress: { done: 7, pending: 0, queued: 0 },
    stats: {
      ...{ sends: 6, delivered: 5, opens: 3, unique_opens: 3, clicks: 1, unique_clicks: 1 },
      ...{ bounces: 1, complaints: 1, unsubscribes: 0 },
    },
    rates: { delivery_rate: 0.8333, open_rate: 0.6, click_rate: 0.2, bounce_rate: 0.1667 },
  })
  t.equal(one('select count(*) from queue'), 0)
  t.equal(one('select count(*) from captured_mails'), 0)
  t.match((await sandbox.get(`/campaigns/${id}/links`)).body.data, [
    { url: 'https://simulator.test/', clicks: 1, unique_clicks: 1 },
  ])
})
