/** Lists and tags over HTTP on the running appliance: who is in them, and what is counted. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { clientOf } from '../support/api/client.js'
import { until } from '../support/until.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
const LEGACY = { match: 'all', rules: [{ field: 'email', operator: 'contains', value: 'legacy' }] }

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const at = (path: string) => `/api/v1${path}`
  const api = {
    get: (path: string) => postroad.get(at(path), { key }),
    post: (path: string, body?: object) => postroad.post(at(path), body, { key }),
    put: (path: string, body: object) => postroad.put(at(path), body, { key }),
    patch: (path: string, body: object) => postroad.patch(at(path), body, { key }),
    remove: (path: string, body?: object) => postroad.delete(at(path), { key }, body),
  }
  return {
    ...postroad,
    key,
    ...api,
    make: async (path: string, body: object): Promise<string> =>
      String((await api.post(path, body)).body.data.id),
    contact: async (name: string): Promise<string> =>
      String((await api.post('/contacts', { email: `${name}@x.example` })).body.data.id),
    emails: async (path: string) =>
      (await api.get(path)).body.data.map(({ email }: { email: string }) => email),
  }
}

// proves: Other resources > List fields name (required) description
// proves: Lists, segments, tags > GET /lists | POST /lists | GET, PATCH, DELETE /lists/:id
// proves: decisions: Contacts > PATCH bodies list {name? description?
t.test('a list is made, shown, changed and deleted; its members stay', async t => {
  const { get, post, patch, remove, contact, make, clock } = await open(t)
  const made = await post('/lists', { name: ' News ', description: 'Monthly', public: true })
  const { id } = made.body.data
  t.match(made, {
    status: 201,
    body: {
      data: {
        name: 'News',
        description: 'Monthly',
        type: 'static',
        conditions: null,
        public: true,
        double_opt_in: false,
        member_count: 0,
      },
    },
  })
  const ann = await contact('ann')
  await post(`/lists/${id}/members`, { contact_ids: [ann] })
  t.match(await get(`/lists/${id}`), { status: 200, body: { data: { member_count: 1 } } })
  t.match(await patch(`/lists/${id}`, { name: 'Letter', description: null, double_opt_in: true }), {
    status: 200,
    body: { data: { name: 'Letter', description: null, public: true, double_opt_in: true, member_count: 1 } },
  })
  await make('/lists', { name: 'Old', type: 'dynamic', conditions: LEGACY })
  t.match((await get('/lists?type=dynamic')).body, {
    data: [{ name: 'Old', member_count: 0 }],
    pagination: { total: 1 },
  })
  t.match((await get('/lists')).body, { data: [{ name: 'Old' }, { name: 'Letter', member_count: 1 }] })
  t.match(await remove(`/lists/${id}`), { status: 200, body: { data: { success: true } } })
  t.equal((await get(`/lists/${id}`)).status, 404)
  t.equal((await remove(`/lists/${id}`)).status, 404)
  await clock.advance(60_000)
  t.match((await get(`/contacts/${ann}`)).body.data, { email: 'ann@x.example', lists: [] })
})

// proves: Lists, segments, tags > GET /lists/:id/members | POST, DELETE /lists/:id/members
// proves: decisions: Contacts > List type static (default) or | PATCH bodies list {name? description?
t.test(
  'contacts are put into a list and taken out, by body or query; what is so already is skipped',
  async t => {
    const { post, remove, contact, make, get, emails } = await open(t)
    const list = `/lists/${await make('/lists', { name: 'News' })}`
    const [ann, bob, eve] = [await contact('ann'), await contact('bob'), await contact('eve')]
    t.match(await post(`${list}/members`, { contact_ids: [ann, bob.toUpperCase(), ann, MADE_UP, 'x'] }), {
      status: 200,
      body: { data: { added: 2, skipped: 0, not_found: 2 } },
    })
    t.match(await post(`${list}/members`, { contact_ids: [bob, eve] }), {
      body: { data: { added: 1, skipped: 1, not_found: 0 } },
    })
    t.same(await emails(`${list}/members`), ['eve@x.example', 'bob@x.example', 'ann@x.example'])
    t.same(await emails(`${list}/members?limit=1&offset=2`), ['ann@x.example'])
    t.match(await remove(`${list}/members`, { contact_ids: [bob] }), {
      status: 200,
      body: { data: { removed: 1, skipped: 0, not_found: 0 } },
    })
    t.match(await remove(`${list}/members?contact_ids=${ann},${bob},${MADE_UP}`), {
      body: { data: { removed: 1, skipped: 1, not_found: 1 } },
    })
    t.match(await remove(`${list}/members`), { status: 400, body: { error: { path: 'contact_ids' } } })
    t.same((await get(list)).body.data.member_count, 1)
    const ids = Array.from({ length: 5_001 }, () => MADE_UP)
    t.match(await post(`${list}/members`, { contact_ids: ids }), { status: 400 })
    t.match(await post(`${list}/members`, { contact_ids: ids.slice(1) }), {
      status: 200,
      body: { data: { added: 0, not_found: 1 } },
    })
  },
)

// proves: Contacts > POST /contacts
// proves: decisions: Contacts > Additive fields updated_at bounced (boolean) | List type static (default) or
// answers: DELETE /lists/{id}/members: conflict; POST /contacts: conflict; POST /lists/{id}/members: conflict
t.test('the members of a dynamic list follow from its conditions, and cannot be edited', async t => {
  const { get, post, remove, patch, contact, make, emails } = await open(t)
  const list = `/lists/${await make('/lists', { name: 'Old', type: 'dynamic', conditions: LEGACY })}`
  const ann = await contact('ann.legacy')
  await contact('bob')
  t.match((await get(list)).body.data, { type: 'dynamic', conditions: LEGACY, member_count: 1 })
  t.same(await emails(`${list}/members`), ['ann.legacy@x.example'])
  const conflict = { status: 409, body: { error: { code: 'conflict' } } }
  t.match(await post(`${list}/members`, { contact_ids: [ann] }), conflict)
  t.match(await remove(`${list}/members`, { contact_ids: [ann] }), conflict)
  const listId = list.replace('/lists/', '')
  t.match(await post('/contacts', { email: 'c@x.example', list_id: listId }), conflict)
  const none = { match: 'all', rules: [] }
  t.match(await patch(list, { conditions: none }), { body: { data: { member_count: 0 } } })
  t.match(await post('/lists', { name: 'x', type: 'dynamic' }), {
    status: 400,
    body: { error: { path: 'conditions' } },
  })
  t.match(await post('/lists', { name: 'x', conditions: LEGACY }), {
    status: 400,
    body: { error: { path: 'conditions' } },
  })
})

// proves: Contacts > GET /contacts/duplicates
// answers: GET /contacts/duplicates: not_found
t.test('contacts in more than one list are found, of all lists or of one', async t => {
  const { get, post, contact, make } = await open(t)
  const [news, shop, other] = [
    await make('/lists', { name: 'News' }),
    await make('/lists', { name: 'Shop' }),
    await make('/lists', { name: 'Other' }),
  ]
  const [ann, bob, eve] = [await contact('ann'), await contact('bob'), await contact('eve')]
  await post(`/lists/${news}/members`, { contact_ids: [ann, bob] })
  await post(`/lists/${shop}/members`, { contact_ids: [ann, eve] })
  await post(`/lists/${other}/members`, { contact_ids: [eve] })
  t.match((await get('/contacts/duplicates')).body, {
    data: [
      { email: 'eve@x.example', lists: [{ name: 'Other' }, { name: 'Shop' }] },
      { email: 'ann@x.example', lists: [{ name: 'News' }, { name: 'Shop' }] },
    ],
    pagination: { total: 2, has_more: false },
  })
  t.match((await get(`/contacts/duplicates?list_id=${news}&limit=1`)).body, {
    data: [{ email: 'ann@x.example', lists: [{ name: 'News' }, { name: 'Shop' }] }],
    pagination: { total: 1 },
  })
  t.match(await get(`/contacts/duplicates?list_id=${MADE_UP}`), {
    status: 404,
    body: { error: { code: 'not_found', path: 'list_id' } },
  })
})

// proves: Other resources > Tag name (required) color (string
// proves: Lists, segments, tags > GET /tags | POST /tags | GET, PATCH, DELETE /tags/:id | GET /tags/:id/contacts
// proves: Lists, segments, tags > POST, DELETE /tags/:id/contacts
// proves: decisions: Contacts > PATCH bodies list {name? description?
// answers: PATCH /tags/{id}: duplicate; POST /tags: duplicate
t.test('a tag is made once, put on contacts and taken off, and goes from all when it is deleted', async t => {
  const { get, post, patch, remove, contact, make, emails, clock } = await open(t)
  const made = await post('/tags', { name: 'VIP', color: '#36C', description: 'Best' })
  const tag = `/tags/${made.body.data.id}`
  t.match(made, {
    status: 201,
    body: { data: { name: 'VIP', color: '#36c', description: 'Best', contact_count: 0 } },
  })
  const duplicate = { status: 409, body: { error: { code: 'duplicate', path: 'name' } } }
  t.match(await post('/tags', { name: 'vip' }), duplicate)
  t.match(await post('/tags', { name: 'x', color: 'red' }), {
    status: 400,
    body: { error: { path: 'color' } },
  })
  const other = await make('/tags', { name: 'Önly' })
  t.match(await patch(`/tags/${other}`, { name: 'Vip' }), duplicate)
  const [ann, bob] = [await contact('ann'), await contact('bob')]
  t.match(await post(`${tag}/contacts`, { contact_ids: [ann, bob, MADE_UP] }), {
    body: { data: { added: 2, skipped: 0, not_found: 1 } },
  })
  t.match((await get(`/contacts/${ann}`)).body.data.tags, [{ name: 'VIP' }])
  t.same(await emails(`${tag}/contacts`), ['bob@x.example', 'ann@x.example'])
  t.match(await remove(`${tag}/contacts`, { contact_ids: [bob] }), {
    body: { data: { removed: 1, skipped: 0, not_found: 0 } },
  })
  t.match((await get('/tags?search=only')).body, { data: [{ name: 'Önly' }], pagination: { total: 1 } })
  t.match(await patch(tag, { name: 'Vip', color: null, description: null }), {
    status: 200,
    body: { data: { name: 'Vip', color: null, description: null, contact_count: 1 } },
  })
  t.match((await get('/tags')).body.data, [{ name: 'Önly' }, { name: 'Vip', contact_count: 1 }])
  t.match(await remove(tag), { status: 200, body: { data: { success: true } } })
  t.equal((await get(tag)).status, 404)
  t.same((await get(`/contacts/${ann}`)).body.data.tags, [])
  await clock.advance(60_000)
  t.match(await post('/tags', { name: 'VIP' }), { status: 201, body: { data: { contact_count: 0 } } })
})

// proves: States and transitions > Contact POST delete-all with confirm true; Contacts > POST /contacts/delete-all
// proves: Errors > confirmation_required; decisions: Contacts > POST /contacts/restore {contact_ids? string[] <=
// answers: POST /contacts/delete-all: confirmation_required
// at and past limit: Limits > Soft-deleted contacts restorable
t.test('deleting all asks for confirmation, and can be taken back for thirty days', async t => {
  const { get, post, contact, make } = await open(t)
  const list = `/lists/${await make('/lists', { name: 'News' })}`
  const ids = [await contact('ann'), await contact('bob'), await contact('eve')]
  await post(`${list}/members`, { contact_ids: ids })
  for (const body of [{}, { confirm: false }, { confirm: null }])
    t.match(await post('/contacts/delete-all', body), {
      status: 400,
      body: { error: { code: 'confirmation_required' } },
    })
  t.match(
    await post('/contacts/delete-all'),
    { status: 400, body: { error: { code: 'confirmation_required' } } },
    'no body confirms nothing',
  )
  t.equal((await get('/contacts')).body.pagination.total, 3, 'nothing was deleted')
  t.match(await post('/contacts/delete-all', { confirm: true }), {
    status: 200,
    body: { data: { deleted: 3, restorable_until: '2026-02-04T10:00:00.000Z' } },
  })
  t.match((await get('/contacts')).body, { data: [], pagination: { total: 0 } })
  t.equal((await get(`/contacts/${ids[0]}`)).status, 404)
  t.equal((await get(list)).body.data.member_count, 0)
  t.match((await get('/activity?action=contacts.deleted_all')).body.data, [{ details: { contacts: 3 } }])
  const again = await contact('bob')
  t.not(again, ids[1], 'an address can become a contact again')
  t.match(await post('/contacts/restore', { contact_ids: [ids[0], ids[1], MADE_UP] }), {
    status: 200,
    body: { data: { restored: 1, skipped: 2 } },
  })
  t.match((await get(`/contacts/${ids[0]}`)).body.data.lists, [{ name: 'News' }])
  t.match(await post('/contacts/restore', { all: true }), { body: { data: { restored: 1, skipped: 1 } } })
  t.equal((await get(list)).body.data.member_count, 2)
  t.match(await post('/contacts/restore', {}), { status: 400 })
})

// proves: Contacts > POST /contacts/bulk-delete; decisions: Contacts > attributes PATCH merges a null
// at and past limit: Limits > Bulk contact delete
t.test('many contacts are deleted for good at once, up to 5,000', async t => {
  const { get, post, contact } = await open(t)
  const ids = [await contact('ann'), await contact('bob'), await contact('eve')]
  t.match(await post('/contacts/bulk-delete', { contact_ids: [ids[0], ids[2], MADE_UP, ids[0]] }), {
    status: 200,
    body: { data: { deleted: 2, not_found: 1 } },
  })
  t.match((await get('/contacts')).body, { data: [{ email: 'bob@x.example' }], pagination: { total: 1 } })
  t.match(await post('/contacts/restore', { all: true }), { body: { data: { restored: 0, skipped: 0 } } })
  const many = Array.from({ length: 5_001 }, () => MADE_UP)
  t.match(await post('/contacts/bulk-delete', { contact_ids: many }), {
    status: 400,
    body: { error: { code: 'validation_error', path: 'contact_ids' } },
  })
  t.match(await post('/contacts/bulk-delete', { contact_ids: many.slice(1) }), {
    body: { data: { deleted: 0, not_found: 1 } },
  })
})

// proves: Contacts > POST /contacts/bulk-delete; decisions: Contacts > attributes PATCH merges a null
t.test('contacts deleted restorably come back with their lists and tags', async t => {
  const { get, post, contact, make } = await open(t)
  const [ann, bob] = [await contact('ann'), await contact('bob')]
  const list = await make('/lists', { name: 'News' })
  await post(`/lists/${list}/members`, { contact_ids: [ann] })
  t.match(await post('/contacts/bulk-delete', { contact_ids: [ann, MADE_UP], restorable: true }), {
    body: { data: { deleted: 1, not_found: 1 } },
  })
  t.match(await get(`/contacts/${ann}`), { status: 404 })
  t.match((await get(`/lists/${list}`)).body, { data: { member_count: 0 } })
  t.match(await post('/contacts/restore', { contact_ids: [ann, bob] }), {
    body: { data: { restored: 1, skipped: 1 } },
  })
  t.match((await get(`/contacts/${ann}`)).body, { data: { email: 'ann@x.example', lists: [{ id: list }] } })
  t.match((await get(`/lists/${list}`)).body, { data: { member_count: 1 } })
})

// proves: Other resources > Segment name (required) conditions =
// proves: Lists, segments, tags > GET /segments | POST /segments | GET, PATCH, DELETE /segments/:id
// proves: Lists, segments, tags > POST /segments/:id/estimate | GET /segments/:id/contacts
// proves: decisions: Contacts > Segment match all or any
// proves: decisions: Added after the whole contract > Segment rules With a number
t.test('a segment is made, counted and listed; those that may be mailed are counted apart', async t => {
  const { get, post, patch, remove, contact, make } = await open(t)
  const conditions = {
    match: 'all',
    rules: [
      { field: 'email', operator: 'ends_with', value: '@x.example' },
      {
        match: 'any',
        rules: [
          { field: 'plan', operator: 'equals', value: 'PRO' },
          { field: 'age', operator: 'gte', value: 40 },
        ],
      },
    ],
  }
  const made = await post('/segments', { name: 'Best', conditions })
  t.match(made, { status: 201, body: { data: { name: 'Best', conditions } } })
  const segment = `/segments/${made.body.data.id}`
  for (const [name, attributes, more] of [
    ['ann', { plan: 'pro' }, {}],
    ['bob', { plan: 'free', age: '41' }, {}],
    ['cat', { plan: 'Pro' }, { subscribed: false }],
    ['dan', { plan: 'free', age: 39 }, {}],
    ['eve', { plan: 'pro' }, {}],
  ] as const)
    await post('/contacts', { email: `${name}@x.example`, attributes, ...more })
  await post('/suppressions', { email: 'eve@x.example', scope: 'marketing' })
  t.match(await post(`${segment}/estimate`, {}), {
    status: 200,
    body: { data: { count: 4, mailable_count: 2 } },
  })
  t.match((await get(`${segment}/contacts?limit=2`)).body, {
    data: [{ email: 'eve@x.example' }, { email: 'cat@x.example' }],
    pagination: { total: 4, has_more: true },
  })
  await post('/suppressions', { email: '@x.example' })
  t.match(await post(`${segment}/estimate`, {}), { body: { data: { count: 4, mailable_count: 0 } } })
  t.match(await patch(segment, { name: 'Nobody', conditions: { match: 'any', rules: [] } }), { status: 200 })
  t.match(await post(`${segment}/estimate`, {}), { body: { data: { count: 0, mailable_count: 0 } } })
  t.match((await get('/segments?search=nob')).body, { data: [{ name: 'Nobody' }], pagination: { total: 1 } })
  t.match(await remove(segment), { status: 200, body: { data: { success: true } } })
  for (const path of [segment, `${segment}/contacts`]) t.equal((await get(path)).status, 404)
  await contact('zoe')
  const every = await make('/segments', { name: 'No conditions' })
  t.match(await post(`/segments/${every}/estimate`, {}), { body: { data: { count: 0 } } })
})

// proves: Lists, segments, tags > POST /segments/:id/estimate
// operations: POST /segments/estimate
t.test(
  'conditions can be estimated before they are saved, with a sample for who may see contacts',
  async t => {
    const { post, ...postroad } = await open(t)
    for (let at = 0; at < 12; at += 1)
      await post('/contacts', { email: `c${at}@x.example`, attributes: { plan: 'pro' }, subscribed: at > 1 })
    await post('/contacts', { email: 'other@x.example' })
    const conditions = { match: 'all', rules: [{ field: 'plan', operator: 'equals', value: 'pro' }] }
    const { status, body } = await post('/segments/estimate', { conditions })
    t.match([status, body.data], [200, { count: 12, mailable_count: 10, warnings: [] }])
    const emails = body.data.sample.map(({ email }: { email: string }) => email)
    t.same(
      emails,
      Array.from({ length: 10 }, (_, at) => `c${11 - at}@x.example`),
    )
    const counter = await postroad.makeKey('--permissions', 'segments:read')
    const counted = await clientOf(postroad.baseUrl).post(
      '/api/v1/segments/estimate',
      { conditions },
      { key: counter },
    )
    t.match(counted, { status: 200, body: { data: { count: 12, sample: null } } })
    const missing = { match: 'all', rules: [{ field: 'plam', operator: 'is_set' }] }
    t.match((await post('/segments/estimate', { conditions: missing })).body.data, {
      count: 0,
      sample: [],
      warnings: [{ path: 'conditions.rules.0.field' }],
    })
    for (const [rule, path] of [
      [{ field: 'plan', operator: 'is' }, 'conditions.rules.0.operator'],
      [{ field: 'lists', operator: 'equals', value: 'none' }, 'conditions.rules.0.value'],
    ] as const)
      t.match(await post('/segments/estimate', { conditions: { match: 'all', rules: [rule] } }), {
        status: 400,
        body: { error: { code: 'validation_error', path } },
      })
    t.match(await post('/segments/estimate', {}), { status: 400, body: { error: { path: 'conditions' } } })
    t.equal((await postroad.get('/segments')).body.pagination.total, 0)
  },
)

// proves: Other resources > Segment name (required) conditions =; decisions: Contacts > Segment match all or any
// proves: decisions: Added after the whole contract > Segment rules With a number
t.test('conditions that cannot be asked are refused, their rule named', async t => {
  const { post } = await open(t)
  const refused = async (rule: object, path: string) =>
    t.match(
      await post('/segments', { name: 'x', conditions: { match: 'all', rules: [rule] } }),
      { status: 400, body: { error: { code: 'validation_error', path } } },
      JSON.stringify(rule),
    )
  const rule = { field: 'email', operator: 'equals', value: 'x' }
  await refused({ ...rule, operator: 'like' }, 'conditions.rules.0.operator')
  await refused({ ...rule, operator: 'before' }, 'conditions.rules.0.operator')
  await refused({ ...rule, value: undefined }, 'conditions.rules.0.value')
  await refused({ ...rule, operator: 'in' }, 'conditions.rules.0.value')
  await refused(
    { ...rule, operator: 'in', value: Array.from({ length: 501 }, () => 'x') },
    'conditions.rules.0.value',
  )
  await refused({ field: 'subscribed', operator: 'gt', value: 1 }, 'conditions.rules.0.operator')
  await refused({ field: 'created_at', operator: 'after', value: 'yesterday' }, 'conditions.rules.0.value')
  await refused({ field: 'tags', operator: 'within_days', value: 1 }, 'conditions.rules.0.operator')
  const deep = (levels: number): object => (levels === 0 ? rule : { match: 'all', rules: [deep(levels - 1)] })
  t.match(await post('/segments', { name: 'x', conditions: deep(3) }), { status: 201 })
  t.match(await post('/segments', { name: 'x', conditions: deep(4) }), { status: 400 })
  t.match(await post('/segments', { name: 'x', conditions: { match: 'some', rules: [] } }), {
    status: 400,
    body: { error: { path: 'conditions.match' } },
  })
})

// proves: Contacts > GET /contacts; decisions: Contacts > Additive fields updated_at bounced (boolean)
t.test('a contact follows what happens to its mail and its address', async t => {
  const own = await open(t)
  const { post, get, put, remove, contact } = own
  const sandboxKey = await own.makeKey('--sandbox')
  const postroad = clientOf(own.baseUrl)
  const mine = { key: sandboxKey }
  const add = async (name: string) =>
    String((await postroad.post('/api/v1/contacts', { email: `${name}@simulator.test` }, mine)).body.data.id)
  const ids = {
    bounced: await add('bounced'),
    complained: await add('complained'),
    clicked: await add('clicked'),
  }
  await postroad.send(sandboxKey, {
    from_email: 'me@sender.test',
    subject: 'x',
    text: 'x',
    to: ['bounced@simulator.test', 'complained@simulator.test', 'clicked@simulator.test'],
  })
  const shown = async (id: string) => (await postroad.get(`/api/v1/contacts/${id}`, mine)).body.data
  await until('a hard bounce to be known', async () => (await shown(ids.bounced)).bounced === true)
  t.match(await shown(ids.bounced), { bounce_type: 'permanent', subscribed: true, bounced_at: String })
  await until('a complaint to be known', async () => (await shown(ids.complained)).subscribed === false)
  await until('a click to be known', async () => (await shown(ids.clicked)).last_clicked_at !== null)
  t.match((await postroad.get('/api/v1/contacts?bounced=true', mine)).body, { pagination: { total: 1 } })

  const ann = await contact('ann')
  await post('/suppressions', { email: 'ann@x.example', reason: 'unsubscribe' })
  const live = async () => (await get(`/contacts/${ann}`)).body.data
  await until('the suppression to be known', async () => (await live()).subscribed === false)
  await put('/contacts', { email: 'ann@x.example', first_name: 'Ann' })
  t.equal((await live()).subscribed, false)
  await put('/contacts', { email: 'ann@x.example', subscribed: true })
  t.equal((await live()).subscribed, true)
  t.same((await get('/suppressions')).body.data, [], 'who says so lets the unsubscribe go')
  await post('/suppressions', { email: 'bob@x.example' })
  t.match(await post('/contacts', { email: 'bob@x.example', subscribed: true }), {
    status: 201,
    body: { data: { subscribed: false } },
  })
  await post('/suppressions', { email: 'ann@x.example', reason: 'hard_bounce' })
  await until('the bounce to be known', async () => (await live()).bounced === true)
  await remove('/suppressions/ann@x.example')
  await until('the bounce to be forgotten', async () => (await live()).bounced === false)
})

// proves: States and transitions > Contact POST delete-all with confirm true; Contacts > POST /contacts/delete-all
// proves: decisions: Contacts > POST /contacts/restore {contact_ids? string[] <=
// answers: POST /contacts/delete-all: conflict; POST /contacts/restore: conflict
t.test('while all contacts are being deleted, nobody deletes or restores all of them again', async t => {
  const { post, contact, ...postroad } = await open(t)
  await contact('ann')
  // As a process that was killed on the way leaves it.
  postroad.sql(
    `insert into contact_sweeps (id, workspace_id, is_sandbox, kind, position, end_position, changed, skipped, begun_at)
     select 'left', '${postroad.workspaceId}', 0, 'delete', min(seq), max(seq), 0, 0, 1 from contacts`,
  )
  const conflict = { status: 409, body: { error: { code: 'conflict' } } }
  t.match(await post('/contacts/delete-all', { confirm: true }), conflict)
  t.match(await post('/contacts/restore', { all: true }), conflict)
  await postroad.clock.advance(60_000)
  await until('the remaining work to be done', async () => {
    const { status } = await post('/contacts/restore', { all: true })
    return status === 200
  })
})
