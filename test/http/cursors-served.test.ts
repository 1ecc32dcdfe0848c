/** Paging by cursor over HTTP: every long list, from its first page to its last, and cursors that are refused. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const get = async (path: string) => (await postroad.get(`/api/v1${path}`, { key })).body
  const post = async (path: string, body: object) =>
    (await postroad.post(`/api/v1${path}`, body, { key })).body.data
  const readWith = async (asKey: string, path: string) =>
    (await postroad.get(`/api/v1${path}`, { key: asKey })).body
  return { postroad, readWith, get, add: post }
}

interface Page {
  readonly data: readonly unknown[]
  readonly pagination: {
    readonly total: number
    readonly has_more: boolean
    readonly next_cursor: string | null
  }
}

/** All rows of a list, page after page. */
async function walk(get: (path: string) => Promise<Page>, path: string, limit: number) {
  const rows: unknown[] = []
  const pages: Page['pagination'][] = []
  for (let after = ''; ;) {
    const page = await get(`${path}${path.includes('?') ? '&' : '?'}limit=${limit}${after}`)
    rows.push(...page.data)
    pages.push(page.pagination)
    if (page.pagination.next_cursor === null) return { rows, pages }
    after = `&after=${encodeURIComponent(page.pagination.next_cursor)}`
  }
}

// proves: decisions: Added after the whole contract > Idempotency-Key is accepted on every
t.test('every long list is read to its end by cursor, and says the same total on each page', async t => {
  const { get, add, postroad } = await open(t)
  const list = await add('/lists', { name: 'News' })
  const dynamic = await add('/lists', {
    name: 'All',
    type: 'dynamic',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'contains', value: 'x.example' }] },
  })
  const segment = await add('/segments', {
    name: 'All',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'contains', value: 'x.example' }] },
  })
  const tag = await add('/tags', { name: 'VIP' })
  const ids: string[] = []
  for (const at of [1, 2, 3, 4, 5])
    ids.push((await add('/contacts', { email: `c${at}@x.example`, list_id: list.id })).id)
  await add(`/tags/${tag.id}/contacts`, { contact_ids: ids })
  for (const at of [1, 2, 3, 4, 5]) {
    await add('/suppressions', { email: `s${at}@x.example` })
    await postroad.send(postroad.key, {
      to: `c${at}@x.example`,
      from_email: 'shop@shared.test',
      subject: 'Hi',
      text: 'Hi',
    })
  }
  for (const [path, limit] of [
    ['/contacts', 2],
    ['/contacts?sort=email', 2],
    ['/contacts?sort=-updated_at&tag=vip', 2],
    [`/contacts?list_id=${list.id}`, 2],
    [`/contacts?list_id=${dynamic.id}&sort=created_at`, 2],
    [`/contacts?segment_id=${segment.id}`, 2],
    [`/lists/${list.id}/members`, 2],
    [`/lists/${dynamic.id}/members`, 2],
    [`/tags/${tag.id}/contacts`, 2],
    [`/segments/${segment.id}/contacts`, 2],
    ['/suppressions', 2],
    ['/email', 2],
    ['/email?to=c1@x.example', 1],
    ['/activity', 3],
  ] as const) {
    const whole = await get(`${path}${path.includes('?') ? '&' : '?'}limit=100`)
    const uncounted = await walk(get, `${path}${path.includes('?') ? '&' : '?'}count=false`, limit)
    t.same(uncounted.rows, whole.data, `${path} without a count has the same rows`)
    t.ok(uncounted.pages.every(({ total }) => total > 0 && total <= whole.pagination.total))
    const { rows, pages } = await walk(get, path, limit)
    t.same(rows, whole.data, path)
    t.ok(rows.length > 0, path)
    t.ok(
      pages.every(({ total }) => total === whole.pagination.total),
      `${path}: total`,
    )
    t.same(
      pages.map(({ has_more: hasMore }) => hasMore),
      pages.map((_, at) => at < pages.length - 1),
      `${path}: has_more`,
    )
  }
})

