/** Webhooks on the running appliance: subscriptions, what their receivers are told, tests, rotation, the log, replays. */
import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { openTestAppliance } from '../support/program/appliance.js'
import { refuseInserts } from '../support/db/sabotage.js'
import { longAfter, until, untilLater } from '../support/until.js'
import { openWebhooks, PATH } from './open-webhooks.js'
import type { Received } from './receiver.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const open = (t: Test, networks?: string, toml?: string) =>
  openWebhooks(t, options => openTestAppliance(t, options), networks, toml)

/** The recipe of docs/webhooks.md. */
function isSigned({ headers, body }: Received, secret: string): boolean {
  const field = String(headers['x-service-signature'])
  const timestamp = /^t=(\d+)/.exec(field)?.[1] ?? ''
  const expected = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
  return [...field.matchAll(/v1=([0-9a-f]{64})/g)].some(([, v1]) => v1 === expected)
}

/** As somebody else wrote it; it judges the timestamp by this machine's clock, and the appliance here has another. */
function isStandard({ headers, body }: Received, secret: string): boolean {
  const now = Date.now
  Date.now = () => Number(headers['webhook-timestamp']) * 1_000
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  } finally {
    Date.now = now
  }
}

t.test('what address a name has inside is said in the log alone', async t => {
  const postroad = await openTestAppliance(t, { zone: { 'intranet.example': { A: ['10.1.2.3'] } } })
  const key = await postroad.makeKey()
  const post = (path: string, body: object) => postroad.post(`/api/v1${path}`, body, { key })
  const targetUrl = 'http://intranet.example/hook'
  const made = await post('/webhooks/triggers', { event: 'contact.created', targetUrl })
  t.equal(made.status, 201)
  await post('/contacts', { email: 'ann@x.example' })
  const log = `/api/v1/webhooks/${String(made.body.data.id)}/deliveries`
  const { body } = await until('the attempt', async () => {
    const answer = await postroad.get(log, { key })
    return answer.body.data[0]?.attempts.length > 0 && answer
  })
  t.match(JSON.stringify(body), /the address is not allowed: it is not public/)
  t.notMatch(JSON.stringify(body), /10\.1\.2\.3|private/)
  const feed = { name: 'x', url: targetUrl, subject: 's', template_id: PATH, schedule: 'daily' }
  t.notMatch(JSON.stringify((await post('/feeds', feed)).body), /10\.1\.2\.3|private/)
  t.match(
    postroad.log.lines.find(({ event }) => event === 'outgoing call refused'),
    { fields: { host: 'intranet.example', reason: 'the address 10.1.2.3 is not public (private)' } },
  )
})

