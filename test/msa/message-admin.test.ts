/** Messages of all workspaces in the admin API: search, trace, source, and who may see them. */
import t from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'

const MESSAGES = '/api/admin/v1/messages'

async function office(t: Parameters<typeof openTestAppliance>[0]) {
  const postroad = await openTestAppliance(t)
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'Other')
  const all = await tokenWith(postroad, 'viewer')
  const own = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'marketer' }])
  const elsewhere = await tokenWith(postroad, [{ workspaceId: other.id, role: 'owner' }])
  const send = async (to: string[], subject: string, key = postroad.key) => {
    const mail = { to, subject, from_email: 'me@sender.test', html: '<p>Hello <b>you</b>.</p>' }
    const { body } = await postroad.send(key, mail)
    return (body.data.results as { message_id: string }[]).map(({ message_id: id }) => id)
  }
  const find = async (query: string, key = all) => {
    const { status, body } = await postroad.get(`${MESSAGES}?${query}`, { key })
    return status === 200 ? (body.data as { to: string }[]).map(({ to }) => to) : status
  }
  return { postroad, other, all, own, elsewhere, send, find }
}

t.test('messages are found across workspaces, page after page', async t => {
  const { postroad, other, all, own, send, find } = await office(t)
  await send(['ann@one.test', 'bob@one.test'], 'Your invoice 7')
  await send(['cyd@two.test'], 'Other')
  t.same(await find(''), ['cyd@two.test', 'bob@one.test', 'ann@one.test'])
  t.same(await find('to=@ONE.test'), ['bob@one.test', 'ann@one.test'])
  t.same(await find('subject=INVOICE&to=ann@one.test'), ['ann@one.test'])
  t.same(await find(`workspace_id=${other.id}`), [])
  t.same(await find('until=2001-01-01'), [])
  const first = await postroad.get(`${MESSAGES}?limit=2`, { key: all })
  t.match(first.body, { data: [{ workspace_id: postroad.workspaceId }, {}], pagination: { has_more: true } })
  t.same(await find(`limit=2&after=${first.body.pagination.next_cursor as string}`), ['ann@one.test'])
  t.equal(await find('', own), 403)
  t.equal(await find(`workspace_id=${other.id}`, own), 404)
  t.equal((await find(`workspace_id=${postroad.workspaceId}&subject=other`, own)).toString(), 'cyd@two.test')
  for (const bad of ['to=ann', 'status=lost', 'since=soon', 'message_id=x&to=a@b', 'colour=red'])
    t.equal(await find(bad), 400, bad)
})

t.test('a message shows its trace to operators of its workspace only', async t => {
  const { postroad, all, own, elsewhere, send } = await office(t)
  const [ann = ''] = await send(['ann@one.test'], 'Hi')
  await postroad.messageOnce(postroad.key, ann, 'delivered')
  const show = (named: string, key: string) =>
    postroad.get(`${MESSAGES}/${encodeURIComponent(named)}`, { key })
  t.match((await show(ann, own)).body.data, {
    ...{ to: 'ann@one.test', status: 'delivered', workspace_id: postroad.workspaceId, bounce: null },
    ...{ peer: '127.0.0.1', key_id: String, envelope_sender: /@/, trace: [{ outcome: 'delivered' }] },
  })
  t.equal((await show(`<${ann.toUpperCase()}@mx.postroad.test>`, all)).body.data.message_id, ann)
  t.equal((await show(ann, elsewhere)).status, 404)
  t.equal((await show('nothing', all)).status, 404)
})

t.test('mail that was kept in the local inbox says so, in the list and by itself', async t => {
  const { postroad, all, send } = await office(t)
  const [ann = ''] = await send(['ann@one.test'], 'Hi')
  await postroad.messageOnce(postroad.key, ann, 'delivered')
  const { body: list } = await postroad.get(MESSAGES, { key: all })
  t.match(list.data, [{ status: 'delivered', is_captured: true }])
  const { body: one } = await postroad.get(`${MESSAGES}/${ann}`, { key: all })
  t.match(one.data, { status: 'delivered', is_captured: true })
})

