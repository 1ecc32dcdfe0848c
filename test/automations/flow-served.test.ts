/** The routes that an editor of automations uses: flows replaced at once, checked, tried, and counted by step. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

interface Step {
  readonly id: string
  readonly step_type: string
  readonly position: number
  readonly config: Readonly<Record<string, unknown>>
}

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const at = (path: string) => `/api/v1${path}`
  const post = (path: string, body: object) => postroad.post(at(path), body, { key })
  const put = (path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
    postroad.put(at(path), body, { key, headers })
  const made = await post('/automations', {
    name: 'Welcome',
    trigger_type: 'manual',
    steps: [
      { step_type: 'delay' },
      { step_type: 'tag', config: { tagName: 'a' } },
      {
        step_type: 'webhook',
        config: { url: 'https://x.test/', headers: { Authorization: 'Bearer s3cret' } },
      },
    ],
  })
  const { id, steps } = made.body.data as { readonly id: string; readonly steps: readonly Step[] }
  const [delay, tag, webhook] = steps
  if (!delay || !tag || !webhook) throw new Error('three steps were made')
  return {
    ...{ post, put, id, delay, tag, webhook },
    get: (path: string) => postroad.get(at(path), { key }),
    patch: (path: string, body: object) => postroad.patch(at(path), body, { key }),
  }
}

// operations: PUT /automations/{id}/flow
t.test('a flow is replaced at once: known steps stay, others are new, the rest is deleted', async t => {
  const { get, put, id, delay, tag, webhook } = await open(t)
  const answer = await put(`/automations/${id}/flow`, {
    name: 'Hello',
    trigger_type: 'tag_added',
    trigger_config: { tagName: 'x' },
    steps: [
      { id: webhook.id, step_type: 'webhook', config: webhook.config },
      {
        id: 'c',
        step_type: 'condition',
        config: { field: 'plan', value: 'pro', falseBranchStepId: delay.id },
      },
      { id: 'm', step_type: 'tag', config: { tagName: 'b', nextStepId: 'END' } },
      { id: delay.id, step_type: 'delay', config: { duration: 3 } },
    ],
  })
  t.match(answer, {
    status: 200,
    body: { data: { name: 'Hello', trigger_type: 'tag_added', version: 2, status: 'draft' } },
  })
  const { steps } = (await get(`/automations/${id}`)).body.data as { steps: readonly Step[] }
  t.match(steps, [
    { id: webhook.id, config: { headers: { Authorization: '********' } } },
    { step_type: 'condition', config: { falseBranchStepId: delay.id } },
    { step_type: 'tag', config: { nextStepId: 'end' } },
    { id: delay.id, position: 3, config: { duration: 3, unit: 'days' } },
  ])
  t.notOk(
    steps.some(step => step.id === tag.id),
    'the step that is not listed is gone',
  )
  t.match(await put(`/automations/${id}/flow`, { name: 'Hello' }), { body: { data: { version: 2 } } })
})

// answers: PUT /automations/{id}/flow: precondition_failed
t.test('a flow is not replaced over the change of somebody else, nor by nonsense', async t => {
  const { get, put, id, delay } = await open(t)
  const outdated = await put(`/automations/${id}/flow`, { steps: [] }, { 'If-Match': '"old"' })
  t.match(outdated, { status: 412 })
  const steps = [{ id: delay.id, step_type: 'delay', config: { duration: -1 } }]
  t.match(await put(`/automations/${id}/flow`, { steps }), {
    status: 400,
    body: { error: { path: 'steps.0.config.duration' } },
  })
  const twice = [0, 1].map(() => ({ id: delay.id, step_type: 'delay' }))
  t.match(await put(`/automations/${id}/flow`, { steps: twice }), { status: 400 })
  t.match(await get(`/automations/${id}`), { body: { data: { version: 1 } } })
})

// answers: PUT /automations/{id}/flow: conflict
// operations: GET /automations/{id}/step-counts
t.test('an active automation takes steps without faults only, and keeps its trigger', async t => {
  const { put, patch, post, get, id, delay } = await open(t)
  t.match(await patch(`/automations/${id}`, { status: 'active' }), { status: 200 })
  const run = await post('/contacts', { email: 'ann@example.com' })
  t.equal(run.status, 201)
  t.equal((await post(`/automations/${id}/trigger`, { email: 'ann@example.com' })).status, 202)
  const path = `/automations/${id}/flow`
  t.match(await put(path, { steps: [{ id: 'm', step_type: 'email' }] }), {
    status: 409,
    body: { error: { code: 'conflict', message: /step 1 \(email, .*\) has no templateId/ } },
  })
  t.match(await put(path, { trigger_type: 'contact_created' }), { status: 409 })
  const steps = [{ id: delay.id, step_type: 'delay', config: { duration: 9 } }]
  t.match(await put(path, { trigger_type: 'manual', steps }), { status: 200, body: { data: { version: 2 } } })
  const runs = await get(`/automations/${id}/runs`)
  t.match(runs, { body: { data: [{ automation_version: 1, current_step_id: delay.id }] } })
  t.match(await get(`/automations/${id}/step-counts`), {
    body: { data: { steps: [{ step_id: delay.id, waiting: 1, passed: 0, paths: { next: 0 } }] } },
  })
})

// operations: POST /automations/{id}/check
t.test('everything wrong with an automation is told step by step, stored or not', async t => {
  const { post, id, delay } = await open(t)
  t.match(await post(`/automations/${id}/check`, {}), { status: 200, body: { data: { problems: [] } } })
  const steps = [
    { id: 'a', step_type: 'tag', config: { tagName: 'x', nextStepId: 'b' } },
    { id: delay.id, step_type: 'delay' },
    { id: 'b', step_type: 'tag', config: { tagName: 'y', nextStepId: 'a' } },
    { id: 'c', step_type: 'email', config: { nextStepId: 'nowhere' } },
  ]
  const checked = await post(`/automations/${id}/check`, {
    trigger_type: 'list_joined',
    trigger_config: {},
    steps,
  })
  const { problems } = checked.body.data as { problems: readonly object[] }
  t.match(problems, [
    {
      code: 'invalid_trigger',
      step_id: null,
      position: null,
      severity: 'error',
      reason: 'missing',
      field: 'listId',
    },
    { code: 'unreachable_step', step_id: delay.id, position: 1, severity: 'warning' },
    { code: 'invalid_step', step_id: null, position: 3, message: 'has no templateId' },
    { code: 'missing_step', position: 3, reason: null, field: null },
    { code: 'unreachable_step', position: 3 },
    { code: 'loop', severity: 'error' },
  ])
})

// answers: POST /automations/{id}/dry-run: contact_not_found
t.test('an automation is tried on a contact, as it is stored or as it is written', async t => {
  const { post, id } = await open(t)
  await post('/contacts', { email: 'ann@example.com', attributes: { plan: 'pro' } })
  const path = `/automations/${id}/dry-run`
  t.match(await post(path, { email: 'ann@example.com' }), {
    status: 200,
    body: {
      data: {
        contact_email: 'ann@example.com',
        would_enter: true,
        refusal: null,
        exit_reason: 'end_of_flow',
        steps: [
          { step_type: 'delay', day: 1, text: 'day 1: waits 1 days' },
          { step_type: 'tag', day: 2, text: 'day 2: adds the tag a' },
          { step_type: 'webhook', detail: { method: 'POST', host: 'x.test' } },
        ],
      },
    },
  })
  const steps = [{ id: 'x', step_type: 'tag', config: { tagName: 'z' } }]
  t.match(await post(path, { email: 'ann@example.com', steps }), {
    body: { data: { steps: [{ step_id: null, text: 'day 1: adds the tag z' }] } },
  })
  t.match(await post(path, { email: 'nobody@example.com' }), { status: 404 })
  t.match(await post(path, {}), { status: 400 })
})
