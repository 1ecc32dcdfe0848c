/** Automations and their steps over HTTP on the running appliance: made, changed, activated, and what is refused. */
import t, { type Test } from 'tap'
import { clientOf } from '../support/api/client.js'
import { openTestAppliance } from '../support/program/appliance.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const at = (path: string) => `/api/v1${path}`
  return {
    ...postroad,
    get: (path: string) => postroad.get(at(path), { key }),
    post: (path: string, body: object) => postroad.post(at(path), body, { key }),
    put: (path: string, body: object) => postroad.put(at(path), body, { key }),
    patch: (path: string, body: object) => postroad.patch(at(path), body, { key }),
    remove: (path: string) => postroad.delete(at(path), { key }),
  }
}

/** With things of another workspace, by what they are. */
async function openTwo(t: Test) {
  const own = await open(t)
  const { id } = await own.json<{ id: string }>('workspace', 'create', 'Other')
  const { key } = await own.json<{ key: string }>('key', 'create', '--workspace', id, '--name', 'x')
  const client = clientOf(own.baseUrl)
  const make = async (path: string, body: object): Promise<string> =>
    String((await client.post(`/api/v1${path}`, body, { key })).body.data.id)
  const list = await make('/lists', { name: 'L' })
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const conditions = { match: 'all', rules: [{ field: 'email', operator: 'is_set' }] }
  const foreign = {
    list,
    template,
    segment: await make('/segments', { name: 'S', conditions }),
    form: await make('/forms', { name: 'F', list_ids: [list], fields: [] }),
    campaign: await make('/campaigns', { name: 'C', subject: 'x', template_id: template, list_id: list }),
    flow: await make('/automations', { name: 'A', trigger_type: 'manual' }),
  }
  return { ...own, foreign }
}

const refused = (code: string, path?: string) => ({
  status: code === 'not_found' ? 404 : code === 'conflict' ? 409 : 400,
  body: { error: { code, ...(path === undefined ? {} : { path }) } },
})

// proves: What the service does > Automations (multi-step flows) and campaigns
// proves: Automation > Creation fields name (required) trigger_type; States and transitions > Automation DELETE
// proves: Automations > POST /automations | GET /automations | GET /automations/:id | DELETE /automations/:id
t.test(
  'an automation is created as a draft, shown with steps and run statistics, listed and deleted',
  async t => {
    const { get, post, patch, remove } = await open(t)
    const made = await post('/automations', {
      name: ' Welcome ',
      trigger_type: 'contact_created',
      steps: [{ step_type: 'delay' }, { step_type: 'tag', config: { tagName: 'new' } }],
    })
    const stats = { total: 0, active: 0, completed: 0, failed: 0, paused: 0, cancelled: 0 }
    t.match(made, {
      status: 201,
      body: {
        data: {
          name: 'Welcome',
          status: 'draft',
          trigger_type: 'contact_created',
          trigger_config: { frequency: 'once' },
          stats,
          steps: [
            { step_type: 'delay', position: 0, config: { duration: 1, unit: 'days' } },
            { step_type: 'tag', position: 1, config: { action: 'add', tagName: 'new' } },
          ],
        },
      },
    })
    const { id } = made.body.data
    t.same((await get(`/automations/${id}`)).body, made.body)
    await post('/automations', { name: 'Other', trigger_type: 'manual' })
    t.match((await get('/automations?limit=1')).body, {
      data: [{ name: 'Other', stats }],
      pagination: { total: 2, has_more: true },
    })
    t.match(await patch(`/automations/${id}`, { name: 'Hello' }), {
      status: 200,
      body: { data: { name: 'Hello' } },
    })
    await patch(`/automations/${id}`, { status: 'active' })
    t.match((await get('/automations?status=active')).body, {
      data: [{ name: 'Hello' }],
      pagination: { total: 1 },
    })
    t.match((await get('/automations?status=draft')).body, { data: [{ name: 'Other' }] })
    t.match(await remove(`/automations/${id}`), { status: 200, body: { data: { success: true } } })
    for (const gone of [await get(`/automations/${id}`), await remove(`/automations/${id}`)])
      t.match(gone, refused('not_found'))
    t.match(await patch(`/automations/${id}`, { status: 'active' }), refused('not_found'))
    t.same((await get('/automations')).body.pagination.total, 1)
    t.match(await get(`/automations/${MADE_UP}`), refused('not_found'))
  },
)

