/** Unsubscribe links and preferences over plain HTTP on the running appliance. */
import t, { type Test } from 'tap'
import { makeSubscriberToken } from '../../src/mail/links/subscriber-link.js'
import { visit, type Visiting } from '../support/api/pages.js'
import { openTestAppliance, type ApplianceOptions, type TestAppliance } from '../support/program/appliance.js'
import { linkKeysOf } from '../support/program/links.js'
import { until } from '../support/until.js'

const ONE_CLICK = { form: { 'List-Unsubscribe': 'One-Click' } }
const LONG_GONE = '0192f000-0000-7000-8000-00000000abcd'

async function open(t: Test, options: ApplianceOptions = {}) {
  const postroad = await openTestAppliance(t, options)
  const { workspaceId } = postroad
  const set = (...settings: string[]) => postroad.run('workspace', 'set', workspaceId, ...settings)
  await set('company_name=Corner Shop', 'default_from_email=shop@shop.example')
  const key = await postroad.makeKey()
  const keys = await linkKeysOf(postroad)
  const api = (path: string) => `/api/v1${path}`
  const token = (purpose: 'unsubscribe' | 'preferences', recipient: string, messageId = LONG_GONE) =>
    makeSubscriberToken(keys, purpose, { workspaceId, messageId, recipient })
  const get = (path: string) => postroad.get(api(path), { key })
  return {
    ...postroad,
    key,
    set,
    token,
    send: (body: object) => postroad.send(key, body),
    deliveredOnce: (id: string) => postroad.messageOnce(key, id, 'delivered'),
    get,
    post: (path: string, body: object) => postroad.post(api(path), body, { key }),
    see: (path: string, visiting?: Visiting) => visit(postroad.baseUrl + path, visiting),
    suppressions: async () => (await get('/suppressions')).body.data,
    contact: async (email: string) =>
      (await get(`/contacts?search=${encodeURIComponent(email)}`)).body.data[0],
    events: () => eventsOf(postroad),
  }
}

/** Kinds with what they say, oldest first. */
function eventsOf({ sql }: TestAppliance): { kind: string; payload: Record<string, unknown> }[] {
  const rows = sql<{ kind: string; payload: string }>('select kind, payload from events order by seq')
  return rows.map(({ kind, payload }) => ({ kind, payload: JSON.parse(payload) as Record<string, unknown> }))
}

