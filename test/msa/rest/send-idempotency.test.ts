/** Repeated sends: what a client that heard no answer gets when it asks again. */
import t from 'tap'
import { lockDatabase } from '../../support/db/sabotage.js'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const HOUR = 3_600_000

function send(postroad: TestAppliance, idempotencyKey: string, body: object = good, key = postroad.key) {
  const headers = { 'Idempotency-Key': idempotencyKey }
  return postroad.post('/api/v1/email/send', body, { key, headers })
}

const messages = (postroad: TestAppliance) => postroad.rowCounts()['messages']

// proves: Email > A first request is executed | A repeat with the same | The same key with a
// proves: Errors > idempotency_conflict; decisions: Email > Idempotency scope = workspace +
// answers: POST /email/send: idempotency_conflict
t.test('a repeated send is answered as the first was, and mails nobody again', async t => {
  const postroad = await openTestAppliance(t)
  const first = await send(postroad, 'order-1')
  t.match(first, { status: 200, body: { data: { sent: 1 } } })
  t.equal(first.headers.get('X-Idempotency-Status'), 'new')
  const again = await send(postroad, 'order-1', Object.fromEntries(Object.entries(good).reverse()))
  t.same([again.status, again.body], [200, first.body])
  t.equal(again.headers.get('X-Idempotency-Status'), 'cached')
  t.equal(messages(postroad), 1)
  t.match(await send(postroad, 'order-1', { ...good, subject: 'Other' }), {
    status: 409,
    body: { error: { code: 'idempotency_conflict' } },
  })
  t.match(await send(postroad, 'order-2'), { status: 200 })
  t.equal((await postroad.send(postroad.key, good)).headers.get('X-Idempotency-Status'), null)
  t.equal(messages(postroad), 3)
})

// proves: Errors > conflict; decisions: Email > Idempotency scope = workspace +
// answers: POST /email/send: conflict
t.test('fifty at once become one mail', async t => {
  const postroad = await openTestAppliance(t)
  const answers = await Promise.all(Array.from({ length: 50 }, () => send(postroad, 'once')))
  t.equal(messages(postroad), 1)
  const sent = answers.filter(({ status }) => status === 200)
  t.ok(sent.length >= 1)
  t.equal(new Set(sent.map(({ body }) => String(body.data.results[0].message_id))).size, 1)
  for (const { status, body } of answers)
    if (status !== 200) t.match({ status, body }, { status: 409, body: { error: { code: 'conflict' } } })
})

// proves: Errors > conflict; decisions: Email > Idempotency scope = workspace +
// answers: POST /email/send: conflict
t.test('a repeat that comes while the first is in flight is a conflict', async t => {
  const postroad = await openTestAppliance(t)
  const unlock = lockDatabase(postroad)
  // Whichever comes first waits for the disk, and the other finds it waiting.
  const both = [send(postroad, 'twice'), send(postroad, 'twice')]
  const early = await Promise.race(both)
  t.match(early, { status: 409, body: { error: { code: 'conflict' } } })
  unlock()
  const first = (await Promise.all(both)).find(({ status }) => status !== 409)
  t.equal(first?.status, 200)
  t.equal(first?.headers.get('X-Idempotency-Status'), 'new')
  t.equal(messages(postroad), 1)
})

// proves: decisions: Email > Idempotency scope = workspace +
t.test('a refused request is not remembered: once corrected, it can be sent with the same key', async t => {
  const postroad = await openTestAppliance(t)
  const broken = await send(postroad, 'k', { ...good, text: '' })
  t.match(broken, { status: 400, body: { error: { code: 'no_content' } } })
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=1')
  t.match(await send(postroad, 'k', { ...good, to: ['a@one.test', 'b@one.test'] }), { status: 403 })
  const answer = await send(postroad, 'k')
  t.equal(answer.headers.get('X-Idempotency-Status'), 'new')
  t.match(answer, { status: 200 })
  t.match(await send(postroad, 'k'), { status: 200 }, 'a repeat is no further mail for the limit')
})