/** The table of step types, with what they are where nothing is said. */
const DEFAULTS: Readonly<Record<string, object>> = {
  email: { templateId: null, subject: '', previewText: '' },
  delay: { duration: 1, unit: 'days' },
  condition: {
    ...{ field: '', operator: 'equals', value: '' },
    ...{ trueBranchStepId: null, falseBranchStepId: null },
  },
  tag: { action: 'add', tagName: '' },
  add_to_list: { listId: null },
  remove_from_list: { listId: null },
  update_attribute: { attributeName: '', attributeValue: '' },
  webhook: { url: '', method: 'POST', headers: {} },
  wait_for_event: {
    ...{ eventType: 'email_opened', timeoutDays: 7, timeoutAction: 'continue', timeoutBranch: null },
  },
  move_to_flow: { targetFlowId: '', exitCurrentFlow: true },
}

// proves: Automation > A step has step_type config | email | delay | condition | tag | add_to_list, remove_from_list
// proves: Automation > update_attribute | webhook | wait_for_event | move_to_flow
t.test('a step without config gets the defaults of its type; snake_case is accepted', async t => {
  const { post } = await open(t)
  const { body } = await post('/automations', { name: 'All', trigger_type: 'manual' })
  const path = `/automations/${body.data.id}/steps`
  for (const [step_type, config] of Object.entries(DEFAULTS)) {
    const made = await post(path, { step_type })
    t.same([made.status, made.body.data.config], [201, config], step_type)
  }
  const wait = await post(path, {
    step_type: 'wait_for_event',
    config: { event_type: 'purchase', timeout_days: 0.5, timeout_action: 'skip' },
  })
  t.match(wait.body.data, {
    position: 10,
    config: { eventType: 'purchase', timeoutDays: 0.5, timeoutAction: 'skip', timeoutBranch: null },
  })
})

/** What no config may be, and where the fault is. */
const FAULTS: readonly (readonly [string, object, string])[] = [
  ['email', { subject: 'a\nb' }, 'subject'],
  ['email', { subject: '{{#if' }, 'subject'],
  ['email', { subject: 'x'.repeat(999) }, 'subject'],
  ['delay', { duration: 0 }, 'duration'],
  ['delay', { duration: '1' }, 'duration'],
  ['delay', { unit: 'years' }, 'unit'],
  ['condition', { operator: 'matches' }, 'operator'],
  ['condition', { value: {} }, 'value'],
  ['tag', { action: 'toggle' }, 'action'],
  ['tag', { colour: 'red' }, 'colour'],
  ['add_to_list', { listId: 5 }, 'listId'],
  ['webhook', { url: 'ftp://x.example/' }, 'url'],
  ['webhook', { url: 'http://ann:secret@x.example/' }, 'url'],
  ['webhook', { url: 'https://{{attributes.host}}/x' }, 'url'],
  ['webhook', { url: 'https://x.example{{path}}' }, 'url'],
  ['webhook', { url: 'https:{{email}}' }, 'url'],
  ['webhook', { url: 'https://{{email}}@x.example/' }, 'url'],
  ['webhook', { url: 'https://x.example:{{port}}/' }, 'url'],
  ['webhook', { url: 'https://x.example/{{#if' }, 'url'],
  ['webhook', { url: 'https://x.example/../{{email}}' }, 'url'],
  ['webhook', { method: 'DELETE' }, 'method'],
  ['webhook', { headers: { 'X-A': '{{#if' } }, 'headers.X-A'],
  ['tag', { tagName: '{{#if' }, 'tagName'],
  ['update_attribute', { attributeName: 'x', attributeValue: '{{#if' }, 'attributeValue'],
  ['webhook', { headers: { Host: 'x' } }, 'headers'],
  ['webhook', { headers: { 'X-A': 'a\r\nX-B: b' } }, 'headers.X-A'],
  ['webhook', { body: ['a'] }, 'body'],
  ['webhook', { body: { a: '{{#if' } }, 'body'],
  ['wait_for_event', { eventType: 'email_bounced' }, 'eventType'],
  ['wait_for_event', { timeoutDays: -1 }, 'timeoutDays'],
  ['move_to_flow', { exitCurrentFlow: 'no' }, 'exitCurrentFlow'],
]

