/** Runs of automations over HTTP on the running appliance, by a clock that the test turns. */
import t, { type Test } from 'tap'
import { clientOf } from '../support/api/client.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

interface Shown {
  readonly id: string
  readonly status: string
  readonly steps: readonly {
    step_id: string
    step_type: string
    outcome: string
    at: string
    detail: object | null
  }[]
}

async function open(t: Test, ...keyOptions: string[]) {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_MTA_SHARED_ADDRESS: 'notify@mail.test' } })
  const { workspaceId, clock, baseUrl } = postroad
  await postroad.json('workspace', 'set', workspaceId, 'default_from_email=shop@shop.test')
  const key = await postroad.makeKey(...keyOptions)
  const client = clientOf(baseUrl)
  const at = (path: string) => `/api/v1${path}`
  const get = (path: string) => client.get(at(path), { key })
  const post = (path: string, body: object = {}) => client.post(at(path), body, { key })
  const patch = (path: string, body: object) => client.patch(at(path), body, { key })
  const run = async (path: string): Promise<Shown> => (await get(path)).body.data
  const stood = (one: Shown) => one.status !== 'active' || one.steps.at(-1)?.outcome === 'waiting'
  return {
    ...postroad,
    ...{ key, client, get, post, patch, run },
    put: (path: string, body: object) => client.put(at(path), body, { key }),
    remove: (path: string) => client.delete(at(path), { key }),
    make: async (path: string, body: object): Promise<string> =>
      String((await post(path, body)).body.data.id),
    /** @returns its path */
    flow: async (body: object): Promise<string> => {
      const made = await post('/automations', { name: 'x', trigger_type: 'manual', ...body })
      const path = `/automations/${made.body.data.id}`
      const { status, body: answer } = await patch(path, { status: 'active' })
      if (status !== 200) throw new Error(JSON.stringify(answer))
      return path
    },
    /** @returns the path of the run, once it waits or is at its end */
    enter: async (flow: string, body: object): Promise<string> => {
      const { status, body: answer } = await post(`${flow}/trigger`, body)
      if (status !== 202) throw new Error(JSON.stringify(answer))
      const path = `${flow}/runs/${answer.data.id}`
      await until('the run to stand', async () => stood(await run(path)))
      return path
    },
    /** Lets time pass in which nothing else of interest happens. */
    pass: async (ms: number) => {
      clock.skip(ms - 1_000)
      await clock.advance(1_000)
    },
    onceLong: (path: string, length: number) =>
      until(`${length} lines in the log`, async () => {
        const one = await run(path)
        return one.steps.length >= length && stood(one) ? one : undefined
      }),
  }
}

