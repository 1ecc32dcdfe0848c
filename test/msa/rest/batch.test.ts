/** `POST /email/batch`: many messages in one request. */
import t from 'tap'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const START = Date.parse('2026-01-05T10:00:00Z')

function send(postroad: TestAppliance, messages: readonly unknown[], key = postroad.key) {
  return postroad.post('/api/v1/email/batch', { messages }, { key })
}

const statusOf = async (postroad: TestAppliance, id: string, query = '') =>
  (await postroad.get(`/api/v1/email/batch/${id}${query}`, { key: postroad.key })).body.data

const many = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...good,
    to: `user${index}@one.test`,
    subject: `No. ${index}`,
  }))

// proves: What the service does > Batch email up to 1000
// proves: Batch record > batch_id | status | total, sent, failed | created_at, completed_at
// proves: Email > POST /email/batch | GET /email/batch/:batchId; Errors > 200 | 201 | 202
t.test('each message of a batch is mailed to its own recipient with its own content', async t => {
  const postroad = await openTestAppliance(t)
  const { status, body } = await send(postroad, [
    { ...good, subject: 'First', tags: ['a'] },
    { ...good, to: 'bob@two.test', subject: 'Second', html: '<p>Hi</p>', cc: 'carl@two.test' },
  ])
  t.equal(status, 202)
  t.match(body.data, { status: 'completed', total: 2, sent: 2, failed: 0, skipped: 0, errors: [] })
  const id = String(body.data.batch_id)
  const found = await statusOf(postroad, id)
  t.match(found, {
    batch_id: id,
    status: 'completed',
    created_at: '2026-01-05T10:00:00.000Z',
    completed_at: '2026-01-05T10:00:00.000Z',
    results: [
      { index: 0, to: 'ann@one.test', success: true },
      { index: 1, to: 'bob@two.test', success: true },
    ],
  })
  const [first, second] = found.results.map((result: { message_id: string }) => result.message_id) as string[]
  t.match(await postroad.messageOnce(postroad.key, first!, 'delivered'), {
    subject: 'First',
    batch_id: id,
    tags: ['a'],
  })
  t.match(await postroad.messageOnce(postroad.key, second!, 'delivered'), {
    subject: 'Second',
    cc: ['carl@two.test'],
  })
  t.equal(postroad.rowCounts()['messages'], 3, 'the copy is a message as well')
})

// proves: Email > POST /email/batch; decisions: Email > Batch schema error anywhere ->
// past limit: Limits > Messages in one batch
t.test('a fault of form in any message refuses the whole batch and names it', async t => {
  const postroad = await openTestAppliance(t)
  const before = postroad.rowCounts()
  for (const [messages, path] of [
    [[], 'messages'],
    [many(1_001), 'messages'],
    ['x', 'messages'],
    [[good, { ...good, to: undefined }], 'messages.1.to'],
    [[good, good, good, { ...good, to: 7 }], 'messages.3.to'],
    [[{ ...good, to: ['ann@one.test'] }], 'messages.0.to'],
    [[good, { ...good, subject: undefined }], 'messages.1.subject'],
    [[good, { ...good, subject: 'a\nb' }], 'messages.1.subject'],
    [[good, { ...good, send_at: '2026-01-05T11:00:00Z' }], 'messages.1.send_at'],
    [[good, { ...good, html: 'ü'.repeat(140_000) }], 'messages.1.html'],
    [[good, { ...good, reply_to: 'x' }], 'messages.1.reply_to'],
    [[good, { ...good, attachments: [{ filename: 'a', content: '!' }] }], 'messages.1.attachments.0.content'],
    [[good, { ...good, headers: { From: 'x@y.test' } }], 'messages.1.headers.From'],
  ] as const) {
    const answer = await postroad.post('/api/v1/email/batch', { messages }, { key: postroad.key })
    t.match(answer, { status: 400, body: { error: { code: 'validation_error', path } } }, path)
  }
  t.same(postroad.rowCounts(), before, 'nothing was accepted')
})

// proves: Email > POST /email/batch | track_opens | track_clicks
// at and past limit: Limits > Subject length | from_name length | HTML size; Postroad > size of text
// at limit: Limits > Messages in one batch
t.test('a message of a batch has the bounds of a single send', async t => {
  const postroad = await openTestAppliance(t)
  const kilobytes = 'x'.repeat(256 * 1_024)
  const atBound = {
    ...good,
    subject: 'x'.repeat(998),
    from_name: 'ü'.repeat(100),
    html: kilobytes,
    text: 'ü'.repeat(512 * 1_024),
    template_data: { items: [1] },
    reply_to: 'Desk <desk@sender.test>',
    track_opens: false,
    track_clicks: false,
  }
  t.match(await send(postroad, [atBound]), { status: 202, body: { data: { sent: 1, failed: 0 } } })
  const before = postroad.rowCounts()['messages']
  for (const [field, value] of Object.entries({
    subject: 'x'.repeat(999),
    from_name: 'ü'.repeat(101),
    html: `${kilobytes}x`,
    text: 'x'.repeat(1_024 * 1_024 + 1),
    template_data: [],
    track_opens: 'yes',
    track_clicks: 1,
  }))
    t.match(
      await send(postroad, [good, { ...atBound, [field]: value }]),
      { status: 400, body: { error: { code: 'validation_error', path: `messages.1.${field}` } } },
      field,
    )
  t.equal(postroad.rowCounts()['messages'], before)
})