// proves: Automation > A step has step_type config | email | delay | condition | tag | add_to_list, remove_from_list
// proves: Automation > update_attribute | webhook | wait_for_event | move_to_flow
t.test('an invalid config gives a 400 that names the field, and nothing is created', async t => {
  const { get, post } = await open(t)
  for (const [step_type, config, field] of FAULTS) {
    const steps = [{ step_type: 'delay' }, { step_type, config }]
    const answer = await post('/automations', { name: 'x', trigger_type: 'manual', steps })
    t.match(
      answer,
      refused('validation_error', `steps.1.config.${field}`),
      JSON.stringify([step_type, config]),
    )
  }
  const trigger = (trigger_type: string, trigger_config: object) =>
    post('/automations', { name: 'x', trigger_type, trigger_config })
  t.match(await trigger('date', { time: '25:00' }), refused('validation_error', 'trigger_config.time'))
  t.match(
    await trigger('date', { offsetDays: 0.5 }),
    refused('validation_error', 'trigger_config.offsetDays'),
  )
  t.match(await trigger('manual', { listId: MADE_UP }), refused('validation_error', 'trigger_config.listId'))
  t.match(
    await trigger('manual', { frequency: 'often' }),
    refused('validation_error', 'trigger_config.frequency'),
  )
  const conditions = { match: 'all', rules: [{ field: 'email', operator: 'like', value: 'x' }] }
  t.match(
    await trigger('manual', { conditions }),
    refused('validation_error', 'trigger_config.conditions.rules.0.operator'),
  )
  t.match(await trigger('birthday', {}), refused('validation_error', 'trigger_type'))
  t.same((await get('/automations')).body.pagination.total, 0)
})

// proves: decisions: Automations > steps[] at creation may carry
t.test('branches may refer to client-chosen step ids, which are replaced by new ones', async t => {
  const { post } = await open(t)
  const { body } = await post('/automations', {
    name: 'Ways',
    trigger_type: 'manual',
    steps: [
      {
        id: 'ask',
        step_type: 'condition',
        config: { field: 'plan', value: 'pro', trueBranchStepId: 'yes', falseBranchStepId: 'no' },
      },
      { id: 'no', step_type: 'tag', config: { tagName: 'free' } },
      { id: 'yes', step_type: 'tag', config: { tagName: 'paying' }, position: 1 },
    ],
  })
  const [ask, yes, no] = body.data.steps
  t.match([yes.config.tagName, no.config.tagName], ['paying', 'free'])
  t.match(ask.config, { trueBranchStepId: yes.id, falseBranchStepId: no.id })
  const twice = [
    { id: 'a', step_type: 'delay' },
    { id: 'A', step_type: 'delay' },
  ]
  t.match(
    await post('/automations', { name: 'x', trigger_type: 'manual', steps: twice }),
    refused('validation_error', 'steps.1.id'),
  )
})

t.test('a duplicate is a draft with the same trigger and steps, whose branches lead to its own', async t => {
  const { get, post, patch, remove } = await open(t)
  const list = (await post('/lists', { name: 'L' })).body.data.id
  const made = await post('/automations', {
    name: 'Welcome',
    trigger_type: 'list_joined',
    trigger_config: { listId: list, frequency: 'every_time' },
    steps: [
      { step_type: 'condition', config: { field: 'plan', value: 'pro', trueBranchStepId: 'call' } },
      { step_type: 'tag', config: { tagName: 'new' } },
      { step_type: 'delay' },
      {
        id: 'call',
        step_type: 'webhook',
        config: { url: 'https://hooks.example/x', headers: { Authorization: 'Bearer secret' } },
      },
    ],
  })
  const { id, steps } = made.body.data
  t.equal((await patch(`/automations/${id}`, { status: 'active' })).status, 200)
  await remove(`/automations/${id}/steps/${steps[2].id}`)
  const copy = await post(`/automations/${id}/duplicate`, {})
  t.match(copy, {
    status: 201,
    body: {
      data: {
        ...{ name: 'Copy of Welcome', status: 'draft', activated_at: null, trigger_type: 'list_joined' },
        ...{ trigger_config: { listId: list, frequency: 'every_time' }, stats: { total: 0 } },
        steps: [
          { step_type: 'condition', position: 0 },
          { step_type: 'tag' },
          { step_type: 'webhook', position: 2 },
        ],
      },
    },
  })
  const { data } = copy.body
  t.equal(data.steps.length, 3)
  t.equal(data.steps[0].config.trueBranchStepId, data.steps[2].id)
  const ids = new Set([...steps, ...data.steps].map((step: { id: string }) => step.id))
  t.equal(ids.size, 7, 'no step shares an id')
  t.equal((await patch(`/automations/${data.id}`, { status: 'active' })).status, 200)
  t.match((await get(`/automations/${id}`)).body.data, { name: 'Welcome', steps: { length: 3 } })
  t.match((await post(`/automations/${id}/duplicate`, { name: 'Second' })).body.data, { name: 'Second' })
  t.match(await post(`/automations/${id}/duplicate`, { name: ' ' }), refused('validation_error', 'name'))
  t.match(await post(`/automations/${MADE_UP}/duplicate`, {}), refused('not_found'))
  await remove(`/lists/${list}?force=true`)
  const orphan = await post(`/automations/${id}/duplicate`, {})
  t.equal(orphan.status, 201, 'what it names may be gone')
  t.match(await patch(`/automations/${orphan.body.data.id}`, { status: 'active' }), refused('conflict'))
})

