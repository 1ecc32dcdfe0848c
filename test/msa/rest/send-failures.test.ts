/** What a client hears when the appliance itself fails, and what a repeat with the same Idempotency-Key then does. */
import t, { type Test } from 'tap'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'
import { allowInserts, refuseInserts } from '../../support/db/sabotage.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const later = { ...good, send_at: '2026-01-05T11:00:00Z' }
const UNEXPECTED = { code: 'internal_error', message: 'unexpected error; it was logged and is safe to retry' }

function ask(postroad: TestAppliance, path: string, body: unknown) {
  const headers = { 'Idempotency-Key': 'order-1' }
  return postroad.post(`/api/v1/email/${path}`, body, { key: postroad.key, headers })
}

for (const [name, path, body, error, success] of [
  ['a send', 'send', good, UNEXPECTED, 200],
  ['a batch', 'batch', { messages: [good, good] }, UNEXPECTED, 202],
  ['a scheduled send', 'send', later, { code: 'schedule_failed', message: /could not be scheduled/ }, 202],
] as const)
  // proves: Email > 5; Errors > 500 | schedule_failed | internal_error
  // proves: decisions: Email > Idempotency scope = workspace +
  // answers: POST /email/send: internal_error, schedule_failed
  t.test(`${name} that cannot be stored is a 500, leaves nothing, and can be repeated`, async t => {
    const postroad = await openTestAppliance(t)
    await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=2')
    const before = postroad.rowCounts()
    refuseInserts(postroad, 'messages')
    for (let count = 0; count < 3; count += 1) {
      const failed = await ask(postroad, path, body)
      t.match(failed, { status: 500, body: { error } })
      t.notMatch(JSON.stringify(failed.body), 'disk', 'nothing of the inside')
      t.match(failed.headers.get('X-RateLimit-Limit'), /^\d+$/)
    }
    t.same(postroad.rowCounts(), before, 'neither mail nor quota')
    allowInserts(postroad, 'messages')
    const repeated = await ask(postroad, path, body)
    t.equal(repeated.status, success)
    t.equal(repeated.headers.get('X-Idempotency-Status'), 'new')
    t.equal((await ask(postroad, path, body)).headers.get('X-Idempotency-Status'), 'cached')
    t.equal(postroad.rowCounts()['messages'], name === 'a batch' ? 2 : 1)
  })

t.test("mail that could not be stored uses nothing of the key's email rate", async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--email-rate-limit', '2')
  const send = (to: string) => postroad.post('/api/v1/email/send', { ...good, to }, { key })
  refuseInserts(postroad, 'messages')
  for (let n = 0; n < 5; n += 1) t.equal((await send('ann@one.test')).status, 500)
  allowInserts(postroad, 'messages')
  t.equal((await send('ann@one.test')).status, 200)
  t.equal((await send('bob@one.test')).status, 200)
  t.equal((await send('cid@one.test')).status, 429)
})

const batchOf = (count: number) => ({
  messages: Array.from({ length: count }, (_, index) => ({ ...good, to: `user${index}@one.test` })),
})

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const batch = (key: string, body: object = batchOf(3)) =>
    postroad.post('/api/v1/email/batch', body, { key: postroad.key, headers: { 'Idempotency-Key': key } })
  return { ...postroad, batch }
}

// proves: Errors > conflict; decisions: Email > Idempotency scope = workspace +
// answers: POST /email/batch: conflict
t.test('fifty equal batches at once become one', async t => {
  const { batch, ...postroad } = await open(t)
  const answers = await Promise.all(Array.from({ length: 50 }, () => batch('once')))
  t.equal(postroad.rowCounts()['messages'], 3)
  const accepted = answers.filter(({ status }) => status === 202)
  t.ok(accepted.length >= 1)
  t.equal(new Set(accepted.map(({ body }) => String(body.data.batch_id))).size, 1)
  t.equal(accepted.filter(({ headers }) => headers.get('X-Idempotency-Status') === 'new').length, 1)
  for (const { status, body } of answers)
    if (status !== 202) t.match({ status, body }, { status: 409, body: { error: { code: 'conflict' } } })
})

// proves: Email > The same key with a | Keys expire after 1 hour; Errors > idempotency_conflict
// answers: POST /email/batch: idempotency_conflict
// at and past limit: Limits > Idempotency key lifetime
t.test('the key of a batch counts for its body, and for an hour', async t => {
  const { batch, clock, ...postroad } = await open(t)
  const first = await batch('b')
  t.match(await batch('b', batchOf(4)), {
    status: 409,
    body: { error: { code: 'idempotency_conflict', path: 'Idempotency-Key' } },
  })
  await clock.advance(3_600_000 - 1)
  const again = await batch('b')
  t.same([again.status, again.body, again.headers.get('X-Idempotency-Status')], [202, first.body, 'cached'])
  t.equal(postroad.rowCounts()['messages'], 3)
  await clock.advance(1)
  t.equal((await batch('b', batchOf(4))).headers.get('X-Idempotency-Status'), 'new')
  t.equal(postroad.rowCounts()['messages'], 7)
})

// proves: Email > The header is Idempotency-Key with
// at and past limit: Postroad > length of an Idempotency-Key
t.test('an Idempotency-Key has 1 to 255 printable characters', async t => {
  const { key, ...postroad } = await open(t)
  for (const path of ['send', 'batch']) {
    const body = path === 'send' ? good : batchOf(1)
    const ask = (idempotencyKey: string) =>
      postroad.post(`/api/v1/email/${path}`, body, { key, headers: { 'Idempotency-Key': idempotencyKey } })
    for (const wrong of ['', 'x'.repeat(256), 'ü', 'a\tb'])
      t.match(await ask(wrong), {
        status: 400,
        body: { error: { code: 'validation_error', path: 'Idempotency-Key' } },
      })
    t.match(await ask('x'.repeat(255)), { status: path === 'send' ? 200 : 202 })
    t.match(await ask('x'), { status: path === 'send' ? 200 : 202 })
  }
})