// proves: decisions: Email > cc bcc attachments [{filename content
t.test('a copy to what is no address fails its message, and is not left out silently', async t => {
  const postroad = await openTestAppliance(t)
  const { status, body } = await send(postroad, [
    { ...good, cc: ['carl@one.test', 'nobody'] },
    { ...good, bcc: 'x' },
    { ...good, cc: [' Carl <carl@TWO.test> '] },
    { ...good, to: 'Ann <ann@ONE.test>', text: '' },
    { ...good, to: 'a@one.test, b@one.test' },
  ])
  t.equal(status, 202)
  t.match(body.data, { total: 5, sent: 1, failed: 3, skipped: 1 })
  t.match(body.data.errors, [
    { index: 0, to: 'ann@one.test', code: 'validation_error', message: /^cc\.1 has no @/ },
    { index: 1, code: 'validation_error', message: /^bcc has no @/ },
    { index: 3, to: 'ann@one.test', code: 'no_content' },
  ])
})

// proves: decisions: Email > cc bcc attachments [{filename content
// at and past limit: Postroad > copies of a batch
t.test('the copies of all messages of a batch have a bound', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=0', 'daily_limit=0')
  const copies = (count: number) => Array.from({ length: count }, (_, index) => `copy${index}@one.test`)
  const full = many(20).map(message => ({ ...message, cc: copies(50), bcc: copies(49) }))
  const before = postroad.rowCounts()
  const refused = await send(postroad, [...full, { ...good, cc: copies(21) }])
  t.match(refused, {
    status: 400,
    body: { error: { code: 'validation_error', path: 'messages.20', message: /at most 2000 addresses/ } },
  })
  t.same(postroad.rowCounts(), before)
  t.match(await send(postroad, [...full, { ...good, cc: copies(20) }]), {
    status: 202,
    body: { data: { sent: 21 } },
  })
})

// proves: States and transitions > Batch statuses processing completed failed
// proves: decisions: Email > Batch schema error anywhere ->
t.test('what the rules of sending refuse fails one message alone', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('domain', 'add', 'pending.test', '--workspace', postroad.workspaceId)
  await postroad.json('suppress', 'add', 'gone@one.test', '--workspace', postroad.workspaceId)
  const { status, body } = await send(postroad, [
    good,
    { ...good, text: '' },
    { ...good, from_email: undefined },
    { ...good, template_id: 'none' },
    { ...good, from_email: 'me@pending.test' },
    { ...good, to: 'gone@one.test' },
    { ...good, to: 'nobody' },
    { ...good, to: 'ann@one.test' },
  ])
  t.equal(status, 202)
  t.match(body.data, { total: 8, sent: 2, failed: 4, skipped: 2 })
  t.match(body.data.errors, [
    { index: 1, to: 'ann@one.test', code: 'no_content' },
    { index: 2, code: 'missing_from_email' },
    { index: 3, code: 'template_not_found' },
    { index: 4, code: 'domain_invalid' },
  ])
  const { results } = await statusOf(postroad, String(body.data.batch_id))
  t.same(
    results.map((one: { index: number; success: boolean; reason?: string }) => [
      one.index,
      one.success,
      one.reason,
    ]),
    [
      [0, true, undefined],
      [1, false, 'no_content'],
      [2, false, 'missing_from_email'],
      [3, false, 'template_not_found'],
      [4, false, 'domain_invalid'],
      [5, false, 'suppressed'],
      [6, false, 'invalid'],
      [7, true, undefined],
    ],
  )
  t.match(await postroad.get(`/api/v1/email/${results[5].message_id}/status`, { key: postroad.key }), {
    body: { data: { status: 'suppressed' } },
  })
  const none = await send(postroad, [{ ...good, text: '' }])
  t.match(none, { status: 202, body: { data: { status: 'failed', sent: 0, failed: 1 } } })
})

// proves: Batch record > created_at, completed_at; Email > GET /email/batch/:batchId
t.test('results are paged', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await send(postroad, [...many(5), { ...good, text: '' }])
  const id = String(body.data.batch_id)
  const indexes = async (query: string) =>
    (await statusOf(postroad, id, query)).results.map((one: { index: number }) => one.index)
  t.same(await indexes('?limit=2'), [0, 1])
  t.same(await indexes('?limit=2&offset=4'), [4, 5])
  t.same(await indexes('?offset=6'), [])
})