// proves: Automations > POST /automations/:id/steps | PUT /automations/:id/steps | PATCH /automations/:id/steps/:stepId
// proves: Automations > DELETE /automations/:id/steps/:stepId; decisions: Automations > steps[] at creation may carry
t.test('steps are added, updated, reordered in one request and deleted; positions have no gaps', async t => {
  const { get, post, put, patch, remove } = await open(t)
  const { body } = await post('/automations', {
    name: 'Order',
    trigger_type: 'manual',
    steps: ['a', 'b', 'c'].map(tagName => ({ step_type: 'tag', config: { tagName } })),
  })
  const path = `/automations/${body.data.id}/steps`
  const [a, b, c] = body.data.steps.map(({ id }: { id: string }) => id)
  const order = async () =>
    (await get(path.replace('/steps', ''))).body.data.steps.map(
      ({ position, config }: { position: number; config: { tagName: string } }) =>
        `${position}${config.tagName}`,
    )
  t.match(await post(path, { step_type: 'tag', config: { tagName: 'x' }, position: 1 }), {
    status: 201,
    body: { data: { position: 1 } },
  })
  t.same(await order(), ['0a', '1x', '2b', '3c'])
  const changed = await put(path, {
    steps: [
      { id: a, position: 3 },
      { id: b, config: { action: 'remove' } },
      { id: c, position: 0, config: { tagName: 'z' } },
    ],
  })
  t.match(changed, {
    status: 200,
    body: { data: [{ id: c }, {}, { id: b, config: { action: 'remove', tagName: 'b' } }, { id: a }] },
  })
  t.same(await order(), ['0z', '1x', '2b', '3a'])
  const broken = await put(path, {
    steps: [
      { id: a, position: 0 },
      { id: MADE_UP, position: 1 },
    ],
  })
  t.match(broken, refused('not_found'))
  t.match(await put(path, { steps: [{ id: a, config: { tagName: 5 } }] }), {
    ...refused('validation_error', 'steps.0.config.tagName'),
  })
  t.match(await put(path, { steps: [{ id: a }, { id: a }] }), refused('validation_error', 'steps.1.id'))
  t.same(await order(), ['0z', '1x', '2b', '3a'], 'all or nothing')
  t.match(await patch(`${path}/${a}`, { step_type: 'delay' }), {
    status: 200,
    body: { data: { id: a, step_type: 'delay', config: { duration: 1, unit: 'days' } } },
  })
  t.match(await patch(`${path}/${MADE_UP}`, { config: {} }), refused('not_found'))
  t.match(await remove(`${path}/${c}`), { status: 200, body: { data: { success: true } } })
  t.match(await remove(`${path}/${c}`), refused('not_found'))
  t.same(
    (await get(path.replace('/steps', ''))).body.data.steps.map((one: { position: number }) => one.position),
    [0, 1, 2],
  )
})

t.test(
  'credentials in webhook headers are used and shown masked; sending the mask back keeps them',
  async t => {
    const { get, post, put, patch, sql } = await open(t)
    const headers = { Authorization: 'Bearer s3cret', 'X-Api-Key': 's3cret', 'X-Shop': 'berlin' }
    const shown = { Authorization: '********', 'X-Api-Key': '********', 'X-Shop': 'berlin' }
    const config = { url: 'https://hook.example/', headers }
    const steps = [{ step_type: 'webhook', config }]
    const { body } = await post('/automations', { name: 'Secrets', trigger_type: 'manual', steps })
    const [step] = body.data.steps
    const path = `/automations/${body.data.id}`
    const stored = () => {
      const [row] = sql<{ config: string }>(`select config from automation_steps where id = '${step.id}'`)
      return JSON.parse(row?.config ?? '').headers as unknown
    }
    t.strictSame(step.config.headers, shown)
    t.notMatch(JSON.stringify([(await get(path)).body, (await get('/automations')).body]), 's3cret')
    const changed = { headers: { ...shown, authorization: '********', 'X-Shop': 'bonn' } }
    t.equal((await patch(`${path}/steps/${step.id}`, { config: changed })).status, 200)
    t.match(stored(), {
      Authorization: 'Bearer s3cret',
      authorization: 'Bearer s3cret',
      'X-Api-Key': 's3cret',
      'X-Shop': 'bonn',
    })
    t.equal(
      (await put(`${path}/steps`, { steps: [{ id: step.id, config: { headers: { Cookie: 'a=b' } } }] }))
        .status,
      200,
    )
    t.strictSame(stored(), { Cookie: 'a=b' })
    const copy = await post(`${path}/steps`, { step_type: 'webhook', config: { ...config, headers: shown } })
    t.match(copy, refused('validation_error', 'config.headers.Authorization'))
  },
)

