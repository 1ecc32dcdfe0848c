/** Campaigns over HTTP on the running appliance: drafts, their fields and audience. */
import t from 'tap'
import { addresses, MADE_UP, openCampaigns } from './open-campaigns.js'

// proves: Other resources > Campaign name subject template_id (all; States and transitions > Campaign POST create
// proves: Campaigns and templates > GET /campaigns | POST /campaigns | GET /campaigns/:id
t.test('a campaign is made as a draft, read, listed, changed and deleted', async t => {
  const { get, post, patch, remove, make } = await openCampaigns(t)
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const list = await make('/lists', { name: 'News' })
  const segment = await make('/segments', { name: 'All' })
  const said = { name: ' January ', subject: '<b>News</b> for {{firstName}}', template_id: template }
  const made = await post('/campaigns', { ...said, list_id: list })
  const draft = {
    ...{ name: 'January', subject: 'News for {{firstName}}', template_id: template, list_id: list },
    ...{ segment_id: null, from_email: null, rate_per_hour: null, send_window: null, status: 'draft' },
    ...{ total_recipients: 0, is_sandbox: false, error: null, scheduled_at: null },
    stats: { sends: 0, delivered: 0, opens: 0, unique_opens: 0, clicks: 0, unique_clicks: 0, bounces: 0 },
    rates: { delivery_rate: 0, open_rate: 0, click_rate: 0, bounce_rate: 0, complaint_rate: 0 },
  }
  t.match(made, { status: 201, body: { data: draft } })
  const { id } = made.body.data
  t.match(await get(`/campaigns/${id}`), { status: 200, body: { data: draft } })
  const changes = {
    ...{
      subject: 'Hello',
      segment_id: segment,
      from_email: 'Ann <ann@shop.test>',
      reply_to: 'help@shop.test',
    },
    ...{ track_opens: false, rate_per_hour: 1_000 },
    send_window: { days: [5, 1, 1], from: '09:00', until: '17:30' },
  }
  t.match(await patch(`/campaigns/${id}`, changes), {
    status: 200,
    body: {
      data: { ...changes, list_id: null, name: 'January', send_window: { days: [1, 5], from: '09:00' } },
    },
  })
  t.match(await patch(`/campaigns/${id}`, { from_email: null, send_window: null, rate_per_hour: null }), {
    status: 200,
    body: { data: { from_email: null, send_window: null, rate_per_hour: null, reply_to: 'help@shop.test' } },
  })
  await make('/campaigns', { ...said, name: 'February', list_id: list })
  t.match((await get('/campaigns')).body, {
    data: [{ name: 'February' }, { name: 'January' }],
    pagination: { total: 2 },
  })
  t.match((await get('/campaigns?status=draft&limit=1&offset=1')).body, {
    data: [{ name: 'January' }],
    pagination: { total: 2, has_more: false },
  })
  t.match((await get('/campaigns?status=sending')).body, { data: [], pagination: { total: 0 } })
  t.match(await remove(`/campaigns/${id}`), { status: 200, body: { data: { success: true } } })
  t.equal((await get(`/campaigns/${id}`)).status, 404)
  t.equal((await remove(`/campaigns/${id}`)).status, 404)
})

