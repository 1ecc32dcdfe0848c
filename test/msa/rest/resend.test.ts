/** A message sent once more: to the same or another address, by key and by operators. */
import t, { type Test } from 'tap'
import { simpleParser } from 'mailparser'
import { openTestAppliance } from '../../support/program/appliance.js'
import { tokenWith } from '../../support/program/operators.js'

const good = { to: ['ann@one.test'], from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const send = async (fields: object = {}) => {
    const { status, body } = await postroad.send(key, { ...good, ...fields })
    if (status !== 200 && status !== 202) throw new Error(JSON.stringify(body))
    const { results, message_id: scheduled } = body.data as {
      results?: { message_id: string }[]
      message_id?: string
    }
    return results?.[0]?.message_id ?? scheduled ?? ''
  }
  const delivered = async (id: string) => {
    await postroad.messageOnce(key, id, 'delivered')
    return simpleParser(Buffer.from(String((await postroad.get(`/capture/${id}`)).body.data.raw), 'latin1'))
  }
  const resend = (id: string, body: object = {}, headers: Record<string, string> = {}, token = key) =>
    postroad.post(`/api/v1/email/${id}/resend`, body, { key: token, headers })
  return { ...postroad, key, send, delivered, resend, postroad }
}

// operations: POST /email/{messageId}/resend
t.test('a message is sent again as a new one, attachments and header fields included', async t => {
  const { send, delivered, resend, key, postroad } = await open(t)
  const content = Buffer.alloc(300_000, 'abcdefgh').toString('base64')
  const first = await send({
    ...{
      html: '<p>Hi {{name}}</p>',
      template_data: { name: 'Ann' },
      headers: { 'X-Order': '7' },
      tags: ['a'],
    },
    attachments: [
      { filename: 'big.bin', content },
      { filename: 'small.txt', content: 'SGk=' },
    ],
  })
  const original = await delivered(first)
  const { status, body } = await resend(first)
  t.match({ status, body }, { status: 200, body: { data: { to: 'ann@one.test', resent_from: first } } })
  const second = String(body.data.message_id)
  const copy = await delivered(second)
  t.not(second, first)
  t.not(copy.messageId, original.messageId)
  t.equal(copy.subject, original.subject)
  t.match(copy.html, 'Hi Ann')
  t.equal(copy.headers.get('x-order'), '7')
  t.same(
    copy.attachments.map(({ filename, content }) => [filename, content.toString('base64')]),
    [
      ['big.bin', content],
      ['small.txt', 'SGk='],
    ],
  )
  t.match((await postroad.get(`/api/v1/email/${second}`, { key })).body.data, {
    tags: ['a'],
    campaign_id: null,
  })
})

// operations: POST /email/{messageId}/resend
t.test('another address gets it too', async t => {
  const { send, delivered, resend } = await open(t)
  const first = await send()
  await delivered(first)
  const { body } = await resend(first, { to: ' bob@TWO.test ' })
  t.equal(body.data.to, 'bob@two.test')
  t.match((await delivered(String(body.data.message_id))).to, { text: 'bob@two.test' })
})

t.test('mail received by SMTP is sent again unchanged', async t => {
  const { delivered, resend, baseUrl, workspaceId, ...postroad } = await open(t)
  const owner = await tokenWith(postroad, 'owner')
  const body = 'x'.repeat(70).concat('\r\n').repeat(6_000)
  const raw = `From: me@sender.test\r\nTo: ann@one.test\r\nMessage-ID: <own@sender.test>\r\nSubject: By SMTP\r\n\r\n${body}`
  const answer = await fetch(`${baseUrl}/api/admin/v1/messages/submit?workspace_id=${workspaceId}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${owner}`, 'Content-Type': 'message/rfc822' },
    body: raw,
  })
  const { data } = (await answer.json()) as { data: { message_ids: string[] } }
  const [first = ''] = data.message_ids
  await delivered(first)
  const again = await resend(first)
  const copy = await delivered(String(again.body.data.message_id))
  t.match(copy, { messageId: '<own@sender.test>', subject: 'By SMTP' })
  t.equal(copy.text?.replaceAll('\n', '\r\n').trim(), body.trim())
})

