/** Declared attributes over HTTP on the running appliance: definitions, what they make of values, and warnings about rules. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const at = (path: string) => `/api/v1${path}`
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    postroad.get(at(path), { key, headers })
  const post = (path: string, body: object) => postroad.post(at(path), body, { key })
  const patch = (path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
    postroad.patch(at(path), body, { key, headers })
  const estimate = async (field: string, operator: string, value: unknown) =>
    (
      await post('/segments/estimate', {
        conditions: { match: 'all', rules: [{ field, operator, value }] },
      })
    ).body.data
  return {
    postroad,
    key,
    get,
    post,
    patch,
    remove: (path: string, headers: Readonly<Record<string, string>> = {}) =>
      postroad.delete(at(path), { key, headers }),
    estimate,
    warnings: async (field: string, operator: string, value: unknown): Promise<string[]> =>
      (await estimate(field, operator, value)).warnings.map(({ message }: { message: string }) => message),
  }
}

// proves: decisions: Added after a day's work > Attributes have definitions GET/POST/PATCH/DELETE /attributes
// answers: POST /attributes: duplicate; GET /attributes/{id}: not_found; PATCH /attributes/{id}: not_found
// answers: PATCH /attributes/{id}: precondition_failed; DELETE /attributes/{id}: not_found; DELETE /attributes/{id}: precondition_failed
t.test('an attribute is declared, shown, changed and deleted; values of contacts stay', async t => {
  const { get, post, patch, remove, postroad, key } = await open(t)
  await post('/contacts', { email: 'ann@x.example', attributes: { revenue: '245,8' } })
  const made = await post('/attributes', { name: 'revenue', label: ' Revenue ', type: 'number' })
  const { id } = made.body.data
  t.match(made, {
    status: 201,
    body: {
      data: {
        ...{ name: 'revenue', label: 'Revenue', type: 'number', is_sandbox: false },
        created_by: { type: 'api_key', id: String },
      },
    },
  })
  t.match(await post('/attributes', { name: 'revenue', type: 'text' }), {
    status: 409,
    body: { error: { code: 'duplicate', path: 'name' } },
  })
  t.match(await post('/attributes', { name: 'Revenue', type: 'text' }), { status: 201 }, 'case counts')
  for (const [body, path] of [
    [{ name: ' ', type: 'text' }, 'name'],
    [{ name: 'a\u0000', type: 'text' }, 'name'],
    [{ name: 'a'.repeat(101), type: 'text' }, 'name'],
    [{ name: 'a', type: 'money' }, 'type'],
    [{ name: 'a' }, 'type'],
    [{ name: 'a', type: 'text', label: 'a\nb' }, 'label'],
  ] as const)
    t.match(await post('/attributes', body), { status: 400, body: { error: { path } } }, JSON.stringify(body))
  const shown = await get(`/attributes/${id}`)
  t.match(shown, { status: 200, body: made.body })
  const etag = shown.headers.get('etag') ?? ''
  t.equal((await get(`/attributes/${id}`, { 'If-None-Match': etag })).status, 304)
  t.match(await patch(`/attributes/${id}`, { type: 'text', label: null }, { 'If-Match': etag }), {
    status: 200,
    body: { data: { name: 'revenue', label: null, type: 'text' } },
  })
  const late = { 'If-Match': etag }
  t.equal((await patch(`/attributes/${id}`, { type: 'date' }, late)).status, 412)
  t.equal((await remove(`/attributes/${id}`, late)).status, 412)
  t.match(await get('/attributes?search=REV'), {
    body: { data: [{ name: 'Revenue' }, { name: 'revenue' }].reverse(), pagination: { total: 2 } },
  })
  const sandbox = await postroad.makeKey('--sandbox')
  t.match(await postroad.get('/api/v1/attributes', { key: sandbox }), { body: { data: [] } })
  t.equal((await remove(`/attributes/${id}`)).status, 200)
  for (const answer of [
    await get(`/attributes/${id}`),
    await patch(`/attributes/${id}`, { type: 'date' }),
    await remove(`/attributes/${id}`),
    await get('/attributes/none'),
  ])
    t.match(answer, { status: 404, body: { error: { code: 'not_found' } } })
  t.match(await get('/contacts'), { body: { data: [{ attributes: { revenue: '245,8' } }] } })
  const log = await postroad.get('/api/v1/activity', { key })
  t.same(
    log.body.data
      .map(({ action }: { action: string }) => action)
      .filter((action: string) => action.startsWith('attribute.'))
      .reverse(),
    ['attribute.created', 'attribute.created', 'attribute.changed', 'attribute.deleted'],
  )
})

// answers: POST /attributes: limit_reached
t.test('a workspace has at most 500 declared attributes', async t => {
  const { post, postroad, remove } = await open(t)
  postroad.sql(
    `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 499)
     insert into attributes (id, workspace_id, name, name_folded, type, created_by, created_at, updated_at)
     select 'id' || n, '${postroad.workspaceId}', 'n' || n, 'n' || n, 'text', 'shell', 0, 0 from numbers`,
  )
  const last = await post('/attributes', { name: 'last', type: 'text' })
  t.equal(last.status, 201)
  t.match(await post('/attributes', { name: 'more', type: 'text' }), {
    status: 403,
    body: { error: { code: 'limit_reached', message: /at most 500 declared attributes/ } },
  })
  await remove(`/attributes/${last.body.data.id}`)
  t.equal((await post('/attributes', { name: 'more', type: 'text' })).status, 201)
})

t.test(
  'values of a declared attribute are converted where they are unambiguous, by every way in',
  async t => {
    const { get, post, patch, postroad, key } = await open(t)
    for (const [name, type] of [
      ['revenue', 'number'],
      ['active', 'boolean'],
      ['code', 'text'],
      ['since', 'date'],
      ['sizes', 'list'],
    ])
      await post('/attributes', { name, type })
    const given = {
      ...{ revenue: ' 19.90', active: 'TRUE', code: 123, since: ' 2024-03-01 ', sizes: 'S,M', other: '12' },
    }
    const read = {
      ...{ revenue: 19.9, active: true, code: '123', since: '2024-03-01', sizes: 'S,M', other: '12' },
    }
    const made = await post('/contacts', { email: 'ann@x.example', attributes: given })
    t.same(made.body.data.attributes, read)
    const kept = {
      ...{ revenue: '245,8', active: 'yes', code: ['a'], since: '1. März 2024', sizes: ['S'] },
    }
    t.same(
      (await patch(`/contacts/${made.body.data.id}`, { attributes: kept })).body.data.attributes,
      { ...kept, other: '12' },
      'what is not unambiguous is kept as given',
    )
    const long = { revenue: '12345678901234567890', active: false }
    t.same(
      (await postroad.put('/api/v1/contacts', { email: 'bob@x.example', attributes: long }, { key })).body
        .data.attributes,
      long,
      'a number of more digits than are exact stays text',
    )
    await post('/contacts/batch', { contacts: [{ email: 'cyd@x.example', attributes: { revenue: '7' } }] })
    t.match(await get('/contacts?email=cyd@x.example'), { body: { data: [{ attributes: { revenue: 7 } }] } })
  },
)

t.test('a rule that compares an attribute with another type than its values have says so', async t => {
  const { post, warnings, estimate, patch } = await open(t)
  for (const [name, revenue, since] of [
    ['a', '245,8', '01.03.2024'],
    ['b', '1.234,50 €', '2024-03-01'],
    ['c', '100', '1. März 2024'],
  ])
    await post('/contacts', {
      email: `${name}@x.example`,
      attributes: { revenue, since, age: '41', sizes: ['S'], plan: 'pro' },
    })
  t.match(await estimate('attributes.revenue', 'gt', 100), {
    count: 0,
    warnings: [
      {
        path: 'conditions.rules.0.operator',
        message:
          'attributes.revenue holds text in most contacts, but gt compares numbers: declare it as a number and import it again',
      },
    ],
  })
  t.match(await warnings('since', 'before', '2025-01-01'), [
    /since holds text .* before compares dates: declare it/,
  ])
  t.match(await warnings('since', 'within_days', 30), [/holds text/])
  t.match(await warnings('revenue', 'equals', 100), [/equals compares numbers/])
  t.match(await warnings('sizes', 'equals', 'S'), [
    /sizes holds lists in most contacts, but equals compares text/,
  ])
  t.match(await warnings('age', 'equals', 'old'), [
    /age holds numbers in most contacts, but equals compares text/,
  ])
  for (const [field, operator, value] of [
    ['age', 'gt', 40],
    ['age', 'equals', '41'],
    ['age', 'in', [41, 42]],
    ['age', 'starts_with', '4'],
    ['sizes', 'contains', 'S'],
    ['sizes', 'in', ['S']],
    ['plan', 'equals', 'pro'],
    ['plan', 'gt', 'a'],
    ['revenue', 'contains', '€'],
    ['revenue', 'is_set', undefined],
  ] as const)
    t.same(await warnings(field, operator, value), [], `${field} ${operator}`)
  t.same(await warnings('nothing', 'gt', 1), ['no contact has an attribute "nothing"'])

  const plan = await post('/attributes', { name: 'plan', type: 'number' })
  t.same(await warnings('plan', 'equals', 'pro'), [
    'attributes.plan is declared as a number, but equals compares text',
  ])
  t.same(await warnings('plan', 'gt', 3), [
    'attributes.plan is declared as a number, but holds text in most contacts: import or write the values again',
  ])
  await patch(`/attributes/${plan.body.data.id}`, { type: 'text' })
  t.same(await warnings('plan', 'gt', 3), ['attributes.plan is declared as text, but gt compares numbers'])

  const rules = [{ field: 'revenue', operator: 'gte', value: 5 }]
  const conditions = { match: 'all', rules }
  for (const [path, body] of [
    ['/segments', { name: 'Rich', conditions }],
    ['/lists', { name: 'Rich', type: 'dynamic', conditions }],
  ] as const)
    t.match((await post(path, body)).body.data.warnings, [{ message: /holds text/ }], path)
})

t.test(
  'an automation whose conditions do not suit the values says so when it is saved and checked',
  async t => {
    const { post, patch } = await open(t)
    await post('/contacts', { email: 'ann@x.example', attributes: { revenue: '245,8' } })
    const rule = { field: 'attributes.revenue', operator: 'gt', value: 100 }
    const made = await post('/automations', {
      name: 'Thanks',
      trigger_type: 'contact_created',
      trigger_config: { conditions: { match: 'all', rules: [rule] } },
      steps: [{ step_type: 'condition', config: rule }],
    })
    const { warnings } = made.body.data
    t.equal(warnings.length, 2)
    t.match(await patch(`/automations/${made.body.data.id}`, { name: 'Thank you' }), {
      body: { data: { warnings } },
    })
    const { problems } = (await post(`/automations/${made.body.data.id}/check`, {})).body.data
    t.same(problems, warnings)
    t.match(problems, [
      {
        code: 'strange_condition',
        severity: 'warning',
        step_id: null,
        message: /^the trigger has .*holds text/,
      },
      {
        code: 'strange_condition',
        severity: 'warning',
        position: 0,
        message: /^has a condition .*holds text/,
      },
    ])
    t.match(await post(`/automations/${made.body.data.id}/check`, {}), { status: 200 })
  },
)