// proves: Campaigns and templates > POST /campaigns
// operations: POST /campaigns/{id}/duplicate
t.test(
  'a duplicate is a draft with the same content, audience and settings, whatever the campaign is',
  async t => {
    const { get, post, make, draft, sendIt, campaignOnce, as, makeKey } = await openCampaigns(t)
    const fields = {
      ...{
        from_email: 'Ann <ann@shop.test>',
        reply_to: 'help@shop.test',
        track_opens: false,
        rate_per_hour: 900_000,
      },
      send_window: { from: '00:00', until: '23:59' },
    }
    const id = await draft(['a@x.test'], fields)
    await sendIt(id)
    await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
    const { data: sent } = (await get(`/campaigns/${id}`)).body
    const idempotent = { headers: { 'Idempotency-Key': 'copy' } }
    const copy = await post(`/campaigns/${id}/duplicate`, {}, idempotent)
    t.match(copy, {
      status: 201,
      body: {
        data: {
          ...{ ...fields, name: 'Copy of January', subject: 'News', status: 'draft', started_at: null },
          ...{
            list_id: sent.list_id,
            template_id: sent.template_id,
            total_recipients: 0,
            stats: { sends: 0 },
          },
        },
      },
    })
    t.not(copy.body.data.id, id)
    t.equal(
      (await post(`/campaigns/${id}/duplicate`, {}, idempotent)).body.data.id,
      copy.body.data.id,
      'once',
    )
    t.match(await post(`/campaigns/${id}/duplicate`, { name: 'x' }, idempotent), {
      status: 409,
      body: { error: { code: 'idempotency_conflict' } },
    })
    t.equal((await get('/campaigns')).body.pagination.total, 2)
    t.match((await post(`/campaigns/${id}/duplicate`, { name: ' February ' })).body.data, {
      name: 'February',
    })
    t.match((await get('/activity')).body.data[0], { action: 'campaign.created', subject: 'February' })
    const long = await make('/campaigns', {
      ...{ name: 'x'.repeat(200), subject: 'x', template_id: sent.template_id, list_id: sent.list_id },
    })
    t.equal((await post(`/campaigns/${long}/duplicate`, {})).body.data.name.length, 200)
    t.match(await post(`/campaigns/${id}/duplicate`, { name: ' ' }), {
      status: 400,
      body: { error: { code: 'validation_error', path: 'name' } },
    })
    t.equal((await post(`/campaigns/${MADE_UP}/duplicate`, {})).status, 404)
    t.equal((await as(await makeKey('--sandbox')).post(`/campaigns/${id}/duplicate`, {})).status, 404)
  },
)

// proves: Other resources > Campaign name subject template_id (all; States and transitions > Campaign POST create
// proves: Campaigns and templates > POST /campaigns
// answers: PATCH /campaigns/{id}: template_not_found; POST /campaigns: template_not_found, not_found
t.test('what cannot be a campaign is refused by name', async t => {
  const { post, make, patch } = await openCampaigns(t)
  const [template, list] = [
    await make('/templates', { name: 'T', html: '<p>Hello</p>' }),
    await make('/lists', { name: 'News' }),
  ]
  const good = { name: 'x', subject: 'x', template_id: template, list_id: list }
  const refused: readonly (readonly [object, number, string, string])[] = [
    [{ ...good, name: undefined }, 400, 'validation_error', 'name'],
    [{ ...good, name: ' ' }, 400, 'validation_error', 'name'],
    [{ ...good, subject: undefined }, 400, 'validation_error', 'subject'],
    [{ ...good, subject: 'x'.repeat(999) }, 400, 'validation_error', 'subject'],
    [{ ...good, subject: '<b></b>' }, 400, 'validation_error', 'subject'],
    [{ ...good, subject: 'a\nb' }, 400, 'validation_error', 'subject'],
    [{ ...good, subject: '{{#if a}}' }, 400, 'validation_error', 'subject'],
    [{ ...good, template_id: undefined }, 400, 'validation_error', 'template_id'],
    [{ ...good, template_id: MADE_UP }, 404, 'template_not_found', 'template_id'],
    [{ ...good, list_id: undefined }, 400, 'validation_error', 'list_id'],
    [{ ...good, segment_id: MADE_UP }, 400, 'validation_error', 'segment_id'],
    [{ ...good, list_id: MADE_UP }, 404, 'not_found', 'list_id'],
    [{ ...good, list_id: undefined, segment_id: 'x' }, 404, 'not_found', 'segment_id'],
    [{ ...good, from_email: 'nobody' }, 400, 'validation_error', 'from_email'],
    [{ ...good, from_name: 'a\nb' }, 400, 'validation_error', 'from_name'],
    [{ ...good, reply_to: 'é@x.test' }, 400, 'validation_error', 'reply_to'],
    [{ ...good, rate_per_hour: 0 }, 400, 'validation_error', 'rate_per_hour'],
    [
      { ...good, send_window: { from: '9:00x', until: '17:00' } },
      400,
      'validation_error',
      'send_window.from',
    ],
    [
      { ...good, send_window: { from: '24:00', until: '17:00' } },
      400,
      'validation_error',
      'send_window.from',
    ],
    [
      { ...good, send_window: { from: '09:00', until: '09:00' } },
      400,
      'validation_error',
      'send_window.until',
    ],
    [{ ...good, status: 'sending' }, 400, 'validation_error', 'status'],
  ]
  for (const [body, status, code, path] of refused)
    t.match(await post('/campaigns', body), { status, body: { error: { code, path } } }, `${path} ${code}`)
  const id = await make('/campaigns', good)
  t.match(await patch(`/campaigns/${id}`, { list_id: list, segment_id: list }), { status: 400 })
  t.match(await patch(`/campaigns/${id}`, { template_id: MADE_UP }), {
    status: 404,
    body: { error: { code: 'template_not_found' } },
  })
})

