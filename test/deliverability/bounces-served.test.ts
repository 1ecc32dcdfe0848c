/** Bounces over HTTP on the running server: from a rejection to status, record and suppression. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const good = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const BOUNCES = '/api/v1/bounces'
const MINUTE = 60_000

/** An appliance all of whose mail goes to a server that refuses some recipients. */
async function open(t: Test) {
  const sink = await openSink(t, {
    refusals: {
      gone: [550, '5.1.1 No such user here'],
      full: [552, '5.2.2 Mailbox full'],
      broken: [554, '5.3.0 Mail system error'],
      disliked: [550, '5.7.1 Message rejected due to the reputation of your IP address'],
    },
  })
  const postroad = await openTestAppliance(t, {
    env: { POSTROAD_MTA_CAPTURE: 'false', POSTROAD_MTA_RETRY_EXPIRE: '10m', ...routeTo(sink.port) },
  })
  const { key } = postroad
  const read = (query = '', asker = key) => postroad.get(`${BOUNCES}${query}`, { key: asker })
  return {
    ...postroad,
    sink,
    read,
    /** Sends, lets time pass where it is put off, and resolves when the bounce is recorded. @returns the message */
    bounce: async (to: string) => {
      const { body } = await postroad.send(key, { ...good, to })
      const id = String(body.data.results[0].message_id)
      await until(`${to} to be given up`, async () => {
        const { status, last_reply } = (await postroad.get(`/api/v1/email/${id}/status`, { key })).body.data
        if (status === 'sent' && last_reply !== null) await postroad.clock.advance(MINUTE)
        return status === 'bounced'
      })
      await until(
        'the bounce to be recorded',
        async () => (await read(`?message_id=${id}`)).body.pagination.total === 1,
      )
      return (await postroad.get(`/api/v1/email/${id}`, { key })).body.data
    },
    emails: async (query = '') => (await read(query)).body.data.map(({ email }: { email: string }) => email),
  }
}

// proves: Message status record > status | bounce_type; Other resources > Bounce filterable by type (permanent
// proves: States and transitions > Message statuses sent delivered bounced
// proves: Deliverability, domains, analytics, tracking > GET /bounces/:id
// proves: decisions: Email > Message status machine scheduled ->
t.test("a rejection bounces the message and records the server's reply", async t => {
  const { bounce, read, key, ...postroad } = await open(t)
  const message = await bounce('gone@Gmail.com')
  t.match(message, {
    status: 'bounced',
    bounce_type: 'permanent',
    bounced_at: '2026-01-05T10:00:00.000Z',
    delivered_at: null,
    opened_at: null,
    clicked_at: null,
    next_attempt_at: null,
    attempts: 1,
  })
  const { status, body } = await read()
  t.match(
    { status, body },
    {
      status: 200,
      body: {
        data: [
          {
            message_id: message.message_id,
            email: 'gone@gmail.com',
            type: 'permanent',
            subtype: 'no_such_mailbox',
            cause: 'recipient',
            scope: 'address',
            smtp_status: '5.1.1',
            diagnostic_code: /550 5\.1\.1 No such user here/,
            isp_name: 'Gmail',
            contact_id: null,
            campaign_id: null,
            is_sandbox: false,
            created_at: '2026-01-05T10:00:00.000Z',
          },
        ],
        pagination: { total: 1, limit: 100, offset: 0, has_more: false },
      },
    },
  )
  const one = await postroad.get(`${BOUNCES}/${body.data[0].id}`, { key })
  t.same([one.status, one.body], [200, { data: body.data[0] }])
})

// proves: decisions: Deliverability > A recipient is suppressed only
t.test('a recipient is suppressed only for causes of the recipient', async t => {
  const { bounce, key, ...postroad } = await open(t)
  for (const name of ['gone', 'full', 'broken', 'disliked']) await bounce(`${name}@one.test`)
  const { data } = (await postroad.get('/api/v1/suppressions', { key })).body
  t.match(data, [{ email: 'gone@one.test', reason: 'hard_bounce', scope: 'all', source_message_id: String }])
  t.equal(data.length, 1)
  t.match(await postroad.send(key, { ...good, to: 'gone@one.test' }), {
    body: { data: { skipped: 1, results: [{ reason: 'suppressed' }] } },
  })
})

// proves: Other resources > Bounce filterable by type (permanent
// proves: Deliverability, domains, analytics, tracking > GET /bounces
t.test('bounces are filtered by type, address and time, and paged, newest first', async t => {
  const { bounce, read, emails, clock, ...postroad } = await open(t)
  const types = new Map<string, string>()
  for (const name of ['gone', 'full', 'broken']) {
    const { to, bounce_type: type } = await bounce(`${name}@one.test`)
    types.set(String(type), String(to))
    await clock.advance(MINUTE)
  }
  t.same([...types.keys()].sort(), ['permanent', 'transient', 'undetermined'])
  for (const [type, email] of types) t.same(await emails(`?type=${type}`), [email], type)
  t.same(await emails(), ['broken@one.test', 'full@one.test', 'gone@one.test'])
  t.same(await emails('?email=FULL@one.test'), ['full@one.test'])
  t.same(await emails('?email=other@one.test'), [])
  const [last, second] = (await read()).body.data.map(({ created_at: at }: { created_at: string }) => at)
  t.same(await emails(`?since=${second}`), ['broken@one.test', 'full@one.test'], 'that moment included')
  t.same(await emails(`?until=${second}`), ['gone@one.test'], 'that moment not included')
  t.same(await emails(`?since=${second}&until=${last}`), ['full@one.test'])
  t.match((await read('?limit=1&offset=1')).body, {
    data: [{ email: 'full@one.test' }],
    pagination: { total: 3, limit: 1, offset: 1, has_more: true },
  })
  for (const [query, path] of [
    ['?type=hard', 'type'],
    ['?since=yesterday', 'since'],
    ['?until=2026-13-45', 'until'],
    ['?email=', 'email'],
  ] as const)
    t.match(await read(query), { status: 400, body: { error: { code: 'validation_error', path } } }, query)

  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await postroad.makeKey('--workspace', id)
  const [newest] = (await read()).body.data
  t.same((await read('', stranger)).body.data, [])
  t.match(await postroad.get(`${BOUNCES}/${newest.id}`, { key: stranger }), {
    status: 404,
    body: { error: { code: 'not_found' } },
  })
})

// proves: Message status record > status | bounce_type
// proves: States and transitions > Message statuses sent delivered bounced
// proves: decisions: Email > Message status machine scheduled ->
t.test('a deferred message reads as sent, with its next attempt, until it is delivered', async t => {
  const { sink, key, clock, ...postroad } = await open(t)
  sink.atRcpt = 'defer'
  const { body } = await postroad.send(key, { ...good, to: 'ann@one.test' })
  const id = String(body.data.results[0].message_id)
  const status = async () => (await postroad.get(`/api/v1/email/${id}/status`, { key })).body.data
  const deferred = await until('the first attempt', async () => {
    const found = await status()
    return found.last_reply !== null && found
  })
  t.match(deferred, { status: 'sent', attempts: 1, delivered_at: null, bounced_at: null, last_reply: /452/ })
  t.ok(Date.parse(String(deferred.next_attempt_at)) > clock.now())
  sink.atRcpt = 'accept'
  await until('the message to be delivered', async () => {
    await clock.advance(MINUTE)
    return (await status()).status === 'delivered'
  })
  t.match(await status(), { status: 'delivered', attempts: 2, next_attempt_at: null })
})