// proves: What the service does > Webhook subscriptions for real-time event
// proves: Webhooks > GET /webhooks/triggers | POST /webhooks/triggers | DELETE /webhooks/triggers?id=:webhookId
// proves: Authentication > 6
// proves: Events > Body JSON object with event | Headers | X-Service-Signature | X-Service-Event
// proves: Events > X-Service-Delivery-Id | X-Service-Webhook-Id | The signature is HMAC-SHA256 with
// proves: decisions: Webhooks > Creation returns secret once (whsec_
t.test('a webhook is made, listed, told of its event alone, and deleted', async t => {
  const { subscribe, addContact, list, receiver, ...postroad } = await open(t)
  const made = await subscribe('contact.created')
  t.match(made.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.match(made, { event: 'contact.created', targetUrl: `${receiver.url}/hook`, createdAt: /Z$/ })
  const listed = await list()
  t.match(listed, [{ id: made.id, event: 'contact.created', status: 'active', is_sandbox: false }])
  t.notMatch(JSON.stringify(listed), /whsec_/, 'the secret is shown once')
  const { body } = await addContact('ann@x.example')
  const [told] = await receiver.has(1)
  t.same(Object.keys(told!.json), ['event', 'timestamp', 'data'])
  t.match(told!.json, {
    event: 'contact.created',
    timestamp: /^\d{4}-.*Z$/,
    data: { email: 'ann@x.example' },
  })
  t.equal(told!.json.data.id, body.data.id)
  t.match(told!.headers, {
    'content-type': 'application/json',
    'x-service-event': 'contact.created',
    'x-service-webhook-id': made.id,
    'x-service-delivery-id': /^[0-9a-f-]{36}$/,
    'user-agent': /^Postroad\//,
  })
  t.equal(told!.headers['webhook-id'], told!.headers['x-service-delivery-id'])
  const { key } = postroad
  t.match(await postroad.delete(`${PATH}/triggers?id=${made.id}`, { key }), {
    status: 200,
    body: { data: { success: true } },
  })
  await addContact('bob@x.example')
  t.same(await list('?status=all'), [])
  t.match(await postroad.get(`${PATH}/${made.id}/deliveries`, { key }), { status: 404 })
  await longAfter(postroad.clock, 10 * MINUTE_MS)
  await until('the log to go', () => postroad.rowCounts()['webhook_subscriptions'] === 0)
  t.match(postroad.rowCounts(), { webhook_deliveries: 0, webhook_attempts: 0 })
  t.equal(receiver.received.length, 1)
})

// proves: Webhooks > POST /webhooks/triggers; decisions: Webhooks > Targets (subscriptions tests and automation
t.test('what cannot be a webhook is refused by name', async t => {
  const { key, list, ...postroad } = await open(t, '')
  const target = 'https://hooks.example.com/x'
  for (const [body, path] of [
    [{ event: 'email.sent' }, 'targetUrl'],
    [{ targetUrl: target }, 'event'],
    [{ targetUrl: target, event: 'email.read' }, 'event'],
    [{ targetUrl: target, event: '__proto__' }, 'event'],
    [{ targetUrl: target, event: ['email.sent'] }, 'event'],
    [{ targetUrl: 'hooks.example.com', event: 'email.sent' }, 'targetUrl'],
    [{ targetUrl: 'ftp://hooks.example.com', event: 'email.sent' }, 'targetUrl'],
    [{ targetUrl: 'https://me:pw@hooks.example.com', event: 'email.sent' }, 'targetUrl'],
    [{ targetUrl: 'https://hooks.example.com:25', event: 'email.sent' }, 'targetUrl'],
    [{ targetUrl: `${target}${'x'.repeat(2_048)}`, event: 'email.sent' }, 'targetUrl'],
    ...[
      '127.0.0.1',
      '0x7f.1',
      '2130706433',
      '[::1]',
      '[::ffff:10.0.0.1]',
      '169.254.169.254',
      'localhost',
      '10.1',
    ].map(host => [{ targetUrl: `http://${host}/`, event: 'email.sent' }, 'targetUrl'] as const),
    [{ targetUrl: target, event: 'email.sent', secret: 'x' }, 'secret'],
  ] as const)
    t.match(
      await postroad.post(`${PATH}/triggers`, body, { key }),
      { status: 400, body: { error: { code: 'validation_error', path } } },
      JSON.stringify(body).slice(0, 100),
    )
  t.same(await list(), [])
  t.match(await postroad.delete(`${PATH}/triggers`, { key }), {
    status: 400,
    body: { error: { path: 'id' } },
  })
})

// proves: What the service does > Webhook subscriptions for real-time event
// proves: Webhooks > DELETE /webhooks/triggers?id=:webhookId
// answers: DELETE /webhooks/triggers: not_found; GET /webhooks/{id}: not_found; PATCH /webhooks/{id}: not_found
t.test('what no webhook has as its id is not found', async t => {
  const { key, ...postroad } = await open(t)
  const missing = { status: 404, body: { error: { code: 'not_found' } } }
  for (const id of ['nobody', '0192f000-0000-7000-8000-00000000000b']) {
    t.match(await postroad.delete(`${PATH}/triggers?id=${id}`, { key }), missing)
    t.match(await postroad.get(`${PATH}/${id}`, { key }), missing)
    t.match(await postroad.patch(`${PATH}/${id}`, { status: 'active' }, { key }), missing)
  }
})

// proves: Webhooks > GET /webhooks/triggers
t.test('a webhook can be read and changed, and its secret is never shown again', async t => {
  const { subscribe, addContact, receiver, ...postroad } = await open(t)
  const { key } = postroad
  const { id, secret } = await subscribe('contact.created')
  const path = `${PATH}/${id}`
  const shown = await postroad.get(path, { key })
  t.match(shown, { status: 200, body: { data: { id, event: 'contact.created', status: 'active' } } })
  const moved = await postroad.patch(path, { targetUrl: `${receiver.url}/moved` }, { key })
  t.match(moved, { status: 200, body: { data: { id, targetUrl: `${receiver.url}/moved` } } })
  await addContact('ann@x.example')
  const [told] = await receiver.has(1)
  t.equal(told?.path, '/moved')
  t.ok(isSigned(told!, secret), 'with the same secret')

  const disabled = await postroad.patch(path, { status: 'disabled' }, { key })
  t.match(disabled.body.data, { status: 'disabled', disabledReason: 'manual', disabledAt: /Z$/ })
  t.match((await postroad.get('/health')).body.data, { disabled_webhooks: 0 })
  await addContact('bob@x.example')
  const active = await postroad.patch(path, { status: 'active', event: 'contact.updated' }, { key })
  t.match(active.body.data, { status: 'active', disabledReason: null, event: 'contact.updated' })
  const { body } = await addContact('eve@x.example')
  await postroad.patch(`/api/v1/contacts/${body.data.id}`, { first_name: 'Eve' }, { key })
  const [, next] = await receiver.has(2)
  t.match(next?.json, { event: 'contact.updated', data: { email: 'eve@x.example' } })

  for (const answer of [shown, moved, disabled, active]) t.notMatch(JSON.stringify(answer.body), /whsec_/)
  const { body: log } = await postroad.get('/api/v1/activity', { key })
  const actions = log.data.map(({ action }: { action: string }) => action)
  for (const action of ['webhook.updated', 'webhook.disabled', 'webhook.enabled'])
    t.ok(actions.includes(action), action)
})

// proves: Webhooks > GET /webhooks/triggers
t.test('a webhook cannot be changed to what could not be created', async t => {
  const { subscribe, ...postroad } = await open(t)
  const { key } = postroad
  const { id } = await subscribe('contact.created')
  for (const [body, path] of [
    [{ targetUrl: 'ftp://hooks.example.com' }, 'targetUrl'],
    [{ targetUrl: 'http://10.1.1.1/' }, 'targetUrl'],
    [{ event: 'email.read' }, 'event'],
    [{ status: 'paused' }, 'status'],
    [{ secret: 'x' }, 'secret'],
  ] as const)
    t.match(await postroad.patch(`${PATH}/${id}`, body, { key }), {
      status: 400,
      body: { error: { code: 'validation_error', path } },
    })
  t.match((await postroad.get(`${PATH}/${id}`, { key })).body.data, { event: 'contact.created' })
})

// proves: Webhooks > POST /webhooks/triggers
// answers: POST /webhooks/triggers: limit_reached
t.test('a workspace can have 200 webhooks', async t => {
  const { key, ...postroad } = await open(t)
  const ask = () =>
    postroad.post(`${PATH}/triggers`, { targetUrl: 'https://hooks.example/', event: 'email.sent' }, { key })
  for (let count = 0; count < 200; count += 1) t.equal((await ask()).status, 201)
  t.match(await ask(), { status: 403, body: { error: { code: 'limit_reached' } } })
})

// proves: Authentication > 6; Events > X-Service-Signature | The signature is HMAC-SHA256 with
// proves: decisions: Webhooks > Creation returns secret once (whsec_
// operations: POST /webhooks/{id}/rotate-secret
t.test('both signatures hold, the old secret for a day after a rotation as well', async t => {
  const { subscribe, addContact, receiver, clock, key, ...postroad } = await open(t)
  const { id, secret } = await subscribe('contact.created')
  const told = async (email: string) => {
    await addContact(email)
    return (await receiver.has(receiver.received.length + 1)).at(-1)!
  }
  const first = await told('ann@x.example')
  t.ok(isSigned(first, secret) && isStandard(first, secret))
  t.notOk(isSigned({ ...first, body: `${first.body} ` }, secret), 'not another body')
  t.notOk(isStandard({ ...first, body: `${first.body} ` }, secret))
  t.equal(Number(/^t=(\d+)/.exec(String(first.headers['x-service-signature']))![1]), clock.now() / 1_000)
  const { status, body } = await postroad.post(`${PATH}/${id}/rotate-secret`, {}, { key })
  t.match([status, body.data], [200, { id, secret: /^whsec_/, previousSecretExpiresAt: /Z$/ }])
  const fresh = String(body.data.secret)
  t.not(fresh, secret)
  const second = await told('bob@x.example')
  for (const one of [fresh, secret]) t.ok(isSigned(second, one) && isStandard(second, one))
  t.match(second.headers['x-service-signature'], /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/)
  clock.skip(24 * HOUR_MS)
  const third = await told('cas@x.example')
  t.ok(isSigned(third, fresh) && isStandard(third, fresh))
  t.notOk(isSigned(third, secret) || isStandard(third, secret))
  t.match(third.headers['x-service-signature'], /^t=\d+,v1=[0-9a-f]{64}$/)
})

// proves: Webhooks > POST /webhooks/:id/test; Events > Test deliveries are sent with
// proves: decisions: Webhooks > Attempts at 0 5 s
t.test("a test returns the receiver's response at once, or that it cannot be reached", async t => {
  const { subscribe, receiver, key, ...postroad } = await open(t)
  const { id, secret } = await subscribe('email.clicked')
  const test = async () => (await postroad.post(`${PATH}/${id}/test`, {}, { key })).body.data
  t.match(await test(), { success: true, status_code: 200, response_time_ms: Number, response: 'ok' })
  const [told] = receiver.received
  t.match(told!.json, { event: 'email.clicked', data: { url: String, is_bot: Boolean } })
  t.match(told!.json, { data: { to: 'ann@example.com', from: 'shop@example.com' } }, 'as a real one')
  t.ok(isSigned(told!, secret))
  receiver.answers({ status: 302, headers: { Location: '/elsewhere' } })
  t.match(await test(), { success: false, status_code: 302 })
  receiver.answers({ status: 503, body: 'x'.repeat(5_000) })
  t.match(await test(), { success: false, status_code: 503, response: /^x{1024}$/ })
  t.equal(receiver.received.length, 3, 'once each')
  t.match(await postroad.post(`${PATH}/0192f000-0000-7000-8000-00000000000b/test`, {}, { key }), {
    status: 404,
  })
  const { body } = await postroad.post(
    `${PATH}/triggers`,
    { targetUrl: 'http://127.0.0.1:1234/nobody', event: 'email.sent' },
    { key },
  )
  const nobody = (await postroad.post(`${PATH}/${body.data.id}/test`, {}, { key })).body.data
  t.match(nobody, { success: false, status_code: 0, response_time_ms: Number, error: /ECONNREFUSED/ })
})

// proves: decisions: Webhooks > Attempts at 0 5 s
// answers: POST /webhooks/deliveries/{id}/replay: conflict
t.test(
  'what fails is tried again on schedule with the same id, eight times, and can then be replayed',
  async t => {
    const { subscribe, addContact, receiver, clock, pass, tried, key, ...postroad } = await open(t)
    const { id } = await subscribe('contact.created')
    receiver.answers({ status: 500, body: 'out of order' })
    await addContact('ann@x.example')
    await tried(id, 1)
    const schedule = [
      5_000,
      5 * MINUTE_MS,
      30 * MINUTE_MS,
      2 * HOUR_MS,
      5 * HOUR_MS,
      10 * HOUR_MS,
      10 * HOUR_MS,
    ]
    for (const [index, wait] of schedule.entries()) {
      const before = await tried(id, index + 1)
      t.equal(before.status, 'pending')
      t.match(await postroad.post(`${PATH}/deliveries/${before.id}/replay`, {}, { key }), {
        status: 409,
        body: { error: { code: 'conflict' } },
      })
      const { started_at: startedAt, duration_ms: tookMs } = before.attempts[index]
      const nextAt = Date.parse(before.next_attempt_at as string)
      const waits = nextAt - Date.parse(startedAt as string) - tookMs
      t.ok(waits >= 0.9 * wait && waits <= 1.1 * wait, `${wait} with jitter: ${waits}`)
      await pass(nextAt - clock.now())
      await tried(id, index + 2)
    }
    const failed = await tried(id, 8)
    t.match(failed, { status: 'failed', next_attempt_at: null, finished_at: /Z$/ })
    t.match(failed.attempts[7], { number: 8, status_code: 500, response: 'out of order', error: null })
    t.equal(new Set(receiver.received.map(({ headers }) => headers['x-service-delivery-id'])).size, 1)
    t.equal(JSON.parse(String(failed.request.body)).data.email, 'ann@x.example')
    receiver.answers({})
    t.match(await postroad.post(`${PATH}/deliveries/${failed.id}/replay`, {}, { key }), {
      status: 202,
      body: { data: { id: failed.id, status: 'pending' } },
    })
    t.match(await tried(id, 9), { status: 'succeeded', attempts: { length: 9 } })
    t.equal(receiver.received.at(-1)!.headers['x-service-delivery-id'], failed.id)
    t.match(
      await postroad.post(`${PATH}/deliveries/${failed.id}/replay`, {}, { key }),
      { status: 202 },
      'again',
    )
    await tried(id, 10)
  },
)

t.test('the log shows the User-Agent that each attempt sent, and none where it was not recorded', async t => {
  const { subscribe, addContact, receiver, pass, tried, ...postroad } = await open(t)
  const { id } = await subscribe('contact.created')
  receiver.answers({ status: 500 })
  await addContact('ann@x.example')
  const sent = await tried(id, 1)
  const userAgent = receiver.received[0]?.headers['user-agent']
  t.match(userAgent, /^Postroad\//)
  t.match(sent, { attempts: [{ user_agent: userAgent }], request: { headers: { 'User-Agent': userAgent } } })
  postroad.sql("update webhook_attempts set user_agent = 'Postroad/0.0.9'")
  t.match(await tried(id, 1), {
    attempts: [{ user_agent: 'Postroad/0.0.9' }],
    request: { headers: { 'User-Agent': 'Postroad/0.0.9' } },
  })
  postroad.sql('update webhook_attempts set user_agent = null')
  const older = await tried(id, 1)
  t.equal(older.attempts[0].user_agent, null)
  t.notOk('User-Agent' in older.request.headers)
  receiver.answers({})
  await pass(MINUTE_MS)
  t.match(await tried(id, 2), {
    attempts: [{ user_agent: null }, { user_agent: userAgent }],
    request: { headers: { 'User-Agent': userAgent } },
  })
})

// proves: decisions: Webhooks > Attempts at 0 5 s
// answers: POST /webhooks/{id}/replay: conflict
// operations: POST /webhooks/{id}/enable
t.test('all that failed since a moment is replayed, and nothing else', async t => {
  const { subscribe, addContact, receiver, clock, deliveries, key, ...postroad } = await open(t)
  const { id } = await subscribe('contact.created')
  receiver.answers({ status: 410 })
  await addContact('early@x.example')
  await until(
    'the webhook to be disabled',
    async () => (await postroad.get(`${PATH}/triggers?status=disabled`, { key })).body.data[0],
  )
  const replay = (since: string) => postroad.post(`${PATH}/${id}/replay`, { since }, { key })
  t.match(await replay('2026-01-01'), { status: 409, body: { error: { code: 'conflict' } } })
  receiver.answers({})
  t.match(await postroad.post(`${PATH}/${id}/enable`, {}, { key }), { body: { data: { status: 'active' } } })
  t.match(await replay('soon'), { status: 400, body: { error: { path: 'since' } } })
  t.match(await replay(new Date(clock.now() + 1).toISOString()), {
    status: 202,
    body: { data: { replayed: 0 } },
  })
  t.match(await replay('2026-01-01'), { status: 202, body: { data: { replayed: 1, has_more: false } } })
  await until('the replay', async () => (await deliveries(id, '?status=succeeded')).data[0])
  t.match(await replay('2026-01-01'), { body: { data: { replayed: 0 } } }, 'what succeeded is not told again')
})

// proves: decisions: Webhooks > Attempts at 0 5 s
t.test('410 disables a webhook at once, with a notice in the activity log and in /health', async t => {
  const { subscribe, addContact, receiver, list, clock, key, ...postroad } = await open(t)
  const { id } = await subscribe('contact.created')
  t.match((await postroad.get('/health')).body.data, { status: 'ok', disabled_webhooks: 0 })
  receiver.answers({ status: 410 })
  await addContact('ann@x.example')
  await until('the webhook to be disabled', async () => (await list('?status=disabled'))[0])
  t.same(await list(), [])
  const activity = await postroad.get('/api/v1/activity?action=webhook.disabled', { key })
  t.match(activity.body.data, [
    { actor: { type: 'system' }, subject: `${receiver.url}/hook`, details: { id, reason: 'gone' } },
  ])
  await clock.advance(10_000)
  t.match((await postroad.get('/health')).body.data, { status: 'ok', disabled_webhooks: 1 })
  await addContact('bob@x.example')
  t.equal(receiver.received.length, 1)
})

// proves: decisions: Webhooks > Attempts at 0 5 s
t.test(
  'five days of nothing but failures disable a webhook, and one success among them does not',
  async t => {
    const { subscribe, addContact, receiver, list, pass, clock } = await open(t)
    const failing = await subscribe('contact.created', '/failing')
    await subscribe('contact.created', '/recovering')
    receiver.answers({ status: 500 })
    for (let day = 0; day < 6; day += 1) {
      receiver.answers({ status: day === 3 ? 200 : 500 }, '/recovering')
      await addContact(`day${day}@x.example`)
      for (let hour = 0; hour < 24; hour += 2) await pass(2 * HOUR_MS, day < 5 ? 2 * (day + 1) : 0)
    }
    const [disabled] = await untilLater(clock, 'the webhook to be disabled', async () => {
      const found = await list('?status=disabled')
      return found.length > 0 && found
    })
    t.match(disabled, { id: failing.id, disabledReason: 'failing' })
    t.match(await list(), [{ targetUrl: `${receiver.url}/recovering` }])
  },
)

// proves: decisions: Webhooks > Attempts at 0 5 s
t.test('Retry-After is honoured', async t => {
  const { subscribe, addContact, receiver, clock, tried } = await open(t)
  const { id } = await subscribe('contact.created')
  await subscribe('contact.created', '/other')
  const calls = (path: string) => receiver.received.filter(one => one.path === path).length
  receiver.answers({ status: 429, headers: { 'Retry-After': '600' } }, '/hook')
  await addContact('ann@x.example')
  const { next_attempt_at: next } = await tried(id, 1)
  t.ok(Date.parse(String(next)) >= clock.now() + 600_000)
  await addContact('bob@x.example')
  clock.skip(590_000)
  await addContact('cid@x.example')
  await until('all to be delivered elsewhere', () => calls('/other') === 3)
  t.equal(calls('/hook'), 1, 'others of the receiver wait as well')
  receiver.answers({}, '/hook')
  clock.skip(10_000)
  await untilLater(clock, 'all three to be delivered', () => calls('/hook') === 4)
})

t.test('sandbox webhooks receive only sandbox events, live ones only live events', async t => {
  const { subscribe, addContact, receiver, list, ...postroad } = await open(t)
  const sandbox = await postroad.makeKey('--sandbox')
  await subscribe('contact.created', '/live')
  const { id } = await subscribe('contact.created', '/sandbox', sandbox)
  t.match(await list('', sandbox), [{ id, is_sandbox: true }])
  t.equal((await list()).length, 1)
  await addContact('live@x.example')
  await addContact('sandbox@x.example', sandbox)
  await receiver.has(2)
  t.strictSame(
    receiver.received.map(({ path, json }) => `${path} ${json.data.email} ${json.data.is_sandbox}`).sort(),
    ['/live live@x.example false', '/sandbox sandbox@x.example true'],
  )
})

// proves: Webhooks > POST /webhooks/triggers; decisions: Webhooks > Targets (subscriptions tests and automation
t.test('private addresses that the operator does not list are not called', async t => {
  const { subscribe, addContact, receiver, tried, key, ...postroad } = await open(t, '127.0.0.0/8')
  const { id } = await subscribe('contact.created')
  const { body } = await postroad.post(
    `${PATH}/triggers`,
    { targetUrl: 'http://10.0.0.1/', event: 'contact.created' },
    { key },
  )
  t.match(body, { error: { path: 'targetUrl' } })
  await addContact('ann@x.example')
  t.match(await tried(id, 1), { status: 'succeeded' })
  t.equal(receiver.received.length, 1)
})

// proves: Webhooks > POST /webhooks/triggers; decisions: Webhooks > Targets (subscriptions tests and automation
t.test('where the list is for permitted workspaces, only their settings open it', async t => {
  const toml = '[webhooks]\nallow_networks_for = "permitted"'
  const { subscribe, addContact, receiver, key, workspaceId, ...postroad } = await open(
    t,
    '127.0.0.0/8',
    toml,
  )
  const body = { targetUrl: `${receiver.url}/hook`, event: 'contact.created' }
  t.match(await postroad.post(`${PATH}/triggers`, body, { key }), { status: 400 })
  await postroad.json('workspace', 'set', workspaceId, 'allow_private_webhooks=true')
  await subscribe('contact.created')
  await addContact('ann@x.example')
  await receiver.has(1)
})

t.test('hanging and failing receivers do not delay the others', async t => {
  const { subscribe, addContact, receiver } = await open(t)
  for (let index = 0; index < 5; index += 1) {
    receiver.answers({ hangs: true }, `/hangs${index}`)
    receiver.answers({ status: 500 }, `/fails${index}`)
    await subscribe('contact.created', `/hangs${index}`)
    await subscribe('contact.created', `/fails${index}`)
    await subscribe('contact.created', `/good${index}`)
  }
  for (let index = 0; index < 20; index += 1) await addContact(`ann${index}@x.example`)
  await until(
    'the good ones',
    () => receiver.received.filter(({ path }) => path.startsWith('/good')).length === 100,
  )
  t.ok(receiver.received.filter(({ path }) => path.startsWith('/hangs')).length <= 10)
})

t.test('attempts that cannot be recorded keep those of other webhooks from nothing', async t => {
  const { subscribe, addContact, receiver, ...postroad } = await open(t)
  const poisoned = await subscribe('contact.created', '/poisoned')
  const other = await subscribe('contact.created', '/other')
  refuseInserts(
    postroad,
    'webhook_attempts',
    `(select subscription_id from webhook_deliveries where id = new.delivery_id) = '${poisoned.id}'`,
  )
  await addContact('ann@x.example')
  await addContact('bob@x.example')
  await receiver.has(4)
  const allSucceeded = async (id: string) => {
    const { body } = await postroad.get(`${PATH}/${id}/deliveries`, { key: postroad.key })
    return body.data.length === 2 && body.data.every((one: { status: string }) => one.status === 'succeeded')
  }
  await until('the others to be recorded', () => allSucceeded(other.id))
  await until('the poisoned ones to end', () => allSucceeded(poisoned.id))
  await longAfter(postroad.clock, HOUR_MS)
  t.equal(receiver.received.length, 4, 'nothing is delivered twice')
  t.ok(postroad.log.lines.some(({ event }) => event === 'webhook attempt recorded incompletely'))
})