t.test('an unsubscribe link shows a page with a button and changes nothing until it is pressed', async t => {
  const { see, token, suppressions, events } = await open(t)
  const path = `/u/${token('unsubscribe', 'ann@mail.example')}`
  const page = await see(path)
  t.match(page, { status: 200, headers: { 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' } })
  t.match(page.text, 'Stop sending newsletters and offers from Corner Shop to ann@mail.example?')
  t.match(page.text, /<form method="post">[^]*<button>Unsubscribe<\/button>/)
  t.notMatch(path, 'ann', 'the address cannot be read in the link')
  t.match(await see(path, { method: 'HEAD' }), { status: 200, text: '' })
  t.same(await suppressions(), [])
  t.same(events(), [])
})

t.test('pressing the button unsubscribes once, whatever the message’s status', async t => {
  const { see, token, suppressions, events, post, contact } = await open(t)
  await post('/contacts', { email: 'ann@mail.example' })
  const path = `/u/${token('unsubscribe', 'Ann@mail.example')}`
  const done = await see(path, { form: { by_page: '1' }, headers: { 'Accept-Language': 'fr' } })
  t.match(done, { status: 200, text: /<h1>Vous êtes désabonné\(e\)/ })
  t.match(await suppressions(), [{ email: 'ann@mail.example', reason: 'unsubscribe', scope: 'marketing' }])
  t.match(await see(path, { form: { by_page: '1' } }), { status: 200, text: /You are unsubscribed/ })
  t.match(await see(path), { status: 200, text: /You are unsubscribed/ })
  await until('the contact to follow', async () => (await contact('ann@mail.example')).subscribed === false)
  const told = events().filter(({ kind }) => /unsubscribed$/.test(kind))
  t.match(told, [
    { kind: 'email.unsubscribed', payload: { to: 'Ann@mail.example', source: 'preferences' } },
    { kind: 'contact.unsubscribed', payload: { email: 'ann@mail.example', list_id: null } },
  ])
  t.equal(told.length, 2)
})

t.test('one-click unsubscribe works in any encoding and is never redirected', async t => {
  const { see, token, events } = await open(t)
  const at = (name: string) => `/u/${token('unsubscribe', `${name}@mail.example`)}`
  t.match(await see(at('ann'), ONE_CLICK), { status: 200 })
  const multipart =
    '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n'
  const type = { 'Content-Type': 'multipart/form-data; boundary=b' }
  t.match(await see(at('bob'), { form: multipart, headers: type }), { status: 200 })
  t.match(await see(at('bob'), ONE_CLICK), { status: 200 })
  t.match(await see(at('eve'), { method: 'POST' }), { status: 200 })
  t.match(
    events().map(({ kind, payload }) => [kind, payload['to'], payload['source']]),
    ['ann', 'bob', 'eve'].map(name => ['email.unsubscribed', `${name}@mail.example`, 'one_click']),
  )
})

t.test('of a message that is there the event says what it was part of', async t => {
  const { see, send, token, events, deliveredOnce, set } = await open(t)
  await set('marketing=true')
  const { body } = await send({ to: 'ann@mail.example', subject: 'Sale', text: 'Sale' })
  const { message_id: id } = body.data.results[0]
  await deliveredOnce(id)
  t.equal((await see(`/u/${token('unsubscribe', 'ann@mail.example', id)}`, ONE_CLICK)).status, 200)
  t.match(
    events().filter(({ kind }) => kind === 'email.unsubscribed'),
    [{ payload: { to: 'ann@mail.example', isMarketing: true, source: 'one_click' } }],
  )
  const again = await send({ to: 'ann@mail.example', subject: 'Sale', text: 'Sale' })
  t.match(again.body.data, { skipped: 1, results: [{ reason: 'suppressed' }] }, 'from the answer on')
})

t.test('an invalid link shows a helpful page', async t => {
  const { see, token, suppressions } = await open(t)
  const good = token('unsubscribe', 'ann@mail.example')
  for (const path of [
    '/u/x',
    `/u/${good.slice(0, -1)}`,
    `/u/${good}A`,
    `/u/${good.replace(/.$/, end => (end === 'A' ? 'B' : 'A'))}`,
    `/u/${token('preferences', 'ann@mail.example')}`,
    `/p/${good}`,
    '/p/%00',
  ]) {
    t.match(await see(path), { status: 404, text: /This link does not work/ }, path)
    t.match(await see(path, ONE_CLICK), { status: 404 }, path)
  }
  t.same(await suppressions(), [])
})

t.test('preferences show the public lists, and join and leave them', async t => {
  const { see, token, post, get, contact, events } = await open(t)
  const make = async (body: object) => String((await post('/lists', body)).body.data.id)
  const news = await make({ name: 'News <weekly>', description: 'On Fridays', public: true })
  const sale = await make({ name: 'Sales', public: true, double_opt_in: true })
  const inner = await make({ name: 'Internal' })
  await make({
    name: 'Computed',
    public: true,
    type: 'dynamic',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'is_set' }] },
  })
  const { id } = (await post('/contacts', { email: 'ann@mail.example', list_id: news })).body.data
  const path = `/p/${token('preferences', 'ann@mail.example')}`
  const page = await see(path)
  t.match(page, { status: 200 })
  t.match(page.text, 'Emails ann@mail.example receives from Corner Shop.')
  t.match(page.text, new RegExp(`value="${news}"\\s+checked`))
  t.match(page.text, 'News &lt;weekly&gt;<span>On Fridays</span>')
  t.match(page.text, new RegExp(`name="list" value="${sale}"\\s*/>`))
  t.notMatch(page.text, /Internal|Computed/)
  const saved = await see(path, { form: { do: 'save', shown: [news, sale], list: [sale, inner] } })
  t.match(saved, { status: 200, text: /role="status">Your preferences have been saved/ })
  t.match((await get(`/contacts/${id}`)).body.data.lists, [{ id: sale }])
  t.equal(
    (await get(`/contacts/${id}`)).body.data.lists.length,
    1,
    'a list that is not public cannot be joined',
  )
  const told = () => events().filter(({ kind }) => kind.startsWith('list.'))
  t.match(told().slice(1), [
    { kind: 'list.member_removed', payload: { list_id: news, source: 'preferences' } },
    { kind: 'list.member_added', payload: { list_id: sale, source: 'preferences' } },
  ])
  await see(path, { form: { do: 'save', shown: [news, sale], list: [sale] } })
  t.equal(told().length, 3, 'no change is no event')
  await see(path, { form: { do: 'save', shown: [news], list: [] } })
  t.match((await get(`/contacts/${id}`)).body.data.lists, [{ id: sale }], 'only what was shown is left')
  await see(`/p/${token('preferences', 'new@mail.example')}`, {
    form: { do: 'save', shown: [news], list: [] },
  })
  t.equal(await contact('new@mail.example'), undefined)
  await see(`/p/${token('preferences', 'new@mail.example')}`, {
    form: { do: 'save', shown: [news], list: [news] },
  })
  t.match(await contact('new@mail.example'), { subscribed: true })
})