t.test('a repeated request with an Idempotency-Key sends nothing twice', async t => {
  const { send, delivered, resend, key, postroad } = await open(t)
  const first = await send()
  await delivered(first)
  const once = await resend(first, {}, { 'Idempotency-Key': 'again-1' })
  const twice = await resend(first, {}, { 'Idempotency-Key': 'again-1' })
  t.same(twice.body, once.body)
  const { body } = await postroad.get('/api/v1/email?limit=10', { key })
  t.equal((body.data as unknown[]).length, 2)
  const other = await resend(first, { to: 'bob@two.test' }, { 'Idempotency-Key': 'again-1' })
  t.match(other, { status: 409, body: { error: { code: 'idempotency_conflict' } } })
})

// answers: POST /email/{messageId}/resend: conflict
t.test('what cannot be sent again is refused with the reason, and nothing is sent', async t => {
  const { send, delivered, resend, key, clock, postroad } = await open(t)
  const first = await send()
  await delivered(first)
  await postroad.post('/api/v1/suppressions', { email: 'ann@one.test', reason: 'manual' }, { key })
  t.match(await resend(first), {
    status: 409,
    body: { error: { code: 'conflict', path: 'to', message: /ann@one\.test is suppressed/ } },
  })
  t.match(await resend(first, { to: 'nobody' }), { status: 400, body: { error: { path: 'to' } } })
  t.match(await resend(first, { to: 7 }), { status: 400 })
  t.match(await resend('0192f000-0000-7000-8000-00000000abcd'), { status: 404 })
  t.match(await resend('nothing'), { status: 404 })
  const later = await send({ to: ['cyd@one.test'], send_at: new Date(clock.now() + 3_600_000).toISOString() })
  t.match(await resend(later), { status: 409, body: { error: { message: /still waiting/ } } })
  t.equal(((await postroad.get('/api/v1/email?limit=10', { key })).body.data as unknown[]).length, 2)
})

// answers: POST /email/{messageId}/resend: domain_invalid
t.test('a domain that may no longer send is refused', async t => {
  const { send, delivered, resend, workspaceId, postroad } = await open(t)
  await postroad.run('domain', 'add', 'shop.test', '--workspace', workspaceId, '--vouch')
  const first = await send({ from_email: 'me@shop.test' })
  await delivered(first)
  await postroad.run('domain', 'remove', 'shop.test', '--workspace', workspaceId)
  t.match(await resend(first), {
    status: 403,
    body: { error: { code: 'domain_invalid', message: /shop\.test/ } },
  })
})

// answers: POST /email/{messageId}/resend: limit_reached
t.test('a copy counts against the limits of its workspace', async t => {
  const { send, delivered, resend, workspaceId, clock, postroad } = await open(t)
  const first = await send()
  await delivered(first)
  await postroad.run('workspace', 'set', workspaceId, 'hourly_limit=1')
  await clock.advance(2_000)
  t.match(await resend(first), { status: 403, body: { error: { code: 'limit_reached' } } })
})

t.test('operators who may send do it under their name; viewers may not', async t => {
  const { send, delivered, resend, workspaceId, ...postroad } = await open(t)
  const first = await send()
  await delivered(first)
  const named = { 'X-Workspace': workspaceId }
  const marketer = await tokenWith(postroad, [{ workspaceId, role: 'marketer' }])
  const viewer = await tokenWith(postroad, [{ workspaceId, role: 'viewer' }])
  t.match(await resend(first, {}, named, viewer), { status: 403 })
  t.match(await resend(first, {}, named, marketer), { status: 200 })
  const activity = await postroad.get('/api/v1/activity', { key: postroad.key })
  t.match(activity.body.data, [
    { action: 'email.resent', subject: 'ann@one.test', actor: { type: 'operator' } },
  ])
})