// proves: Automation > A step has step_type config | email | delay | condition | tag | add_to_list, remove_from_list
// proves: Automation > update_attribute | webhook | wait_for_event | move_to_flow
t.test('a month of delays, waits and branches, step by step', async t => {
  const { make, post, patch, flow, enter, pass, onceLong, get, run } = await open(t)
  const template = await make('/templates', { name: 'T', html: '<p>Hello {{first_name}}</p>' })
  const ann = await make('/contacts', { email: 'ann@one.test', attributes: { plan: 'free' } })
  const mail = (subject: string) => ({ step_type: 'email', config: { templateId: template, subject } })
  const path = await flow({
    steps: [
      mail('Welcome'),
      { step_type: 'delay', config: { duration: 2, unit: 'days' } },
      { step_type: 'wait_for_event', config: { eventType: 'purchase', timeoutDays: 7 } },
      {
        step_type: 'condition',
        config: { field: 'plan', value: 'pro', trueBranchStepId: 'thanks', falseBranchStepId: 'offer' },
      },
      { id: 'offer', step_type: 'tag', config: { tagName: 'offered' } },
      { step_type: 'delay', config: { duration: 1, unit: 'weeks' } },
      {
        step_type: 'wait_for_event',
        config: { eventType: 'page_viewed', timeoutDays: 10, timeoutAction: 'branch', timeoutBranch: 'end' },
      },
      { id: 'thanks', step_type: 'tag', config: { tagName: 'thanked' } },
      { id: 'end', step_type: 'update_attribute', config: { attributeName: 'seen', attributeValue: 'yes' } },
      { step_type: 'delay', config: { duration: 4, unit: 'days' } },
    ],
  })
  const at = await enter(path, { contact_id: ann })
  t.match(await get(at), {
    body: {
      data: { status: 'active', next_run_at: '2026-01-07T10:00:00.000Z', contact_email: 'ann@one.test' },
    },
  })
  await pass(2 * DAY)
  t.match((await onceLong(at, 4)).steps.slice(2), [
    { step_type: 'delay', outcome: 'completed' },
    { step_type: 'wait_for_event', outcome: 'waiting', detail: { until: '2026-01-14T10:00:00.000Z' } },
  ])
  await pass(7 * DAY)
  await onceLong(at, 8)
  await pass(7 * DAY)
  await onceLong(at, 10)
  await post('/track/product-view', { contact_email: 'ann@one.test', product_id: 'jug' })
  await onceLong(at, 14)
  await patch(`/contacts/${ann}`, { first_name: 'Ann' })
  await pass(4 * DAY)
  const over = await until('its end', async () => {
    const one = await run(at)
    return one.status === 'completed' ? one : undefined
  })
  t.match(over, { exit_reason: 'end_of_flow', current_step_id: null, next_run_at: null })
  t.same(
    over.steps.map(({ step_type: type, outcome, at: moment }) => `${moment.slice(5, 16)} ${type} ${outcome}`),
    [
      '01-05T10:00 email completed',
      '01-05T10:00 delay waiting',
      '01-07T10:00 delay completed',
      '01-07T10:00 wait_for_event waiting',
      '01-14T10:00 wait_for_event completed',
      '01-14T10:00 condition completed',
      '01-14T10:00 tag completed',
      '01-14T10:00 delay waiting',
      '01-21T10:00 delay completed',
      '01-21T10:00 wait_for_event waiting',
      '01-21T10:00 wait_for_event completed',
      '01-21T10:00 tag completed',
      '01-21T10:00 update_attribute completed',
      '01-21T10:00 delay waiting',
      '01-25T10:00 delay completed',
    ],
  )
  t.match((await get(`/contacts/${ann}`)).body.data, {
    attributes: { plan: 'free', seen: 'yes' },
    tags: [{ name: 'offered' }, { name: 'thanked' }],
  })
  t.match((await get(path)).body.data.stats, { total: 1, completed: 1, active: 0 })
  t.match((await get('/email?to=ann@one.test')).body, {
    data: [{ to: 'ann@one.test', subject: 'Welcome' }],
    pagination: { total: 1 },
  })
})

// proves: Automation > Run status values active completed
// proves: States and transitions > Automation run | Run statuses active completed failed
// proves: Automations > GET /automations/:id/runs | POST /automations/:id/runs/:runId/cancel
// proves: decisions: Automations > Run id automation_id contact_id contact_email
// answers: POST /automations/{id}/runs/{runId}/cancel: conflict
// operations: GET /automations/{id}/runs/{runId}
t.test('runs are listed by status, cancelled, and shown with their trigger', async t => {
  const { make, post, flow, enter, get } = await open(t)
  await make('/contacts', { email: 'ann@one.test' })
  const bob = await make('/contacts', { email: 'bob@one.test' })
  const path = await flow({ steps: [{ step_type: 'delay' }] })
  const first = await enter(path, { email: 'ANN@one.test', trigger_data: { plan: 'pro' } })
  const second = await enter(path, { contact_id: bob })
  t.match((await get(`${path}/runs`)).body, {
    data: [
      { contact_id: bob, status: 'active', trigger_data: {} },
      {
        contact_email: 'ann@one.test',
        trigger_type: 'api',
        trigger_data: { plan: 'pro' },
        exit_reason: null,
      },
    ],
    pagination: { total: 2, has_more: false },
  })
  t.match(await post(`${second}/cancel`), {
    status: 200,
    body: { data: { status: 'cancelled', exit_reason: 'cancelled', next_run_at: null } },
  })
  t.match(await post(`${second}/cancel`), { status: 409, body: { error: { code: 'conflict' } } })
  t.match((await get(`${path}/runs?status=cancelled`)).body, {
    data: [{ contact_id: bob }],
    pagination: { total: 1 },
  })
  t.match((await get(`${path}/runs?status=active&limit=1`)).body, { pagination: { total: 1, limit: 1 } })
  t.same((await get(`${path}/runs?status=failed`)).body.data, [])
  t.match((await get(path)).body.data.stats, { total: 2, active: 1, cancelled: 1 })
  t.match((await get(first)).body.data, { steps: [{ step_type: 'delay', outcome: 'waiting' }] })
  const missing = { status: 404, body: { error: { code: 'not_found' } } }
  t.match(await get(`${path}/runs/${MADE_UP}`), missing)
  t.match(await post(`${path}/runs/${MADE_UP}/cancel`), missing)
  const other = await flow({})
  t.match(await get(first.replace(path, other)), missing, 'a run of another automation')
  t.equal((await get(`${path}/runs?status=running`)).status, 400)
})