t.test('a recipient who unsubscribed from everything can subscribe again', async t => {
  const { see, token, post, contact, suppressions, events, send, set } = await open(t)
  await set('marketing=true')
  await post('/contacts', { email: 'ann@mail.example' })
  const path = `/p/${token('preferences', 'ann@mail.example')}`
  t.match((await see(path)).text, 'There are no topics to choose from.')
  t.match(await see(path, { form: { do: 'unsubscribe' } }), {
    text: /does not receive newsletters[^]*Subscribe again/,
  })
  await until('the contact to follow', async () => (await contact('ann@mail.example')).subscribed === false)
  t.notMatch((await see(path, { form: { do: 'save' } })).text, 'saved')
  t.match(await see(path, { form: { do: 'subscribe' } }), {
    text: /will receive emails from Corner Shop again/,
  })
  t.match(await contact('ann@mail.example'), { subscribed: true })
  t.same(await suppressions(), [])
  t.match(events().at(-1), { kind: 'contact.subscribed', payload: { list_id: null, source: 'preferences' } })
  const sent = await send({ to: 'ann@mail.example', subject: 'Sale', text: 'Sale' })
  t.match(sent.body.data, { sent: 1, skipped: 0 })
})

t.test('a link cannot lift a bounce, a complaint or a manual suppression', async t => {
  const { see, token, post, suppressions } = await open(t)
  for (const [email, reason, scope] of [
    ['hard@mail.example', 'hard_bounce', 'all'],
    ['spam@mail.example', 'complaint', 'all'],
    ['hand@mail.example', 'manual', 'marketing'],
    ['@closed.example', 'manual', 'all'],
  ])
    await post('/suppressions', { email, reason, scope })
  for (const email of ['hard@mail.example', 'spam@mail.example', 'hand@mail.example', 'ann@closed.example']) {
    const path = `/p/${token('preferences', email)}`
    const page = await see(path)
    t.match(page.text, `Emails to ${email} have been stopped`)
    t.notMatch(page.text, '<button')
    t.match((await see(path, { form: { do: 'subscribe' } })).text, 'have been stopped')
  }
  t.equal((await suppressions()).length, 4)
})

t.test('public pages can have their own listeners, which do not serve the API', async t => {
  const { token, baseUrl, addresses, get } = await open(t, {
    env: { POSTROAD_HTTP_PUBLIC_LISTEN: '127.0.0.1:0' },
  })
  const [outside] = addresses.public
  const pages = `http://127.0.0.1:${outside?.port ?? 0}`
  const path = `/u/${token('unsubscribe', 'ann@mail.example')}`
  t.match(await visit(pages + path), { status: 200, text: /Unsubscribe/ })
  t.equal((await visit(baseUrl + path)).status, 404)
  t.equal((await get('/health')).status, 200)
  for (const closed of [
    '/api/v1/health',
    '/api/v1/contacts',
    '/openapi.json',
    '/docs',
    '/metrics',
    '/health',
  ])
    t.match(await visit(pages + closed), { status: 404, text: /Page not found/ }, closed)
})

t.test('public pages have their own rate limit, which does not apply to one-click unsubscribes', async t => {
  const { see, token, get } = await open(t, { env: { POSTROAD_HTTP_PUBLIC_RATE_LIMIT: '2' } })
  const path = `/u/${token('unsubscribe', 'ann@mail.example')}`
  await see(path)
  await see(path)
  t.match(await see(path), { status: 429, headers: { 'retry-after': String } })
  t.equal((await see(path, ONE_CLICK)).status, 200)
  t.equal((await get('/contacts')).status, 200)
})