// proves: What the service does > Batch email up to 1000; Batch record > batch_id | status | total, sent, failed
// proves: Email > POST /email/batch
// at limit: Limits > Messages in one batch
t.test('a batch of a thousand is accepted and mailed', async t => {
  const postroad = await openTestAppliance(t)
  const { status, body } = await send(postroad, many(1_000))
  t.match({ status, body }, { status: 202, body: { data: { total: 1_000, sent: 1_000 } } })
  t.equal(postroad.rowCounts()['messages'], 1_000)
  const { results } = await statusOf(postroad, String(body.data.batch_id), '?limit=1&offset=999')
  t.match(results, [{ index: 999, to: 'user999@one.test', success: true }])
  t.match(await postroad.messageOnce(postroad.key, results[0].message_id, 'delivered'), {
    subject: 'No. 999',
  })
})

// proves: States and transitions > Batch statuses processing completed failed
// proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
t.test(
  'messages are released at the email rate of the key, those of two batches one after the other',
  async t => {
    const postroad = await openTestAppliance(t)
    const key = await postroad.makeKey('--email-rate-limit', '2')
    const first = await send(postroad, many(3), key)
    t.match(first, { status: 202, body: { data: { status: 'processing', sent: 3 } } }, 'more than the rate')
    const second = await send(postroad, many(1), key)
    const dueTimes = async (id: string) => {
      const { results } = await statusOf(postroad, id)
      return Promise.all(
        results.map(async ({ message_id }: { message_id: string }) => {
          const { body } = await postroad.get(`/api/v1/email/${message_id}/status`, { key })
          return (Date.parse(String(body.data.next_attempt_at)) - START) / 1_000
        }),
      )
    }
    const [a, b] = [String(first.body.data.batch_id), String(second.body.data.batch_id)]
    t.same((await dueTimes(a)).slice(1), [30, 60])
    t.same(await dueTimes(b), [90])
    t.match(await statusOf(postroad, a), { status: 'processing', completed_at: null })
    await postroad.clock.advance(60_000)
    t.match(await statusOf(postroad, a), { status: 'completed', completed_at: '2026-01-05T10:01:00.000Z' })
    const { results } = await statusOf(postroad, a)
    await postroad.messageOnce(key, results[2].message_id, 'delivered')
    const [waiting] = (await statusOf(postroad, b)).results
    t.match(await postroad.get(`/api/v1/email/${waiting.message_id}/status`, { key }), {
      body: { data: { status: 'sent', attempts: 0 } },
    })
    await postroad.clock.advance(30_000)
    await postroad.messageOnce(key, waiting.message_id, 'delivered')
    t.match(await postroad.send(key, good), { status: 200 }, 'batches use nothing of the single sends up')
  },
)

// proves: Errors > limit_reached
// answers: POST /email/batch: limit_reached
// at and past limit: Postroad > hourly and daily emails of a workspace
t.test('a batch that would cross a limit of the workspace is refused whole', async t => {
  const postroad = await openTestAppliance(t)
  for (const limit of ['hourly_limit', 'daily_limit']) {
    await postroad.json(
      'workspace',
      'set',
      postroad.workspaceId,
      'hourly_limit=0',
      'daily_limit=0',
      `${limit}=3`,
    )
    const before = postroad.rowCounts()
    t.match(await send(postroad, many(4)), { status: 403, body: { error: { code: 'limit_reached' } } })
    t.same(postroad.rowCounts(), before)
  }
  t.match(await send(postroad, many(3)), { status: 202 })
  t.match(await send(postroad, many(1)), { status: 403 })
})

// proves: What the service does > A sandbox key mode produces; Email > 8
// proves: decisions: Email > Sandbox each workspace has a
t.test('a batch of a sandbox key is completed at once and mails nobody', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--sandbox', '--email-rate-limit', '1')
  const { status, body } = await send(postroad, many(3), key)
  t.match({ status, body }, { status: 202, body: { data: { status: 'completed', sent: 3 } } })
  t.match(postroad.rowCounts(), { messages: 3, queue: 0, sending_usage: 0 })
})

// proves: Batch record > created_at, completed_at; Email > GET /email/batch/:batchId
t.test('a batch is for its own workspace, and for keys that may', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await send(postroad, [good])
  const path = `/api/v1/email/batch/${body.data.batch_id}`
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const notFound = { status: 404, body: { error: { code: 'not_found' } } }
  t.match(await postroad.get(path, { key: await postroad.makeKey('--workspace', id) }), notFound)
  t.match(await postroad.get('/api/v1/email/batch/x', { key: postroad.key }), notFound)
  t.match(
    await postroad.get('/api/v1/email/batch/01900000-0000-7000-8000-000000000000', { key: postroad.key }),
    notFound,
  )
  t.match(await send(postroad, [good], await postroad.makeKey('--permissions', 'email:read')), {
    status: 403,
  })
})