// proves: Automations > POST /automations/:id/trigger
// proves: decisions: Automations > trigger_type and trigger_config contact_created {}
// answers: POST /automations/{id}/trigger: contact_not_found, conflict
t.test('the API starts runs only for contacts, and only in active automations', async t => {
  const { make, post, patch, flow } = await open(t)
  const ann = await make('/contacts', { email: 'ann@one.test', attributes: { plan: 'free' } })
  const draft = `/automations/${await make('/automations', { name: 'Draft', trigger_type: 'manual' })}`
  const refusal = async (path: string, body: object) => {
    const { status, body: answer } = await post(`${path}/trigger`, body)
    return [status, answer.error?.code, answer.error?.path]
  }
  t.same(await refusal(draft, { contact_id: ann }), [409, 'conflict', undefined])
  const path = await flow({})
  t.same(await refusal(path, {}), [400, 'validation_error', 'contact_id'])
  t.same(await refusal(path, { contact_id: ann, email: 'ann@one.test' }), [
    400,
    'validation_error',
    'contact_id',
  ])
  t.same(await refusal(path, { contact_id: MADE_UP }), [404, 'contact_not_found', undefined])
  t.same(await refusal(path, { email: 'eve@one.test' }), [404, 'contact_not_found', undefined])
  t.same(await refusal(path, { email: 'ann@one.test', trigger_data: { a: 'x'.repeat(9_000) } }), [
    ...[400, 'validation_error', 'trigger_data'],
  ])
  t.same(await refusal(`/automations/${MADE_UP}`, { contact_id: ann }), [404, 'not_found', undefined])
  t.equal((await post(`${path}/trigger`, { contact_id: ann })).status, 202)
  t.same(await refusal(path, { contact_id: ann }), [409, 'conflict', undefined], 'once')
  const often = await flow({ trigger_config: { frequency: 'every_time' } })
  for (const _ of [1, 2]) t.equal((await post(`${often}/trigger`, { contact_id: ann })).status, 202)
  const conditions = { match: 'all', rules: [{ field: 'plan', operator: 'equals', value: 'pro' }] }
  const paying = await flow({ trigger_config: { conditions } })
  t.same(await refusal(paying, { contact_id: ann }), [409, 'conflict', undefined], 'conditions')
  await patch(`/contacts/${ann}`, { attributes: { plan: 'pro' } })
  t.equal((await post(`${paying}/trigger`, { contact_id: ann })).status, 202)
})

// proves: Automation > Run status values active completed
// proves: States and transitions > Automation run | Run statuses active completed failed
// proves: Automations > GET /automations/:id/runs | POST /automations/:id/runs/:runId/cancel
// proves: decisions: Automations > Run id automation_id contact_id contact_email
t.test('runs are paused with their automation and cancelled when it is deleted', async t => {
  const { make, patch, remove, flow, enter, pass, get, run, post } = await open(t)
  const ann = await make('/contacts', { email: 'ann@one.test' })
  const path = await flow({
    steps: [
      { step_type: 'delay', config: { duration: 1, unit: 'hours' } },
      { step_type: 'tag', config: { tagName: 'x' } },
    ],
  })
  const at = await enter(path, { contact_id: ann })
  t.match(await patch(path, { status: 'paused' }), { body: { data: { stats: { paused: 1, active: 0 } } } })
  t.match((await get(`${path}/runs?status=paused`)).body, { data: [{ status: 'paused' }] })
  t.same((await get(`${path}/runs?status=active`)).body.data, [])
  await pass(2 * HOUR)
  await pass(MINUTE)
  t.match(await run(at), { status: 'paused', steps: [{ outcome: 'waiting' }] })
  await patch(path, { status: 'active' })
  await until('its end', async () => (await run(at)).status === 'completed')
  t.match((await get(`/contacts/${ann}`)).body.data.tags, [{ name: 'x' }])
  const other = await flow({ steps: [{ step_type: 'delay' }] })
  await enter(other, { contact_id: ann })
  await patch(other, { status: 'paused' })
  const run2 = (await get(`${other}/runs`)).body.data[0].id
  t.match(await post(`${other}/runs/${run2}/cancel`), { body: { data: { status: 'cancelled' } } })
  t.equal((await remove(other)).status, 200)
  t.equal((await get(`${other}/runs`)).status, 404)
})