t.test('a read-only key sees no secrets of a webhook; sending the mask back keeps them', async t => {
  const postroad = await open(t)
  const { get, post, put, baseUrl } = postroad
  const config = {
    url: 'https://hooks.example/services/T0/s3cret?token=s3cret',
    headers: { 'X-Shop': 's3cret', Authorization: 's3cret' },
    body: { name: '{{email}}', api_key: 's3cret', nested: { secret: 's3cret', list: ['a'] } },
  }
  const steps = [
    { step_type: 'webhook', config },
    { step_type: 'webhook', config: { url: 'https://hooks.example/' } },
  ]
  const { body } = await post('/automations', { name: 'Secrets', trigger_type: 'manual', steps })
  const path = `/automations/${body.data.id}`
  const key = await postroad.makeKey('--permissions', 'automations:read')
  const seen = (await clientOf(baseUrl).get(`/api/v1${path}`, { key })).body.data.steps
  t.notMatch(JSON.stringify(seen), 's3cret')
  t.strictSame(seen[0].config, {
    url: 'https://hooks.example/********',
    method: 'POST',
    headers: { 'X-Shop': '********', Authorization: '********' },
    body: { name: '{{email}}', api_key: '********', nested: { secret: '********', list: ['a'] } },
  })
  t.equal(seen[1].config.url, 'https://hooks.example/')
  const written = (await get(path)).body.data.steps
  t.strictSame(written[0].config, {
    ...config,
    method: 'POST',
    headers: { ...config.headers, Authorization: '********' },
  })

  const back = (which: typeof seen) =>
    put(`${path}/steps`, {
      steps: which.map(({ id, config }: { id: string; config: object }) => ({ id, config })),
    })
  for (const which of [seen, written]) {
    t.equal((await back(which)).status, 200)
    t.strictSame((await get(path)).body.data.steps, written)
  }
  const other = { ...seen[0].config, url: 'https://evil.example/********' }
  t.match(await back([{ ...seen[0], config: other }]), refused('validation_error', 'steps.0.config.url'))
  const headers = { 'X-New': '********' }
  t.match(
    await back([{ ...seen[0], config: { headers } }]),
    refused('validation_error', 'steps.0.config.headers.X-New'),
  )
})

// proves: States and transitions > Automation PATCH with status currently draft
// proves: States and transitions > Automation PATCH with status currently active
// proves: States and transitions > Automation PATCH with status currently paused | Full set of automation status
// proves: Automations > PATCH /automations/:id; decisions: Automations > Status draft active paused other
// answers: PATCH /automations/{id}: conflict
t.test(
  'status changes other than draft to active, active to paused and paused to active give a 409',
  async t => {
    const { post, patch } = await open(t)
    const { body } = await post('/automations', { name: 'States', trigger_type: 'manual' })
    const path = `/automations/${body.data.id}`
    const to = async (status: string) => (await patch(path, { status })).status
    t.same([await to('paused'), await to('draft')], [409, 409], 'draft')
    t.same([await to('active'), await to('active'), await to('draft')], [200, 409, 409], 'active')
    t.match(await patch(path, { trigger_type: 'contact_created' }), refused('conflict'))
    t.same([await to('paused'), await to('paused'), await to('draft')], [200, 409, 409], 'paused')
    t.match(await patch(path, { trigger_type: 'tag_added', trigger_config: { tag_name: 'vip' } }), {
      status: 200,
      body: { data: { trigger_type: 'tag_added', trigger_config: { tagName: 'vip' } } },
    })
    t.equal(await to('active'), 200)
    t.equal(await to('deleted'), 400)
  },
)

