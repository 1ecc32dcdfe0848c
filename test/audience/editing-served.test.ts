/** What groups contacts, edited by several people: conflicts by entity tag, deletion and restoring, and what the activity log tells. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

const DAY_MS = 86_400_000
const RULES = { match: 'all', rules: [{ field: 'email', operator: 'contains', value: 'a' }] }

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const call = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${postroad.baseUrl}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    return {
      status: response.status,
      etag: response.headers.get('etag') ?? '',
      body: text === '' ? undefined : JSON.parse(text),
    }
  }
  return { ...postroad, key, call }
}

const KINDS = [
  { path: '/lists', made: { name: 'News' }, first: { public: true }, second: { public: false } },
  { path: '/tags', made: { name: 'vip' }, first: { color: '#112233' }, second: { color: '#445566' } },
  {
    path: '/segments',
    made: { name: 'All', conditions: RULES },
    first: { name: 'Everybody' },
    second: { name: 'Nobody' },
  },
  {
    path: '/forms',
    made: { name: 'Sign-up', fields: [{ name: 'city', label: 'City' }] },
    first: { title: 'Join us' },
    second: { title: 'Join them' },
  },
  {
    path: '/contacts',
    made: { email: 'ann@x.example' },
    first: { first_name: 'Ann' },
    second: { first_name: 'Anna' },
  },
]

for (const { path, made, first, second } of KINDS)
  // proves: decisions: Automations > Status draft active paused other
  // answers: DELETE /contacts/{id}: precondition_failed; DELETE /forms/{id}: precondition_failed
  // answers: DELETE /lists/{id}: precondition_failed; DELETE /segments/{id}: precondition_failed
  // answers: DELETE /tags/{id}: precondition_failed; PATCH /contacts/{id}: precondition_failed
  // answers: PATCH /forms/{id}: precondition_failed; PATCH /lists/{id}: precondition_failed
  // answers: PATCH /segments/{id}: precondition_failed; PATCH /tags/{id}: precondition_failed
  t.test(`of two editors of ${path} who saw the same state, the second gets a conflict`, async t => {
    const { call } = await open(t)
    const { id } = (await call('POST', path, made)).body.data
    const one = `${path}/${id}`
    const { etag } = await call('GET', one)
    t.match(etag, /^"[\w-]{22}\.[\w-]{22}"$/)
    t.equal((await call('GET', one, undefined, { 'If-None-Match': etag })).status, 304)
    const changed = await call('PATCH', one, first, { 'If-Match': etag })
    t.match(changed, { status: 200, body: { data: first } })
    t.not(changed.etag, etag)
    t.match(await call('PATCH', one, second, { 'If-Match': etag }), {
      status: 412,
      body: { error: { code: 'precondition_failed', message: /read it again/ } },
    })
    t.match(await call('DELETE', one, undefined, { 'If-Match': etag }), { status: 412 })
    t.match((await call('GET', one)).body.data, first, 'nothing was overwritten')
    t.match(await call('PATCH', one, second, { 'If-Match': changed.etag }), { status: 200 })
    t.match(await call('PATCH', one, first), { status: 200 }, 'without If-Match the last one wins, as before')
    t.equal((await call('DELETE', one, undefined, { 'If-Match': '*' })).status, 200)
  })

// proves: decisions: Automations > Status draft active paused other
t.test('joining a list or getting a tag is no conflict for those who edit it', async t => {
  const { call } = await open(t)
  const list = (await call('POST', '/lists', { name: 'News' })).body.data.id
  const { etag } = await call('GET', `/lists/${list}`)
  const contact = await call('POST', '/contacts', { email: 'ann@x.example', list_id: list })
  t.match(await call('PATCH', `/lists/${list}`, { name: 'Weekly' }, { 'If-Match': etag }), {
    status: 200,
    body: { data: { member_count: 1 } },
  })
  const path = `/contacts/${contact.body.data.id}`
  const before = await call('GET', path)
  await call('PUT', '/contacts', { email: 'ann@x.example', tags: ['vip'] })
  t.match(await call('PATCH', path, { first_name: 'Ann' }, { 'If-Match': before.etag }), {
    status: 200,
    body: { data: { tags: [{ name: 'vip' }] } },
  })
})

t.test('a change is in the activity log with the settings before and after', async t => {
  const { call } = await open(t)
  for (const { path, made, first } of KINDS.slice(0, 4)) {
    const { id } = (await call('POST', path, made)).body.data
    await call('PATCH', `${path}/${id}`, first)
    const [name = '', after] = Object.entries(first)[0] ?? []
    const [entry] = (await call('GET', `/activity?action=${path.slice(1, -1)}.changed`)).body.data
    t.match(entry, { details: { id } })
    t.same(Object.keys(entry.changes), [name], path)
    t.equal(entry.changes[name].after, after)
  }
  const [segment] = (await call('GET', '/segments')).body.data
  await call('PATCH', `/segments/${segment.id}`, { conditions: { match: 'any', rules: [] } })
  const [entry] = (await call('GET', '/activity?action=segment.changed&limit=1')).body.data
  t.match(entry.changes.conditions, {
    before: JSON.stringify(RULES),
    after: '{"match":"any","rules":[]}',
  })
})

// proves: Lists, segments, tags > GET, PATCH, DELETE /lists/:id | GET, PATCH, DELETE /tags/:id
// proves: decisions: Deliverability > Forms (additive the source of
// answers: POST /lists/{id}/restore: not_found; POST /tags/{id}/restore: not_found
t.test('a deleted list or tag is restored with its contacts, and counts them right', async t => {
  const { call, clock } = await open(t)
  const ids = []
  for (const name of ['ann', 'bob', 'eve'])
    ids.push((await call('POST', '/contacts', { email: `${name}@x.example` })).body.data.id)
  const list = `/lists/${(await call('POST', '/lists', { name: 'News' })).body.data.id}`
  const tag = `/tags/${(await call('POST', '/tags', { name: 'vip' })).body.data.id}`
  await call('POST', `${list}/members`, { contact_ids: ids })
  await call('POST', `${tag}/contacts`, { contact_ids: ids })
  for (const [path, count] of [
    [list, 'member_count'],
    [tag, 'contact_count'],
  ] as const) {
    t.match(await call('POST', `${path}/restore`, {}), { status: 404 }, 'what is there cannot be restored')
    t.match(await call('DELETE', path), { status: 200 })
    t.match(await call('GET', path), { status: 404 })
    clock.skip(DAY_MS)
    t.match(await call('POST', `${path}/restore`, {}), { status: 200, body: { data: { [count]: 3 } } })
  }
  t.match((await call('GET', `/contacts/${ids[0]}`)).body.data, {
    lists: [{ name: 'News' }],
    tags: [{ name: 'vip' }],
  })
  await call('DELETE', list)
  await call('DELETE', `/contacts/${ids[0]}`)
  t.match(
    await call('POST', `${list}/restore`, {}),
    { body: { data: { member_count: 2 } } },
    'who has left is gone',
  )
  t.match((await call('GET', `${list}/members`)).body.pagination, { total: 2 })
  t.match((await call('GET', '/activity?action=list.restored')).body.data, [{ subject: 'News' }, {}])
})

// proves: Lists, segments, tags > GET, PATCH, DELETE /tags/:id
// proves: decisions: Deliverability > Forms (additive the source of
// answers: POST /tags/{id}/restore: duplicate
t.test('a tag whose name was taken meanwhile is not restored', async t => {
  const { call } = await open(t)
  const { id } = (await call('POST', '/tags', { name: 'vip' })).body.data
  await call('DELETE', `/tags/${id}`)
  const other = (await call('POST', '/tags', { name: 'VIP' })).body.data.id
  t.match(await call('POST', `/tags/${id}/restore`, {}), {
    status: 409,
    body: { error: { code: 'duplicate' } },
  })
  await call('PATCH', `/tags/${other}`, { name: 'other' })
  t.match(await call('POST', `/tags/${id}/restore`, {}), { status: 200, body: { data: { name: 'vip' } } })
})

// proves: Lists, segments, tags > GET, PATCH, DELETE /lists/:id | GET, PATCH, DELETE /segments/:id
// proves: Lists, segments, tags > GET, PATCH, DELETE /tags/:id
// proves: decisions: Deliverability > Forms (additive the source of
// answers: POST /forms/{id}/restore: not_found; POST /lists/{id}/restore: not_found
// answers: POST /segments/{id}/restore: not_found; POST /tags/{id}/restore: not_found
t.test('deleted segments and forms are restored; after thirty days nothing is', async t => {
  const { call, clock, baseUrl } = await open(t)
  const kinds = []
  for (const { path, made } of KINDS.slice(0, 4)) {
    const { id } = (await call('POST', path, made)).body.data
    kinds.push(`${path}/${id}`)
  }
  const [, , segment = '', form = ''] = kinds
  const page = async () => (await fetch(`${baseUrl}/f/${form.slice('/forms/'.length)}`)).status
  await call('DELETE', segment)
  t.match((await call('GET', '/segments')).body, { data: [], pagination: { total: 0 } })
  t.match(await call('POST', `${segment}/restore`, {}), {
    status: 200,
    body: { data: { conditions: RULES } },
  })
  t.equal(await page(), 200)
  await call('DELETE', form)
  t.equal(await page(), 410)
  t.match(await call('POST', `${form}/restore`, {}), { status: 200, body: { data: { name: 'Sign-up' } } })
  t.equal(await page(), 200)
  for (const one of kinds) t.match(await call('DELETE', one), { status: 200 }, one)
  clock.skip(30 * DAY_MS + 1)
  for (const one of kinds) t.match(await call('POST', `${one}/restore`, {}), { status: 404 }, one)
  for (const { path } of KINDS.slice(0, 4))
    t.match(await call('POST', `${path}/nothing/restore`, {}), { status: 404 }, path)
})

// proves: Lists, segments, tags > GET, PATCH, DELETE /lists/:id | GET, PATCH, DELETE /segments/:id
// proves: Lists, segments, tags > GET, PATCH, DELETE /tags/:id
// proves: decisions: Deliverability > Forms (additive the source of
// answers: POST /forms/{id}/restore: not_found; POST /lists/{id}/restore: not_found
// answers: POST /segments/{id}/restore: not_found; POST /tags/{id}/restore: not_found
t.test('what another workspace deleted cannot be restored', async t => {
  const { call, ...postroad } = await open(t)
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const key = await postroad.makeKey('--workspace', id)
  for (const { path, made } of KINDS.slice(0, 4)) {
    const one = `${path}/${(await call('POST', path, made)).body.data.id}`
    await call('DELETE', one)
    t.match(await postroad.post(`/api/v1${one}/restore`, {}, { key }), { status: 404 }, path)
  }
})

// proves: decisions: Deliverability > Forms (additive the source of
// answers: GET /forms/{id}/submissions: not_found
t.test('submissions of a form are counted in total and by day', async t => {
  const { call, clock, baseUrl } = await open(t)
  const { id } = (await call('POST', '/forms', { name: 'Sign-up' })).body.data
  const submit = (email: string, form = id) =>
    fetch(`${baseUrl}/f/${form}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ email }),
    })
  t.same((await call('GET', `/forms/${id}/submissions?days=2`)).body.data, {
    submitted: 0,
    completed: 0,
    days: [
      { date: '2026-01-04', submitted: 0, completed: 0 },
      { date: '2026-01-05', submitted: 0, completed: 0 },
    ],
  })
  t.equal((await submit('ann@x.example')).status, 200)
  t.equal((await submit('not an address')).status, 400)
  clock.skip(DAY_MS)
  await submit('bob@x.example')
  await submit('eve@x.example')
  t.match((await call('GET', `/forms/${id}/submissions?days=1`)).body.data, {
    submitted: 3,
    completed: 3,
    days: [{ date: '2026-01-06', submitted: 2, completed: 2 }],
  })
  t.equal((await call('GET', `/forms/${id}/submissions`)).body.data.days.length, 30)
  t.equal((await call('GET', `/forms/${id}/submissions?days=367`)).status, 400)
  t.equal((await call('GET', `/forms/${id}/submissions?days=0`)).status, 400)
  t.equal((await call('GET', '/forms/nothing/submissions')).status, 404)
})
