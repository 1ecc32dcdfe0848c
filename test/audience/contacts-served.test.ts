/** Contacts over HTTP on the running appliance. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const CONTACTS = '/api/v1/contacts'
const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const post = (path: string, body: object) => postroad.post(`/api/v1${path}`, body, { key })
  return {
    ...postroad,
    add: (body: object) => post('/contacts', body),
    addPost: post,
    change: (id: string, body: object) => postroad.patch(`${CONTACTS}/${id}`, body, { key }),
    show: (id: string) => postroad.get(`${CONTACTS}/${id}`, { key }),
    remove: (id: string) => postroad.delete(`${CONTACTS}/${id}`, { key }),
    list: async (query = '') => (await postroad.get(`${CONTACTS}${query}`, { key })).body,
    emails: async (query = '') =>
      (await postroad.get(`${CONTACTS}${query}`, { key })).body.data.map(
        ({ email }: { email: string }) => email,
      ),
  }
}

async function openPuts(t: Test) {
  const opened = await open(t)
  const { key } = opened
  return { ...opened, addPut: (body: object) => opened.put(CONTACTS, body, { key }) }
}

// proves: What the service does > Contacts lists segments and tags
// proves: Contact > id | email | first_name | last_name | attributes | subscribed | created_at | lists
// proves: Contacts > POST /contacts | GET /contacts/:id
// proves: decisions: Contacts > Additive fields updated_at bounced (boolean)
t.test('a contact is created with the given fields and added to a list', async t => {
  const { add, addPost, show } = await open(t)
  const list = await addPost('/lists', { name: 'News' })
  const made = await add({
    email: ' Ann@Bücher.example',
    first_name: 'Ann',
    last_name: 'Lee',
    attributes: { plan: 'pro', age: 42, nested: { a: [1] }, gone: null },
    list_id: list.body.data.id,
  })
  const contact = {
    email: 'ann@xn--bcher-kva.example',
    first_name: 'Ann',
    last_name: 'Lee',
    attributes: { plan: 'pro', age: 42, nested: { a: [1] } },
    subscribed: true,
    bounced: false,
    bounced_at: null,
    bounce_type: null,
    is_sandbox: false,
    created_at: '2026-01-05T10:00:00.000Z',
    updated_at: '2026-01-05T10:00:00.000Z',
    lists: [{ id: list.body.data.id, name: 'News' }],
    tags: [],
  }
  t.match(made, { status: 201, body: { data: contact } })
  t.match(await show(made.body.data.id), { status: 200, body: { data: contact } })
})

// proves: decisions: Added after the whole contract > Erasure POST /contacts/erase {email} removes
t.test('an erased person is gone everywhere, and a suppression still holds', async t => {
  const { add, addPost, show, list, key, ...postroad } = await open(t)
  const { id } = (await add({ email: 'ann@x.example', first_name: 'Ann' })).body.data
  await addPost('/suppressions', { email: 'ann@x.example' })
  t.match(await addPost('/contacts/erase', { email: 'ANN@x.example' }), {
    status: 200,
    body: { data: { erased: { contacts: 1, suppressions_hashed: 1 } } },
  })
  t.match(await show(id), { status: 404 })
  t.same((await list()).data, [])
  const mail = { to: 'ann@x.example', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.' }
  t.match(await postroad.send(key, mail), { body: { data: { sent: 0, skipped: 1 } } })
  const found = await postroad.get('/api/v1/suppressions?email=ann@x.example', { key })
  t.match(found.body.data, [{ email: /^erased:[0-9a-f]{64}$/, reason: 'manual' }])
  t.match(await addPost('/contacts/erase', { email: 'not an address' }), {
    status: 400,
    body: { error: { code: 'validation_error', path: 'email' } },
  })
})

// proves: What the service does > Contacts lists segments and tags
// proves: Contact > id | email | first_name | last_name | attributes | subscribed | created_at | lists
// proves: States and transitions > Contact PATCH subscribed; Contacts > POST /contacts | PATCH /contacts/:id
// proves: decisions: Contacts > Additive fields updated_at bounced (boolean) | attributes PATCH merges a null
// answers: PATCH /contacts/{id}: duplicate; POST /contacts: duplicate
t.test('an address is a contact once, whatever its case', async t => {
  const { add, change } = await open(t)
  const ann = await add({ email: 'ann@x.example' })
  t.match(await add({ email: 'ANN@x.example' }), {
    status: 409,
    body: { error: { code: 'duplicate', path: 'email' } },
  })
  const bob = await add({ email: 'bob@x.example', first_name: null })
  t.match(bob, { status: 201, body: { data: { first_name: null, subscribed: true, attributes: {} } } })
  t.match(await change(bob.body.data.id, { email: 'Ann@X.example' }), {
    status: 409,
    body: { error: { code: 'duplicate', path: 'email' } },
  })
  t.match(await change(ann.body.data.id, { email: 'ANN@X.example' }), { status: 200 })
})

// proves: States and transitions > Contact PATCH subscribed; Contacts > PATCH /contacts/:id
// proves: decisions: Contacts > attributes PATCH merges a null
t.test('only the fields given change; attributes are merged, and null clears', async t => {
  const { add, change, clock } = await open(t)
  const { id } = (
    await add({ email: 'ann@x.example', first_name: 'Ann', attributes: { plan: 'pro', city: 'Berlin' } })
  ).body.data
  await clock.advance(1_000)
  t.match(await change(id, { attributes: { plan: 'team', city: null, n: 1 }, last_name: 'Lee' }), {
    status: 200,
    body: {
      data: {
        first_name: 'Ann',
        last_name: 'Lee',
        attributes: { plan: 'team', n: 1 },
        updated_at: '2026-01-05T10:00:01.000Z',
      },
    },
  })
  t.match(await change(id, { first_name: null, subscribed: false }), {
    body: { data: { first_name: null, last_name: 'Lee', subscribed: false } },
  })
  await clock.advance(1_000)
  t.match(
    await change(id, { last_name: 'Lee' }),
    { body: { data: { updated_at: '2026-01-05T10:00:01.000Z' } } },
    'what is so already changes nothing',
  )
  t.match(await change(id, { email: 'lee@x.example' }), { body: { data: { email: 'lee@x.example' } } })
})

// proves: Contacts > POST /contacts; decisions: Contacts > Additive fields updated_at bounced (boolean)
// answers: POST /contacts: not_found
// at and past limit: Limits > Contact first_name, last_name
t.test('what cannot be a contact is refused by name', async t => {
  const { add, list } = await open(t)
  const refused = async (body: object, path: string) =>
    t.match(await add(body), { status: 400, body: { error: { code: 'validation_error', path } } })
  await refused({}, 'email')
  await refused({ email: 'ann' }, 'email')
  t.match(await add({ email: 'ann@x.example', first_name: 'x'.repeat(101) }), {
    status: 400,
    body: { error: { path: 'first_name' } },
  })
  await refused({ email: 'ann@x.example', last_name: 'x'.repeat(101) }, 'last_name')
  await refused({ email: 'ann@x.example', first_name: 'a\u0000' }, 'first_name')
  await refused({ email: 'ann@x.example', attributes: [] }, 'attributes')
  await refused({ email: 'ann@x.example', attributes: { '': 1 } }, 'attributes')
  await refused({ email: 'ann@x.example', attributes: { a: 'x'.repeat(33_000) } }, 'attributes')
  await refused({ email: 'ann@x.example', attributes: { a: [[[[[[[[[1]]]]]]]]] } }, 'attributes')
  await refused({ email: 'ann@x.example', subscribed: 'yes' }, 'subscribed')
  t.match(await add({ email: 'ann@x.example', list_id: MADE_UP }), {
    status: 404,
    body: { error: { code: 'not_found', path: 'list_id' } },
  })
  t.equal((await list()).pagination.total, 0, 'and none is made')
  t.match(await add({ email: 'ann@x.example', first_name: 'x'.repeat(100), last_name: 'y'.repeat(100) }), {
    status: 201,
  })
})

// proves: Contacts > GET /contacts/:id | DELETE /contacts/:id
// answers: DELETE /contacts/{id}: contact_not_found; GET /contacts/{id}: contact_not_found
// answers: PATCH /contacts/{id}: contact_not_found
t.test('a missing contact is a 404 contact_not_found', async t => {
  const { change, show, remove } = await open(t)
  const missing = { status: 404, body: { error: { code: 'contact_not_found' } } }
  for (const id of [MADE_UP, 'nonsense']) {
    t.match(await show(id), missing)
    t.match(await change(id, { first_name: 'x' }), missing)
    t.match(await remove(id), missing)
  }
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
t.test('an upsert makes a contact, and changes the one that is there', async t => {
  const { key, ...postroad } = await open(t)
  const put = (body: object) => postroad.put(CONTACTS, body, { key })
  const made = await put({ email: 'ann@x.example', first_name: 'Ann', attributes: { a: 1 } })
  t.match(made, { status: 201, body: { data: { first_name: 'Ann' } } })
  t.match(await put({ email: 'ANN@x.example', attributes: { b: 2 } }), {
    status: 200,
    body: { data: { id: made.body.data.id, first_name: 'Ann', attributes: { a: 1, b: 2 } } },
  })
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// answers: PUT /contacts: not_found, conflict
t.test('an upsert adds to lists and tags, and takes nothing away', async t => {
  const { key, addPost, addPut, ...postroad } = await openPuts(t)
  const news = (await addPost('/lists', { name: 'News' })).body.data.id
  const shop = (await addPost('/lists', { name: 'Shop' })).body.data.id
  const dynamic = await addPost('/lists', {
    name: 'All',
    type: 'dynamic',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'is_set' }] },
  })
  await addPost('/tags', { name: 'VIP' })
  const made = await addPut({ email: 'ann@x.example', list_ids: [news, news], tags: ['vip', 'New', 'new'] })
  t.match(made, {
    status: 201,
    body: { data: { lists: [{ id: news, name: 'News' }], tags: [{ name: 'VIP' }, { name: 'new' }] } },
  })
  t.match(await addPut({ email: 'ann@x.example', list_ids: [shop], tags: ['late'] }), {
    status: 200,
    body: {
      data: { lists: [{ name: 'News' }, { name: 'Shop' }], tags: [{ name: 'VIP' }, { name: 'late' }, {}] },
    },
  })
  t.match(await postroad.get(`/api/v1/lists/${shop}`, { key }), { body: { data: { member_count: 1 } } })
  for (const [body, error] of [
    [{ list_ids: [shop, MADE_UP] }, { code: 'not_found', path: 'list_ids.1' }],
    [{ list_ids: [dynamic.body.data.id] }, { code: 'conflict', path: 'list_ids.0' }],
    [{ tags: ['ok', ' '] }, { code: 'validation_error', path: 'tags.1' }],
  ] as const)
    t.match((await addPut({ email: 'new@x.example', tags: ['unused'], ...body })).body, { error })
  t.match(await postroad.get('/api/v1/contacts?email=new@x.example', { key }), { body: { data: [] } })
  t.notMatch(await postroad.get('/api/v1/tags', { key }), { body: { data: [{}, {}, { name: 'unused' }] } })
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// operations: POST /contacts/batch
t.test('a thousand contacts are upserted at once, each with its own result', async t => {
  const { key, addPost, list, ...postroad } = await openPuts(t)
  const batch = (contacts: readonly object[]) => postroad.post(`${CONTACTS}/batch`, { contacts }, { key })
  const news = (await addPost('/lists', { name: 'News' })).body.data.id
  await addPost('/contacts', { email: 'known@x.example', first_name: 'Ann' })
  const first = [
    { email: 'new@x.example', list_ids: [news], tags: ['vip'] },
    { email: 'KNOWN@x.example', first_name: 'Bob' },
    { email: 'known@x.example', first_name: 'Bob' },
    { email: 'no address' },
    { email: 'lost@x.example', list_ids: [MADE_UP] },
    { email: 'large@x.example', attributes: { text: 'x'.repeat(40_000) } },
  ]
  const { status, body } = await batch(first)
  t.equal(status, 200)
  t.match(body.data, { created: 1, updated: 1, unchanged: 1, rejected: 3 })
  t.match(body.data.results, [
    { index: 0, email: 'new@x.example', status: 'created', contact_id: /-/ },
    { index: 1, email: 'known@x.example', status: 'updated' },
    { index: 2, status: 'unchanged' },
    {
      index: 3,
      status: 'rejected',
      contact_id: null,
      error: { code: 'validation_error', path: 'contacts.3.email' },
    },
    { index: 4, status: 'rejected', error: { code: 'not_found', path: 'contacts.4.list_ids.0' } },
    { index: 5, status: 'rejected', error: { code: 'validation_error', path: 'contacts.5.attributes' } },
  ])
  t.match(await list('?tag=vip'), { data: [{ email: 'new@x.example' }] })
  const thousand = Array.from({ length: 1_000 }, (_, at) => ({ email: `c${at}@x.example`, tags: ['bulk'] }))
  t.match((await batch(thousand)).body.data, { created: 1_000, rejected: 0 })
  t.match((await batch(thousand)).body.data, { created: 0, unchanged: 1_000 })
  t.equal((await list('?tag=bulk')).pagination.total, 1_000)
  t.match(await batch([...thousand, { email: 'more@x.example' }]), {
    status: 400,
    body: { error: { code: 'validation_error', path: 'contacts' } },
  })
  t.match(await batch([{ email: 'more@x.example' }, { mail: 'x' }]), {
    status: 400,
    body: { error: { code: 'validation_error', path: /^contacts.1/ } },
  })
  t.match(await list('?email=more@x.example'), { data: [] })
})

// proves: Contacts > GET /contacts
t.test('contacts are searched by words in address and names, and filtered, newest first', async t => {
  const { add, emails, list } = await open(t)
  for (const [email, first, last] of [
    ['jose.garcia@mail.example', 'José', 'García'],
    ['gerd@firma.example', 'Gerd', 'Strauß'],
    ['50%_off@shop.example', 'Half', 'Price'],
    ['500_off@shop.example', 'Much', 'Price'],
  ])
    await add({ email, first_name: first, last_name: last })
  await add({ email: 'gone@mail.example', subscribed: false })
  const searched = (text: string) => emails(`?search=${encodeURIComponent(text)}`)
  // Before and after the index knows them.
  for (const _ of ['at once', 'later']) {
    t.same(await searched('jose garcia'), ['jose.garcia@mail.example'])
    t.same(await searched('GARCÍA josé'), ['jose.garcia@mail.example'])
    t.same(await searched('strauss'), ['gerd@firma.example'])
    t.same(await searched('price off'), ['500_off@shop.example', '50%_off@shop.example'])
    t.same(await searched('0%_'), ['50%_off@shop.example'])
    t.same(await searched('0_'), ['500_off@shop.example'])
    t.same(await searched('jose price'), [])
    t.same(await searched('mail.example'), ['gone@mail.example', 'jose.garcia@mail.example'])
    t.same(await searched('"'), [])
    await until('the index to know them', async () => (await list('?search=jose')).data.length === 1)
  }
  t.same(await emails('?subscribed=false'), ['gone@mail.example'])
  t.same((await emails('?subscribed=true')).length, 4)
  t.same(await emails('?bounced=true'), [])
  t.same((await list('?subscribed=true&bounced=false&search=example')).pagination.total, 4)
  t.match(await list('?limit=2&offset=4'), {
    data: [{ email: 'jose.garcia@mail.example' }],
    pagination: { total: 5, limit: 2, offset: 4, has_more: false },
  })
})