// proves: States and transitions > Automation PATCH with status currently draft
// proves: States and transitions > Automation PATCH with status currently active
// proves: States and transitions > Automation PATCH with status currently paused | Full set of automation status
// proves: Automations > PATCH /automations/:id
// proves: decisions: Automations > Status draft active paused other | steps[] at creation may carry
// answers: PATCH /automations/{id}: conflict
t.test('activation is refused for missing references and for loops without a delay or wait', async t => {
  const { post, patch, get, remove, foreign, ...own } = await openTwo(t)
  const html = '<p>Hello</p>'
  const template = (await post('/templates', { name: 'T', html })).body.data.id
  const list = (await post('/lists', { name: 'L' })).body.data.id
  const none = { match: 'all', rules: [{ field: 'email', operator: 'is_set' }] }
  const dynamic = (await post('/lists', { name: 'D', type: 'dynamic', conditions: none })).body.data.id
  const draft = (await post('/automations', { name: 'Target', trigger_type: 'manual' })).body.data.id
  const activate = async (flow: object) => {
    const { body } = await post('/automations', { name: 'x', trigger_type: 'manual', ...flow })
    const path = `/automations/${body.data.id}`
    const { status, body: answer } = await patch(path, { status: 'active' })
    const after = (await get(path)).body.data.status
    if (status === 200) return 'active'
    t.same([status, answer.error.code, after], [409, 'conflict', 'draft'])
    return String(answer.error.message)
  }
  const step = (step_type: string, config: object) =>
    activate({ steps: [{ step_type: 'delay' }, { step_type, config }] })
  t.match(await step('email', {}), /step 2 \(email, .*\) has no templateId/)
  t.match(await step('email', { templateId: MADE_UP, subject: 'x' }), /template that does not exist/)
  t.match(await step('email', { templateId: template }), /has no subject/)
  const mailing = () => step('email', { templateId: template, subject: 'x' })
  t.match(await mailing(), /step 2 \(email, .*\) has no sender: the workspace has no default_from_email/)
  await own.run('workspace', 'set', own.workspaceId, 'default_from_email=news@pending.test')
  await own.run('domain', 'add', 'pending.test', '--workspace', own.workspaceId)
  t.match(await mailing(), /step 2 \(email, .*\) has no valid sender: pending.test is not verified yet/)
  await own.run('workspace', 'set', own.workspaceId, 'default_from_email=news@shop.test')
  t.equal(await mailing(), 'active')
  t.match(await step('condition', {}), /step 2 \(condition, .*\) has no field/)
  t.match(await step('condition', { field: 'email', operator: 'contains' }), /has an invalid rule/)
  t.match(
    await step('condition', { field: 'a', value: 'b', trueBranchStepId: MADE_UP }),
    /leads to a step that does not exist/,
  )
  t.match(await step('tag', {}), /has no tagName/)
  t.match(await step('add_to_list', {}), /has no listId/)
  t.match(await step('add_to_list', { listId: MADE_UP }), /list that does not exist/)
  t.match(await step('remove_from_list', { listId: dynamic }), /dynamic list/)
  t.equal(await step('remove_from_list', { listId: list }), 'active')
  t.match(await step('update_attribute', { attributeValue: 'x' }), /has no attributeName/)
  t.match(await step('webhook', {}), /has no url/)
  t.match(await step('wait_for_event', { timeoutAction: 'branch' }), /has no timeoutBranch/)
  t.match(await step('move_to_flow', {}), /has no targetFlowId/)
  t.match(await step('move_to_flow', { targetFlowId: MADE_UP }), /automation that does not exist/)
  t.equal(await step('move_to_flow', { targetFlowId: draft }), 'active')
  t.match(await activate({ trigger_type: 'list_joined' }), /the trigger has no listId/)
  t.match(await activate({ trigger_type: 'list_left', trigger_config: { listId: dynamic } }), /dynamic list/)
  t.match(
    await activate({ trigger_type: 'segment_entered', trigger_config: { segmentId: MADE_UP } }),
    /does not exist/,
  )
  const other = await post('/campaigns', { name: 'C', subject: 'x', template_id: template, list_id: list })
  const form = (await post('/forms', { name: 'F', list_ids: [list], fields: [] })).body.data.id
  const trigger = (trigger_type: string, trigger_config: object) => activate({ trigger_type, trigger_config })
  for (const id of [MADE_UP, 'nonsense', foreign.form])
    t.match(
      await trigger('form_submitted', { formId: id }),
      /the trigger refers to a form that does not exist/,
    )
  t.equal(await trigger('form_submitted', { formId: form }), 'active')
  t.equal(await trigger('form_submitted', {}), 'active', 'any form')
  for (const type of ['email_opened', 'email_clicked']) {
    for (const id of [MADE_UP, 'nonsense', foreign.campaign])
      t.match(await trigger(type, { campaignId: id }), /the trigger refers to a campaign that does not exist/)
    for (const id of [MADE_UP, 'nonsense', foreign.template])
      t.match(await trigger(type, { templateId: id }), /the trigger refers to a template that does not exist/)
    t.equal(await trigger(type, { campaignId: other.body.data.id, templateId: template }), 'active')
  }
  for (const [type, config] of Object.entries({
    email: { templateId: foreign.template, subject: 'x' },
    add_to_list: { listId: foreign.list },
    move_to_flow: { targetFlowId: foreign.flow },
  }))
    t.match(await step(type, config), /does not exist|is not there/, type)
  t.match(await trigger('list_joined', { listId: foreign.list }), /does not exist/)
  t.match(await trigger('segment_entered', { segmentId: foreign.segment }), /does not exist/)
  t.match(await activate({ trigger_type: 'tag_added' }), /the trigger has no tagName/)
  t.match(await activate({ trigger_type: 'date' }), /the trigger has no field/)
  const loop = (between: object) =>
    activate({
      steps: [
        { id: 'start', step_type: 'tag', config: { tagName: 'x' } },
        between,
        { step_type: 'condition', config: { field: 'a', value: 'b', trueBranchStepId: 'start' } },
      ],
    })
  t.match(await loop({ step_type: 'tag', config: { tagName: 'y' } }), /step 1 \(tag, .*\) leads into a loop/)
  t.equal(await loop({ step_type: 'delay' }), 'active', 'time passes in it')
  t.match(await remove(`/automations/${draft}?force=true`), { status: 200 })
})