// proves: Email > Keys expire after 1 hour
// at and past limit: Limits > Idempotency key lifetime
t.test('a key and its stored response expire after an hour', async t => {
  const postroad = await openTestAppliance(t)
  await send(postroad, 'a')
  await send(postroad, 'b')
  await postroad.clock.advance(HOUR - 1)
  t.equal((await send(postroad, 'a')).headers.get('X-Idempotency-Status'), 'cached')
  await postroad.clock.advance(1)
  const late = await send(postroad, 'a', { ...good, subject: 'Other' })
  t.match(late, { status: 200 })
  t.equal(late.headers.get('X-Idempotency-Status'), 'new')
  t.match(postroad.rowCounts(), { messages: 3, kept_answers: 1 })
})

// proves: decisions: Email > Idempotency scope = workspace +
t.test('a key is known by workspace and kind of key, not by API key', async t => {
  const postroad = await openTestAppliance(t)
  await send(postroad, 'same')
  const colleague = await postroad.makeKey()
  t.equal((await send(postroad, 'same', good, colleague)).headers.get('X-Idempotency-Status'), 'cached')
  const sandbox = await postroad.makeKey('--sandbox')
  t.equal((await send(postroad, 'same', good, sandbox)).headers.get('X-Idempotency-Status'), 'new')
  t.equal((await send(postroad, 'same', good, sandbox)).headers.get('X-Idempotency-Status'), 'cached')
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await postroad.makeKey('--workspace', id)
  t.equal((await send(postroad, 'same', good, stranger)).headers.get('X-Idempotency-Status'), 'new')
  t.equal(messages(postroad), 3)
})

// proves: decisions: Email > Idempotency scope = workspace +
t.test('a repeat needs a valid key and its permission like any request', async t => {
  const postroad = await openTestAppliance(t)
  await send(postroad, 'k')
  const reader = await postroad.makeKey('--permissions', 'email:read')
  t.match(await send(postroad, 'k', good, reader), { status: 403 })
  t.match(await send(postroad, 'k', good, 'ts_live_none'), { status: 401 })
})

// proves: Email > Applies to POST /email/send POST | A first request is executed | A repeat with the same
// proves: decisions: Email > Idempotency scope = workspace +
t.test('scheduled sends and batches are repeated in the same way', async t => {
  const postroad = await openTestAppliance(t)
  const scheduled = { ...good, send_at: '2026-01-05T11:00:00Z' }
  const first = await send(postroad, 's', scheduled)
  const again = await send(postroad, 's', scheduled)
  t.same([first.status, again.status, again.body], [202, 202, first.body])
  const batch = () =>
    postroad.post(
      '/api/v1/email/batch',
      { messages: [good, good] },
      { key: postroad.key, headers: { 'Idempotency-Key': 's' } },
    )
  const one = await batch()
  t.equal(one.headers.get('X-Idempotency-Status'), 'new', 'its path is another one')
  const two = await batch()
  t.same([one.status, two.status, two.body], [202, 202, one.body])
  t.equal(messages(postroad), 3)
})

t.test('an answer is kept for an hour, however the clock is set meanwhile', async t => {
  const postroad = await openTestAppliance(t)
  const HOURS = 3_600_000
  t.equal((await send(postroad, 'same')).headers.get('X-Idempotency-Status'), 'new')
  for (const step of [2 * HOURS, -4 * HOURS, 2 * HOURS]) {
    postroad.clock.jump(step)
    t.equal((await send(postroad, 'same')).headers.get('X-Idempotency-Status'), 'cached')
    // Storing a response deletes expired ones.
    await send(postroad, `other ${step} ${postroad.clock.now()}`)
  }
  postroad.clock.skip(HOURS)
  t.equal((await send(postroad, 'same')).headers.get('X-Idempotency-Status'), 'new')
})