t.test('a campaign of another workspace, or of the sandbox, does not exist', async t => {
  const { draft, as, ...postroad } = await openCampaigns(t)
  const id = await draft([])
  const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'Other')
  const strangers = [await postroad.makeKey('--workspace', other), await postroad.makeKey('--sandbox')]
  for (const key of strangers) {
    const stranger = as(key)
    for (const path of ['', '/audience', '/recipients', '/links'])
      t.equal((await stranger.get(`/campaigns/${id}${path}`)).status, 404)
    t.equal((await stranger.patch(`/campaigns/${id}`, { name: 'Mine' })).status, 404)
    t.equal((await stranger.remove(`/campaigns/${id}`)).status, 404)
    for (const act of ['pause', 'resume', 'cancel'])
      t.equal((await stranger.post(`/campaigns/${id}/${act}`, {})).status, 404)
    t.equal((await stranger.post(`/campaigns/${id}/test`, { to: 'a@x.test' })).status, 404)
    t.equal((await postroad.sendIt(id, {}, stranger)).status, 404)
    t.same((await stranger.get('/campaigns')).body.data, [])
  }
})

// proves: decisions: Added after the whole contract > Campaigns A scheduled campaign evaluates
// operations: GET /campaigns/{id}/audience
t.test('the audience says who is meant, who may be mailed, and why the others may not', async t => {
  const { draft, get, post, patch, make } = await openCampaigns(t)
  const id = await draft(addresses(6))
  await make('/contacts', { email: 'elsewhere@x.test' })
  const contacts = (await get('/contacts')).body.data as { id: string; email: string }[]
  const idOf = (email: string) => contacts.find(one => one.email === email)!.id
  t.match((await get(`/campaigns/${id}/audience`)).body.data, { total: 6, mailable: 6 })
  await patch(`/contacts/${idOf('c0@x.test')}`, { subscribed: false })
  await post('/suppressions', { email: 'c1@x.test', reason: 'hard_bounce' })
  await post('/suppressions', { email: 'c2@x.test', scope: 'marketing' })
  const segment = await make('/segments', {
    name: 'All',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'ends_with', value: 'x.test' }] },
  })
  const { status, body } = await get(`/campaigns/${id}/audience`)
  t.equal(status, 200)
  const { total, mailable, unsubscribed, suppressed, bounced } = body.data as Record<string, number>
  t.same([total, mailable, unsubscribed! + suppressed! + bounced!], [6, 3, 3])
  await patch(`/campaigns/${id}`, { segment_id: segment })
  t.match((await get(`/campaigns/${id}/audience`)).body.data, { total: 7, mailable: 4 })
  const dynamic = await make('/lists', {
    ...{ name: 'D', type: 'dynamic' },
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'equals', value: 'c5@x.test' }] },
  })
  await patch(`/campaigns/${id}`, { list_id: dynamic })
  t.match((await get(`/campaigns/${id}/audience`)).body.data, { total: 1, mailable: 1 })
})

// proves: Email > Applies to POST /email/send POST
// answers: POST /campaigns: idempotency_conflict
t.test('a campaign made with an Idempotency-Key is made once', async t => {
  const { draft, get, post } = await openCampaigns(t)
  const { template_id, list_id } = (await get(`/campaigns/${await draft([])}`)).body.data
  const body = { name: 'x', subject: 'x', template_id, list_id }
  const headers = { 'Idempotency-Key': 'once' }
  const [first, again] = [
    await post('/campaigns', body, { headers }),
    await post('/campaigns', body, { headers }),
  ]
  t.same([first.status, again.status, again.body], [201, 201, first.body])
  t.equal(again.headers.get('X-Idempotency-Status'), 'cached')
  t.match(await post('/campaigns', { ...body, name: 'y' }, { headers }), {
    status: 409,
    body: { error: { code: 'idempotency_conflict' } },
  })
  t.equal((await get('/campaigns')).body.pagination.total, 2)
})