t.test('automations of other workspaces and of the sandbox are not found', async t => {
  const { post, get, baseUrl, ...own } = await open(t)
  const postroad = clientOf(baseUrl)
  const { body } = await post('/automations', { name: 'Mine', trigger_type: 'manual' })
  const sandbox = await own.makeKey('--sandbox')
  const { id } = await own.json<{ id: string }>('workspace', 'create', 'Other')
  const other = await own.makeKey('--workspace', id)
  for (const key of [sandbox, other]) {
    const path = `/api/v1/automations/${body.data.id}`
    t.match(await postroad.get(path, { key }), refused('not_found'))
    t.match(await postroad.patch(path, { name: 'Yours' }, { key }), refused('not_found'))
    t.same((await postroad.get('/api/v1/automations', { key })).body.data, [])
  }
  const reader = await own.makeKey('--permissions', 'automations:read')
  t.match(
    await postroad.post('/api/v1/automations', { name: 'x', trigger_type: 'manual' }, { key: reader }),
    {
      status: 403,
    },
  )
  t.equal((await get(`/automations/${body.data.id}`)).status, 200)
})

// answers: POST /automations: limit_reached; POST /automations/{id}/duplicate: limit_reached
// answers: POST /automations/{id}/steps: limit_reached
t.test('a workspace has at most 500 automations with at most 200 steps each', async t => {
  const { post, remove, sql, workspaceId } = await open(t)
  const delays = Array.from({ length: 200 }, () => ({ step_type: 'delay' }))
  const { body } = await post('/automations', { name: 'Long', trigger_type: 'manual', steps: delays })
  const path = `/automations/${body.data.id}`
  t.equal(body.data.steps.length, 200)
  t.match(await post(`${path}/steps`, { step_type: 'delay' }), {
    ...{ status: 403, body: { error: { code: 'limit_reached', message: 'an automation has at most 200' } } },
  })
  const longer = { name: 'x', trigger_type: 'manual', steps: [...delays, { step_type: 'delay' }] }
  t.match(await post('/automations', longer), refused('validation_error', 'steps'))
  sql(
    `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 499)
     insert into automations (id, workspace_id, is_sandbox, name, status, trigger_type, trigger_config, runs_active,
       runs_completed, runs_failed, runs_cancelled, created_at, updated_at)
     select 'id' || n, '${workspaceId}', 0, 'n' || n, 'draft', 'manual', '{"frequency":"once"}', 0, 0, 0, 0, 0, 0 from numbers`,
  )
  const one = { name: 'x', trigger_type: 'manual' }
  t.match(await post('/automations', one), {
    ...{ status: 403, body: { error: { code: 'limit_reached', message: 'a workspace has at most 500' } } },
  })
  t.match(await post(`${path}/duplicate`, {}), { status: 403, body: { error: { code: 'limit_reached' } } })
  t.equal((await remove(path)).status, 200)
  t.equal((await post('/automations', one)).status, 201)
})