// proves: decisions: Added after the whole contract > Idempotency-Key is accepted on every
t.test(
  'a cursor of another list, order or filter, of another workspace, or one that was changed is refused',
  async t => {
    const { get, readWith, add, postroad } = await open(t)
    for (const at of [1, 2, 3]) await add('/contacts', { email: `c${at}@x.example` })
    for (const at of [1, 2, 3]) await add('/suppressions', { email: `s${at}@x.example` })
    const { pagination } = await get('/contacts?limit=1&sort=email')
    const cursor: string = pagination.next_cursor
    const refused = { error: { code: 'validation_error', path: 'after' } }
    for (const query of [
      `/contacts?after=${cursor}`,
      `/contacts?sort=-email&after=${cursor}`,
      `/contacts?sort=email&subscribed=true&after=${cursor}`,
      `/suppressions?after=${cursor}`,
      `/contacts?sort=email&after=${cursor.replace(/^./, 'x')}`,
      `/contacts?sort=email&after=${cursor.split('.')[0]!}`,
      '/contacts?sort=email&after=nonsense',
      '/contacts?sort=email&after=..',
    ])
      t.match(await get(query), refused, query)
    const sandboxKey = await postroad.makeKey('--sandbox')
    t.match(await readWith(sandboxKey, `/contacts?sort=email&after=${cursor}`), refused)
    t.match(await get(`/contacts?sort=email&offset=1&after=${cursor}`), {
      error: { code: 'validation_error', path: 'offset' },
    })
    t.match(await get(`/contacts?sort=email&limit=2&after=${cursor}`), {
      data: [{ email: 'c2@x.example' }, { email: 'c3@x.example' }],
      pagination: { total: 3, limit: 2, offset: 0, has_more: false, next_cursor: null },
    })
  },
)

// proves: Contacts > GET /contacts
// answers: GET /contacts: not_found
t.test('contacts are listed by address, list, tag, segment and moment, in the order asked for', async t => {
  const { get, add } = await open(t)
  const emails = async (query: string) => {
    const body = await get(`/contacts${query}`)
    return body.data?.map((one: { email: string }) => one.email) ?? body
  }
  const list = await add('/lists', { name: 'News' })
  const tag = await add('/tags', { name: 'VIP' })
  const bob = await add('/contacts', { email: 'bob@x.example', list_id: list.id, attributes: { age: 40 } })
  await add('/contacts', { email: 'ann@x.example', list_id: list.id })
  await add(`/tags/${tag.id}/contacts`, { contact_ids: [bob.id] })
  const segment = await add('/segments', {
    name: 'Old',
    conditions: { match: 'all', rules: [{ field: 'age', operator: 'gt', value: 30 }] },
  })
  t.same(await emails('?email=%20BOB@X.example'), ['bob@x.example'])
  t.same(await emails(`?list_id=${list.id}&sort=email`), ['ann@x.example', 'bob@x.example'])
  t.same(await emails('?sort=-email'), ['bob@x.example', 'ann@x.example'])
  t.same(await emails('?tag=vip'), ['bob@x.example'])
  t.same(await emails(`?tag=${tag.id}`), ['bob@x.example'])
  t.same(await emails(`?segment_id=${segment.id}`), ['bob@x.example'])
  t.same(await emails('?created_since=2026-01-05T10:00:00Z'), ['ann@x.example', 'bob@x.example'])
  t.same(await emails('?created_since=2026-01-05T10:00:01Z'), [])
  t.same(await emails('?updated_since=2026-01-05T10:00:00Z&sort=updated_at'), [
    'bob@x.example',
    'ann@x.example',
  ])
  for (const [query, path] of [
    ['list_id=0192f000-0000-7000-8000-00000000abcd', 'list_id'],
    ['segment_id=nonsense', 'segment_id'],
    ['tag=nobody', 'tag'],
  ])
    t.match(await get(`/contacts?${query ?? ''}`), { error: { code: 'not_found', path } })
  t.match(await get('/contacts?sort=age'), { error: { code: 'validation_error', path: 'sort' } })
  t.match(await get('/contacts?created_since=yesterday'), {
    error: { code: 'validation_error', path: 'created_since' },
  })
})