// proves: decisions: Automations > trigger_type and trigger_config contact_created {}
t.test('contact events start runs: created, joined a list, tagged, purchased, viewed a page', async t => {
  const { make, post, patch, flow, get, pass } = await open(t)
  const list = await make('/lists', { name: 'News' })
  const segment = await make('/segments', {
    name: 'Pro',
    conditions: { match: 'all', rules: [{ field: 'plan', operator: 'equals', value: 'pro' }] },
  })
  const flows = {
    contact_created: await flow({ trigger_type: 'contact_created' }),
    list_joined: await flow({ trigger_type: 'list_joined', trigger_config: { list_id: list } }),
    tag_added: await flow({ trigger_type: 'tag_added', trigger_config: { tagName: 'VIP' } }),
    purchase: await flow({ trigger_type: 'purchase', trigger_config: { minValue: 10, currency: 'EUR' } }),
    page_viewed: await flow({ trigger_type: 'page_viewed', trigger_config: { productId: 'jug' } }),
    segment_entered: await flow({ trigger_type: 'segment_entered', trigger_config: { segmentId: segment } }),
    date: await flow({
      trigger_type: 'date',
      trigger_config: { field: 'birthday', offsetDays: -1, time: '11:30', repeat: 'yearly' },
    }),
  }
  const ann = await make('/contacts', {
    email: 'ann@one.test',
    list_id: list,
    attributes: { birthday: '1990-01-06' },
  })
  const tag = await make('/tags', { name: 'vip' })
  await post(`/tags/${tag}/contacts`, { contact_ids: [ann] })
  await post('/conversions', { contact_id: ann, value: 5, currency: 'EUR' })
  await post('/conversions', { contact_id: ann, value: 50, currency: 'EUR' })
  await post('/track/product-view', { contact_email: 'ann@one.test', product_id: 'cup' })
  await post('/track/product-view', { contact_email: 'ann@one.test', product_id: 'jug' })
  const runsOf = async (path: string) => (await get(`${path}/runs`)).body.data
  for (const type of ['contact_created', 'list_joined', 'tag_added', 'purchase', 'page_viewed'] as const)
    t.match(
      await until(`a run by ${type}`, async () => {
        const runs = await runsOf(flows[type])
        return runs.length > 0 && runs
      }),
      [{ contact_id: ann, trigger_type: type }],
      type,
    )
  t.match((await runsOf(flows.purchase))[0].trigger_data, { value: 50, currency: 'EUR' })
  await pass(6 * MINUTE)
  await patch(`/contacts/${ann}`, { attributes: { plan: 'pro' } })
  await until('a run by segment_entered', async () => {
    await pass(6 * MINUTE)
    return (await runsOf(flows.segment_entered)).length === 1
  })
  t.same(await runsOf(flows.date), [])
  await pass(2 * HOUR)
  await until('a run by date', async () => {
    await pass(MINUTE)
    return (await runsOf(flows.date)).length === 1
  })
  t.match(await runsOf(flows.date), [{ trigger_data: { field: 'birthday', date: '2026-01-06' } }])
})