// proves: decisions: Automations > Status draft active paused other
// answers: DELETE /automations/{id}: precondition_failed; DELETE /automations/{id}/steps/{stepId}: precondition_failed
// answers: PATCH /automations/{id}: precondition_failed; PATCH /automations/{id}/steps/{stepId}: precondition_failed
// answers: POST /automations/{id}/steps: precondition_failed; PUT /automations/{id}/steps: precondition_failed
t.test('an automation changes only as its editor saw it, where the editor says so', async t => {
  const { post, key: _, ...postroad } = await open(t)
  const key = await postroad.makeKey()
  const reader = await postroad.makeKey('--permissions', 'automations:read')
  const step = { step_type: 'webhook', config: { url: 'https://a.example/?token=x' } }
  const { body } = await post('/automations', { name: 'A', trigger_type: 'manual', steps: [step] })
  const { id, steps } = body.data
  const ask = (method: string, below: string, etag = '', change?: object, by = key) =>
    fetch(`${postroad.baseUrl}/api/v1/automations/${id}${below}`, {
      method,
      headers: {
        Authorization: `Bearer ${by}`,
        'Content-Type': 'application/json',
        ...(etag === '' ? {} : { [method === 'GET' ? 'If-None-Match' : 'If-Match']: etag }),
      },
      ...(change ? { body: JSON.stringify(change) } : {}),
    })
  const etagOf = async (by = key) => (await ask('GET', '', '', undefined, by)).headers.get('etag') ?? ''
  const first = await etagOf()
  t.match(first, /^"[\w-]+\.[\w-]+"$/)
  t.equal((await ask('GET', '', await etagOf(reader), undefined, reader)).status, 304)
  t.equal((await ask('GET', '', first)).status, 304)

  t.equal((await ask('POST', '/steps', first, { step_type: 'delay' })).status, 201)
  const second = await etagOf()
  t.not(second, first, 'its steps are part of it')
  const stepPath = `/steps/${steps[0].id}`
  for (const [method, below, change] of [
    ['PATCH', '', { name: 'B' }],
    ['PATCH', '', { status: 'active' }],
    ['POST', '/steps', { step_type: 'delay' }],
    ['PUT', '/steps', { steps: [{ id: steps[0].id, position: 1 }] }],
    ['PATCH', stepPath, { config: { url: 'https://b.example/' } }],
    ['DELETE', stepPath, undefined],
    ['DELETE', '', undefined],
  ] as const) {
    const refused = await ask(method, below, first, change)
    t.equal(refused.status, 412, `${method} ${below}`)
    t.match(await refused.json(), { error: { code: 'precondition_failed', path: 'If-Match' } })
  }
  t.equal(await etagOf(), second, 'nothing was done')
  const active = await ask('PATCH', '', second, { status: 'active' })
  t.match([active.status, active.headers.get('etag')], [200, await etagOf()])
  t.equal((await ask('PATCH', '', second, { status: 'paused' })).status, 412)
  t.equal((await ask('PATCH', '', await etagOf(), { status: 'paused' })).status, 200)
  t.match(await (await ask('GET', stepPath)).json(), { data: { id: steps[0].id, step_type: 'webhook' } })
  t.equal((await ask('GET', `/steps/${MADE_UP}`)).status, 404)
})

t.test(
  'who changed an automation and its steps is in the activity log, without secrets of steps',
  async t => {
    const { post, patch, get } = await open(t)
    const { body } = await post('/automations', { name: 'A', trigger_type: 'manual' })
    const { id } = body.data
    const step = await post(`/automations/${id}/steps`, {
      step_type: 'webhook',
      config: { url: 'https://a.example/?token=hidden' },
    })
    await patch(`/automations/${id}/steps/${step.body.data.id}`, {
      config: { url: 'https://a.example/?token=other' },
    })
    await patch(`/automations/${id}`, { name: 'B' })
    await patch(`/automations/${id}`, { name: 'B' })
    const { data } = (await get('/activity?action=automation.changed')).body
    t.match(data, [
      { subject: 'B', details: { id }, changes: { name: { before: 'A', after: 'B' } } },
      { subject: 'A', details: { id, steps: 'changed' } },
      { subject: 'A', details: { id, steps: 'added' } },
    ])
    t.equal(data.length, 3, 'what changes nothing is no entry')
    t.notMatch(JSON.stringify(data), /token/)
  },
)