t.test("a sandbox's messages belong to the operators of its workspace", async t => {
  const { postroad, own, elsewhere, send, find } = await office(t)
  const sandbox = await postroad.makeKey('--sandbox')
  const [ann = ''] = await send(['ann@one.test'], 'Trial', sandbox)
  t.equal((await postroad.get(`${MESSAGES}/${ann}`, { key: own })).body.data.is_sandbox, true)
  t.equal((await postroad.get(`${MESSAGES}/${ann}`, { key: elsewhere })).status, 404)
  t.same(await find(`workspace_id=${postroad.workspaceId}`, own), [])
  t.same(await find(`workspace_id=${postroad.workspaceId}&is_sandbox=true`, own), ['ann@one.test'])
})

t.test('the source of a message is composed as it was sent', async t => {
  const { postroad, own, elsewhere, send } = await office(t)
  const [ann = ''] = await send(['ann@one.test'], 'Hi there')
  const source = async (key: string) => {
    const answer = await fetch(`${postroad.baseUrl}${MESSAGES}/${ann}/source`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() }
  }
  const found = await source(own)
  t.match(found, { status: 200, type: /^message\/rfc822/ })
  t.match(found.text, /^Subject: Hi there\r$/m)
  t.match(found.text, /^To: ann@one\.test\r$/m)
  t.match(found.text, /Hello <b>you<\/b>/)
  t.equal((await source(elsewhere)).status, 404)
  t.match(await postroad.run('message', 'show', '--raw', ann), { status: 0, out: /^Subject: Hi there/m })
})

t.test('the HTML of a message is shown where it can do nothing', async t => {
  const { postroad, own, elsewhere } = await office(t)
  const hostile =
    '<!doctype html><html><head><base href="https://evil.test/"><meta http-equiv="refresh" content="0;url=https://evil.test"></head>' +
    '<body onload="alert(1)"><script>alert(2)</script><img src="https://evil.test/p.png" onerror="alert(3)">' +
    '<form action="https://evil.test"><button>Go</button></form><iframe src="https://evil.test"></iframe></body></html>'
  const answer = await postroad.post(
    '/api/v1/email/send',
    { to: ['ann@one.test'], from_email: 'shop@sender.example', subject: 'Hi', html: hostile, text: 'Hi <b>' },
    { key: postroad.key },
  )
  const [{ message_id: ann } = { message_id: '' }] = answer.body.data.results as { message_id: string }[]
  const page = async (query: string, key = own) => {
    const shown = await fetch(`${postroad.baseUrl}${MESSAGES}/${ann}/rendered${query}`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    const policy = (shown.headers.get('content-security-policy') ?? '').split('; ')
    return { status: shown.status, headers: shown.headers, policy, text: await shown.text() }
  }
  const shown = await page('')
  t.equal(shown.status, 200)
  t.match(shown.headers.get('content-type'), /^text\/html; charset=utf-8/)
  t.equal(shown.headers.get('x-content-type-options'), 'nosniff')
  t.equal(shown.headers.get('referrer-policy'), 'no-referrer')
  // Nothing of the page is removed: the policy is what stops it.
  t.match(shown.text, /^<!doctype html><base target="_blank">/)
  t.notMatch(shown.text, /\/o\/[\w.-]{20,}\.gif/)
  t.same(
    shown.policy.filter(rule => !rule.startsWith('style-src')),
    [
      'sandbox',
      "default-src 'none'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'self'",
    ],
  )
  t.ok((await page('?images=remote')).policy.includes('img-src data: https: http:'))
  t.equal((await page('?images=all')).status, 400)
  t.equal((await page('', elsewhere)).status, 404)
  const content = await postroad.get(`${MESSAGES}/${ann}/content`, { key: own })
  t.match(content.body.data, { text: 'Hi <b>', has_html: true, attachments: [] })
  t.ok(
    (content.body.data.headers as { name: string; value: string }[]).some(
      ({ name, value }) => name === 'Subject' && value === 'Hi',
    ),
  )
})