// proves: Automation > Run status values active completed
// proves: States and transitions > Automation run | Run statuses active completed failed
// proves: Automations > GET /automations/:id/runs
// proves: decisions: Automations > Run id automation_id contact_id contact_email
t.test('a webhook step to a non-public address is retried, then the run fails', async t => {
  const { make, flow, enter, pass, onceLong, run, get } = await open(t)
  const ann = await make('/contacts', { email: 'ann@one.test' })
  const path = await flow({ steps: [{ step_type: 'webhook', config: { url: 'http://127.0.0.1/' } }] })
  const entering = enter(path, { contact_id: ann })
  const first = await until('the first try', async () => {
    const [one] = (await get(`${path}/runs`)).body.data
    const shown = one && (await run(`${path}/runs/${one.id}`))
    return shown?.steps.length === 1 && shown
  })
  t.match(first.steps, [{ outcome: 'retrying', detail: { error: /not public/, status_code: null } }])
  for (const [at, wait] of [2 * MINUTE, 6 * MINUTE, 30 * MINUTE].entries()) {
    await pass(wait)
    await until('another try', async () => (await run(`${path}/runs/${first.id}`)).steps.length === at + 2)
  }
  t.match(await onceLong(await entering, 4), {
    status: 'failed',
    exit_reason: 'step_failed',
    error: /not public/,
    steps: [{}, {}, { outcome: 'retrying' }, { outcome: 'failed' }],
  })
  t.match((await get(path)).body.data.stats, { failed: 1 })
})

t.test('sandbox runs finish at once, send no mail and use sandbox data', async t => {
  const { make, flow, enter, run, get, client, ...own } = await open(t, '--sandbox')
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const ann = await make('/contacts', { email: 'opened@simulator.test' })
  const path = await flow({
    steps: [
      { step_type: 'delay', config: { duration: 30, unit: 'days' } },
      { step_type: 'email', config: { templateId: template, subject: 'Hello' } },
      { step_type: 'wait_for_event', config: { eventType: 'email_opened', timeoutDays: 7 } },
      { step_type: 'tag', config: { tagName: 'reader' } },
    ],
  })
  const at = await enter(path, { contact_id: ann })
  const over = await until('its end', async () => {
    const one = await run(at)
    return one.status === 'completed' ? one : undefined
  })
  t.match(over, {
    is_sandbox: true,
    steps: [{}, {}, { outcome: 'completed' }, { detail: { event: 'email_opened' } }, {}],
  })
  t.match((await get('/email?to=opened@simulator.test')).body, { data: [{ status: 'opened' }] })
  const live = await own.makeKey()
  t.same((await client.get('/api/v1/automations', { key: live })).body.data, [])
  t.equal((await client.get(`/api/v1${at}`, { key: live })).status, 404)
  t.same((await client.get('/api/v1/tags', { key: live })).body.data, [])
})

// proves: decisions: Added after a day's work > Nothing waits without saying why
t.test(
  'a run says that a limit, a pause or a failure holds it up, and of a planned wait nothing',
  async t => {
    const { make, patch, post, flow, get, run, pass, ...postroad } = await open(t)
    await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=1', 'daily_limit=0')
    const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
    const path = await flow({
      steps: [
        { step_type: 'email', config: { templateId: template, subject: 'Hello' } },
        { step_type: 'delay', config: { duration: 2, unit: 'days' } },
      ],
    })
    const enter = async (email: string) => {
      await make('/contacts', { email })
      return `${path}/runs/${(await post(`${path}/trigger`, { email })).body.data.id}`
    }
    const first = await enter('ann@one.test')
    await until('the delay', async () => (await run(first)).steps.at(-1)?.outcome === 'waiting')
    t.match((await get(first)).body.data, { status: 'active', waiting_for: null })
    const second = await enter('bob@one.test')
    await until('the limit', async () => (await run(second)).steps.at(-1)?.outcome === 'retrying')
    const limit = { reason: 'hourly_limit', until: '2026-01-05T11:00:00.000Z', limit: 1 }
    t.match((await get(second)).body.data.waiting_for, limit)
    const listed = (await get(`${path}/runs`)).body.data as { id: string; waiting_for: object | null }[]
    t.match(
      listed.map(one => one.waiting_for),
      [limit, null],
    )
    await patch(path, { status: 'paused' })
    t.match((await get(second)).body.data.waiting_for, { reason: 'hold', detail: /activate/ })
    await patch(path, { status: 'active' })
    await until(
      'it is due again',
      async () => (await get(second)).body.data.waiting_for?.reason === 'hourly_limit',
    )
    await pass(HOUR)
    await until('the mail', async () => (await run(second)).steps.at(-1)?.outcome === 'waiting')
    t.equal((await get(second)).body.data.waiting_for, null)
  },
)
