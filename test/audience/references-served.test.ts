/** What refers to lists, tags, segments and templates, over HTTP on the running appliance: evaluated, renamed, and kept from deletion. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { openCampaigns } from '../campaigns/open-campaigns.js'

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const at = (path: string) => `/api/v1${path}`
  const post = (path: string, body: object = {}) => postroad.post(at(path), body, { key })
  return {
    ...postroad,
    post,
    get: (path: string) => postroad.get(at(path), { key }),
    patch: (path: string, body: object) => postroad.patch(at(path), body, { key }),
    remove: (path: string) => postroad.delete(at(path), { key }),
    make: async (path: string, body: object): Promise<string> =>
      String((await post(path, body)).body.data.id),
    count: async (segment: string): Promise<number> =>
      Number((await post(`/segments/${segment}/estimate`)).body.data.count),
  }
}

const matching = (field: string, operator: string, value: unknown) => ({
  conditions: { match: 'all', rules: [{ field, operator, value }] },
})
const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

async function openCampaignDraft(make: (path: string, body: object) => Promise<string>): Promise<string> {
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const list = await make('/lists', { name: 'L' })
  return make('/campaigns', { name: 'Spring', subject: 'Hello', template_id: template, list_id: list })
}

const refusal = (path: string) => ({ status: 400, body: { error: { code: 'validation_error', path } } })

t.test('a rule about a dynamic list matches what its conditions match, however deep', async t => {
  const { make, count, get } = await open(t)
  for (const [email, age] of [
    ['a@x.example', 20],
    ['b@x.example', 40],
    ['c@x.example', '60'],
  ])
    await make('/contacts', { email, attributes: { age } })
  const adults = await make('/lists', { name: 'Over 30', type: 'dynamic', ...matching('age', 'gt', 30) })
  const deeper = await make('/lists', {
    name: 'Deeper',
    type: 'dynamic',
    ...matching('lists', 'in', ['over 30']),
  })
  const of = (operator: string, value: unknown) =>
    make('/segments', { name: 'S', ...matching('lists', operator, value) })
  t.equal(await count(await of('equals', adults)), 2)
  t.equal(await count(await of('not_equals', 'Over 30')), 1)
  t.equal(await count(await of('contains', deeper)), 2)
  t.match((await get(`/lists/${deeper}`)).body.data, { member_count: 2 })
})

t.test(
  'conditions must name lists and tags that exist, and a dynamic list cannot be made of itself',
  async t => {
    const { make, post, patch } = await open(t)
    const path = 'conditions.rules.0.value'
    await make('/tags', { name: 'vip' })
    t.match(await post('/segments', { name: 'S', ...matching('tags', 'equals', 'vpi') }), refusal(path))
    t.match(
      await post('/segments', { name: 'S', ...matching('tags', 'in', ['VIP', 'vpi']) }),
      refusal(`${path}.1`),
    )
    t.match(await post('/segments', { name: 'S', ...matching('tags', 'in', ['VIP']) }), { status: 201 })
    t.match(await post('/segments', { name: 'S', ...matching('lists', 'not_equals', 'none') }), refusal(path))
    const a = await make('/lists', { name: 'A', type: 'dynamic', ...matching('email', 'contains', 'x') })
    await make('/lists', { name: 'B', type: 'dynamic', ...matching('lists', 'equals', a) })
    t.match(await patch(`/lists/${a}`, matching('lists', 'equals', 'A')), refusal(path))
    t.match(await patch(`/lists/${a}`, matching('lists', 'equals', 'B')), refusal(path), 'by way of another')
    const flow = { name: 'F', trigger_type: 'contact_created' }
    t.match(
      await post('/automations', { ...flow, trigger_config: matching('tags', 'equals', 'vpi') }),
      refusal(`trigger_config.${path}`),
    )
    const step = { step_type: 'condition', config: { field: 'tags', operator: 'equals', value: 'vpi' } }
    const id = await make('/automations', { ...flow, steps: [step] })
    t.match(await patch(`/automations/${id}`, { status: 'active' }), {
      status: 409,
      body: { error: { message: /unknown tag "vpi"/ } },
    })
  },
)

t.test('an attribute that no contact has is warned of', async t => {
  const { make, post, patch } = await open(t)
  await make('/contacts', { email: 'a@x.example', attributes: { plan: '', home: { city: 'Rom' } } })
  const known = await post('/segments', { name: 'S', ...matching('plan', 'equals', 'pro') })
  t.match(known, { status: 201, body: { data: { warnings: [] } } })
  const { id } = known.body.data
  const warning = [{ path: 'conditions.rules.0.field', message: 'no contact has an attribute "plna"' }]
  t.match((await patch(`/segments/${id}`, matching('plna', 'equals', 'pro'))).body.data, {
    warnings: warning,
  })
  t.match((await post(`/segments/${id}/estimate`)).body.data, { count: 0, warnings: warning })
  t.match((await patch(`/segments/${id}`, matching('home.city', 'equals', 'rom'))).body.data, {
    warnings: [],
  })
  const list = { name: 'L', type: 'dynamic', ...matching('attributes.plna', 'is_set', undefined) }
  t.match((await post('/lists', list)).body.data, { member_count: 0, warnings: warning })
})

t.test('segments, lists and automations keep working when a tag or list is renamed', async t => {
  const { make, patch, get, count, clock } = await open(t)
  const ann = await make('/contacts', { email: 'ann@x.example' })
  const tag = await make('/tags', { name: 'vip' })
  const news = await make('/lists', { name: 'News' })
  const segment = await make('/segments', { name: 'S', ...matching('tags', 'in', ['VIP', tag]) })
  const list = await make('/lists', { name: 'L', type: 'dynamic', ...matching('lists', 'equals', 'news') })
  const flow = await make('/automations', {
    name: 'F',
    trigger_type: 'tag_added',
    trigger_config: { tagName: 'vip', ...matching('tags', 'equals', 'vip') },
    steps: [
      { step_type: 'delay', config: { duration: 1, unit: 'minutes' } },
      { step_type: 'condition', config: { field: 'tags', operator: 'equals', value: 'vip' } },
      { step_type: 'tag', config: { action: 'remove', tagName: 'Vip' } },
    ],
  })
  t.match(await patch(`/automations/${flow}`, { status: 'active' }), { status: 200 })
  await patch(`/tags/${tag}`, { name: 'Gold' })
  await patch(`/lists/${news}`, { name: 'Letter' })
  t.match((await get(`/segments/${segment}`)).body.data.conditions.rules, [{ value: ['Gold', tag] }])
  t.match((await get(`/lists/${list}`)).body.data.conditions.rules, [{ value: 'Letter' }])
  t.match((await get(`/automations/${flow}`)).body.data, {
    trigger_config: { tagName: 'Gold', conditions: { rules: [{ value: 'Gold' }] } },
    steps: [{}, { config: { value: 'Gold' } }, { config: { tagName: 'Gold' } }],
  })
  await make(`/tags/${tag}/contacts`, { contact_ids: [ann] })
  t.equal(await count(segment), 1)
  for (let turn = 0; turn < 100 && (await count(segment)) > 0; turn += 1) await clock.advance(1_000)
  t.equal(await count(segment), 0, 'the automation has taken the tag off')
})

// proves: Errors > conflict; decisions: Added after the whole contract > References Deleting a list tag
// answers: DELETE /automations/{id}: conflict; DELETE /lists/{id}: conflict; DELETE /segments/{id}: conflict
// answers: DELETE /tags/{id}: conflict; DELETE /templates/{id}: conflict
t.test(
  'what an active automation, a segment, a dynamic list or a form uses is deleted by force alone',
  async t => {
    const { make, patch, remove, workspaceId, ...appliance } = await open(t)
    await appliance.run('workspace', 'set', workspaceId, 'default_from_email=news@shop.test')
    const tag = await make('/tags', { name: 'vip' })
    const list = await make('/lists', { name: 'News' })
    const template = await make('/templates', { name: 'T', html: '<p>Hello {{unsubscribe_url}}</p>' })
    const segment = await make('/segments', { name: 'Gold', ...matching('tags', 'equals', 'vip') })
    await make('/lists', { name: 'Readers', type: 'dynamic', ...matching('lists', 'equals', list) })
    await make('/forms', { name: 'Sign up', list_ids: [list], fields: [] })
    const target = await make('/automations', { name: 'Target', trigger_type: 'manual' })
    const flow = await make('/automations', {
      name: 'Flow',
      trigger_type: 'segment_entered',
      trigger_config: { segmentId: segment },
      steps: [
        { step_type: 'email', config: { templateId: template, subject: 'Hi' } },
        { step_type: 'move_to_flow', config: { targetFlowId: target } },
      ],
    })
    t.match(await remove(`/segments/${await make('/segments', { name: 'Unused' })}`), { status: 200 })
    t.match(await patch(`/automations/${flow}`, { status: 'active' }), { status: 200 })
    const used = (by: RegExp) => ({ status: 409, body: { error: { code: 'conflict', message: by } } })
    t.match(await remove(`/tags/${tag}`), {
      status: 409,
      body: { error: { code: 'conflict', message: /the tag "vip" is used by segment "Gold"/ } },
    })
    t.match(await remove(`/lists/${list}`), used(/dynamic list "Readers" .*form "Sign up"/))
    for (const path of [`/segments/${segment}`, `/templates/${template}`, `/automations/${target}`]) {
      t.match(await remove(path), used(/active automation "Flow"/), path)
      t.match(await remove(`${path}?force=false`), { status: 409 })
    }
    await patch(`/automations/${flow}`, { status: 'paused' })
    t.match(await remove(`/templates/${template}`), { status: 200 }, 'a paused one does not hold it')
    await patch(`/automations/${flow}`, { status: 'active' })
    for (const path of [`/tags/${tag}`, `/lists/${list}`, `/segments/${segment}`, `/automations/${target}`])
      t.match(await remove(`${path}?force=true`), { status: 200 }, path)
  },
)

t.test('what a scheduled campaign uses is deleted by force alone', async t => {
  const { make, sendIt, remove, clock } = await openCampaigns(t)
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const list = await make('/lists', { name: 'News' })
  const campaign = await make('/campaigns', { name: 'C', subject: 'S', template_id: template, list_id: list })
  t.match(await remove(`/lists/${await make('/lists', { name: 'Unused' })}`), { status: 200 })
  const sendAt = new Date(clock.now() + 3_600_000).toISOString()
  t.match(await sendIt(campaign, { send_at: sendAt }), { status: 202 })
  for (const path of [`/lists/${list}`, `/templates/${template}`]) {
    t.match(await remove(path), {
      status: 409,
      body: { error: { code: 'conflict', message: /scheduled campaign "C"/ } },
    })
    t.match(await remove(`${path}?force=true`), { status: 200 })
  }
})

// proves: decisions: Added after the whole contract > Segment rules With a number
t.test('rules ask who received, opened and clicked a campaign, and what contacts bought', async t => {
  const { make, count, post, get } = await open(t)
  const campaign = await openCampaignDraft(make)
  const ann = await make('/contacts', { email: 'ann@x.example', attributes: { birthday: '1990-01-07' } })
  await make('/contacts', { email: 'bob@x.example', attributes: { birthday: '1990-02-07' } })
  const bought = { contact_id: ann, value: 30, metadata: { product_id: 'shoe-7' } }
  t.equal((await post('/conversions', bought)).status, 201)
  t.equal((await post('/conversions', { ...bought, value: -5, metadata: {} })).status, 201)
  for (const [field, operator, value, expected] of [
    ['campaign_opened', 'equals', campaign, 0],
    ['campaign_opened', 'not_equals', campaign, 2],
    ['campaign_clicked', 'in', [campaign], 0],
    ['campaign_received', 'is_not_set', undefined, 2],
    ['purchase_count', 'gte', 2, 1],
    ['purchase_count', 'equals', 0, 1],
    ['purchase_total', 'equals', 25, 1],
    ['last_purchase_at', 'within_days', 1, 1],
    ['last_purchase_at', 'is_not_set', undefined, 1],
    ['purchased_product', 'equals', 'shoe-7', 1],
    ['purchased_product', 'not_in', ['shoe-7'], 1],
    ['birthday', 'anniversary_in_next_days', 7, 1],
    ['birthday', 'anniversary_in_next_days', 40, 2],
    ['birthday', 'in_next_days', 40, 0],
  ] as const) {
    const segment = await make('/segments', { name: field, ...matching(field, operator, value) })
    t.equal(await count(segment), expected, `${field} ${operator}`)
  }
  const list = { name: 'Buyers', type: 'dynamic', ...matching('purchase_total', 'gt', 10) }
  t.match((await get(`/lists/${await make('/lists', list)}/members`)).body.data, [{ email: 'ann@x.example' }])
})

// proves: decisions: Added after the whole contract > Segment rules With a number
t.test(
  'a rule about campaigns, purchases or coming days that cannot be asked is refused with its path',
  async t => {
    const { post } = await open(t)
    const [operator, value] = ['conditions.rules.0.operator', 'conditions.rules.0.value']
    for (const [field, asked, given, path] of [
      ['campaign_opened', 'equals', 'Spring', value],
      ['campaign_opened', 'equals', MADE_UP, value],
      ['campaign_opened', 'in', [MADE_UP], `${value}.0`],
      ['campaign_opened', 'contains', MADE_UP, operator],
      ['purchase_count', 'gt', 'many', value],
      ['purchase_count', 'starts_with', 1, operator],
      ['purchase_total', 'gt', true, value],
      ['last_purchase_at', 'before', 'yesterday', value],
      ['purchased_product', 'gt', 'a', operator],
      ['birthday', 'anniversary_in_next_days', -1, value],
      ['birthday', 'in_next_days', 1.5, value],
      ['birthday', 'in_next_days', '7', value],
      ['tags', 'in_next_days', 7, operator],
    ] as const)
      t.match(await post('/segments', { name: 'S', ...matching(field, asked, given) }), refusal(path), field)
  },
)

// proves: decisions: Added after the whole contract > Segment rules With a number
t.test('a campaign that a rule names is not deleted without force', async t => {
  const { make, remove } = await open(t)
  const campaign = await openCampaignDraft(make)
  const segment = await make('/segments', {
    name: 'Openers',
    ...matching('campaign_opened', 'equals', campaign),
  })
  await make('/lists', {
    name: 'Clickers',
    type: 'dynamic',
    ...matching('campaign_clicked', 'in', [campaign]),
  })
  const refused = await remove(`/campaigns/${campaign}`)
  t.match(refused, { status: 409, body: { error: { code: 'conflict' } } })
  t.match(
    refused.body.error.message,
    new RegExp(`dynamic list "Clickers" .*segment "Openers" \\(${segment}\\)`),
  )
  t.equal((await remove(`/campaigns/${campaign}?force=true`)).status, 200)
})
