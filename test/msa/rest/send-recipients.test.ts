/** Who is mailed and who is skipped, and how each recipient's message reads afterwards. */
import t from 'tap'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'

const good = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

/** Sends from a domain that was not added. */
const SHARED = 'notify@mail.postroad.test'

interface Result {
  readonly to: string
  readonly message_id: string
  readonly success: boolean
  readonly reason?: string
}

async function send(postroad: TestAppliance, to: string | string[]) {
  const { status, body } = await postroad.send(postroad.key, { ...good, to })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body.data as { sent: number; failed: number; skipped: number; total: number; results: Result[] }
}

// proves: What the service does > Transactional email one message to; Email > POST /email/send | 6
// proves: decisions: Email > to array one message (own | Message status machine scheduled ->
t.test('suppressed, invalid and repeated recipients are skipped and do not fail the others', async t => {
  const postroad = await openTestAppliance(t)
  const owner = ['--workspace', postroad.workspaceId]
  await postroad.json('suppress', 'add', 'gone@one.test', ...owner)
  await postroad.json('suppress', 'add', '@closed.test', ...owner)
  const to = [
    'ann@one.test',
    'GONE@one.test',
    'any@closed.test',
    'nobody',
    '',
    'Ann@ONE.test',
    'bob@two.test',
  ]
  const { results, ...counts } = await send(postroad, to)
  t.same(counts, { sent: 2, failed: 0, skipped: 5, total: 7, from: SHARED })
  t.same(
    results.map(({ to, success, reason }) => [to, success, reason]),
    [
      ['ann@one.test', true, undefined],
      ['GONE@one.test', false, 'suppressed'],
      ['any@closed.test', false, 'suppressed'],
      ['nobody', false, 'invalid'],
      ['', false, 'invalid'],
      ['Ann@one.test', false, 'duplicate'],
      ['bob@two.test', true, undefined],
    ],
  )
  t.equal(new Set(results.map(({ message_id: id }) => id)).size, 7, 'each has its own id')
  await postroad.messageOnce(postroad.key, results[0]!.message_id, 'delivered')
  await postroad.messageOnce(postroad.key, results[6]!.message_id, 'delivered')
  t.match((await postroad.get('/capture')).body.pagination, { total: 2 })

  const statusOf = async (index: number) =>
    (await postroad.get(`/api/v1/email/${results[index]!.message_id}/status`, { key: postroad.key })).body
      .data
  t.match(await statusOf(1), { status: 'suppressed', reason: 'suppressed', sent_at: null, attempts: 0 })
  t.match(await statusOf(3), { status: 'failed', reason: 'invalid', to: 'nobody', delivered_at: null })
  t.match(await statusOf(5), { status: 'failed', reason: 'duplicate' })
})

// proves: Email > 6; decisions: Email > to array one message (own
t.test('whatever an entry of a list holds, it fails nobody else', async t => {
  const postroad = await openTestAppliance(t)
  const odd = [
    'b@one.test\0',
    'a\r\nBcc: eve@evil.test',
    'c\0@one.test',
    `${'x'.repeat(100_000)}@one.test`,
    'c@one.test, d@one.test',
    'Ann <a@one.test>, <b@one.test>',
    ' ',
    `e@one.test${' '.repeat(400)}x`,
  ]
  const { results, ...counts } = await send(postroad, ['ann@one.test', ...odd, 'bob@two.test'])
  t.same(counts, { sent: 2, failed: 0, skipped: 8, total: 10, from: SHARED })
  t.ok(results.slice(1, -1).every(({ reason }) => reason === 'invalid'))
  t.equal(results[1]?.to, '<b@one.test >', 'shown without what cannot be')
  t.equal(results[4]?.to.length, 320)
  const { body } = await postroad.get(`/api/v1/email/${results[1]!.message_id}/status`, { key: postroad.key })
  t.match(body.data, { status: 'failed', reason: 'invalid', to: '<b@one.test >' })
})

// proves: decisions: Email > A mail's addresses may have
t.test('names are taken with the addresses and shown in the mail, results have the bare ones', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await postroad.send(postroad.key, {
    ...good,
    to: ['Ann <ann@one.test>', ' bob@TWO.test ', '"Doe, Carl" <carl@bücher.test>', 'ANN <Ann@one.test>'],
    from_email: '"Shop, The" <me@sender.test>',
    reply_to: '=?utf-8?Q?J=C3=B6rg?= <desk@sender.test>',
  })
  t.same(
    body.data.results.map(({ to, reason }: Result) => [to, reason]),
    [
      ['ann@one.test', undefined],
      ['bob@two.test', undefined],
      ['carl@xn--bcher-kva.test', undefined],
      ['Ann@one.test', 'duplicate'],
    ],
  )
  const shownTo = ['Ann <ann@one.test>', 'bob@two.test', '"Doe, Carl" <carl@xn--bcher-kva.test>']
  for (const [index, to] of shownTo.entries()) {
    const { message_id: id } = body.data.results[index] as Result
    await postroad.messageOnce(postroad.key, id, 'delivered')
    const raw = String((await postroad.get(`/capture/${id}`)).body.data.raw)
    t.ok(raw.includes(`\r\nTo: ${to}\r\n`), to)
    t.match(raw, /^From: "Shop, The" <notify@/m)
    t.match(raw, '\r\nReply-To: =?UTF-8?Q?J=C3=B6rg?= <desk@sender.test>\r\n')
  }
  const single = await send(postroad, 'Ann <ann@ONE.test>')
  t.match(single.results, [{ to: 'ann@one.test', success: true }])
  const named = await postroad.send(postroad.key, {
    ...good,
    to: 'a@one.test',
    from_email: 'X <me@sender.test>',
    from_name: 'Y',
  })
  const id = String(named.body.data.results[0].message_id)
  t.match(
    await postroad.messageOnce(postroad.key, id, 'delivered'),
    { from: /^Y </ },
    'from_name is the stronger',
  )
})

// proves: Email > to
t.test('a single suppressed recipient is no error', async t => {
  const postroad = await openTestAppliance(t)
  const owner = ['--workspace', postroad.workspaceId]
  await postroad.json('suppress', 'add', 'gone@one.test', ...owner)
  t.match(await send(postroad, 'gone@one.test'), {
    sent: 0,
    skipped: 1,
    total: 1,
    results: [{ to: 'gone@one.test', success: false, reason: 'suppressed' }],
  })
  await postroad.json('suppress', 'remove', 'Gone@one.test', ...owner)
  t.match(await send(postroad, 'gone@one.test'), { sent: 1, skipped: 0 })
})

// proves: Email > 6; decisions: Email > to array one message (own
t.test('a list of only invalid addresses is answered, and no mail is sent', async t => {
  const postroad = await openTestAppliance(t)
  t.match(await send(postroad, ['x', 'y']), { sent: 0, failed: 0, skipped: 2, total: 2 })
  t.equal(postroad.rowCounts()['queue'], 0)
})

// proves: What the service does > Delivery status lookup per message
// proves: Message status record > message_id | to | sent_at, delivered_at, opened_at, clicked_at, bounced_at
// proves: Email > GET /email/:messageId/status; decisions: Email > GET /email (additive) message log
// operations: GET /email/{messageId}
t.test("a message's status and trace are for its own workspace", async t => {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const { results } = await send(postroad, 'ann@one.test')
  const id = results[0]!.message_id
  const message = await postroad.messageOnce(key, id, 'delivered')
  t.match(message, {
    message_id: id,
    to: 'ann@one.test',
    from: 'notify@mail.postroad.test',
    subject: 'Hello',
    is_sandbox: false,
    created_at: '2026-01-05T10:00:00.000Z',
    sent_at: '2026-01-05T10:00:00.000Z',
    delivered_at: '2026-01-05T10:00:00.000Z',
    opened_at: null,
    clicked_at: null,
    bounced_at: null,
    complained_at: null,
    bounce_type: null,
    attempts: 1,
    next_attempt_at: null,
    trace: [{ attempt: 1, outcome: 'delivered', hosts: [] }],
  })
  const status = await postroad.get(`/api/v1/email/${id}/status`, { key })
  t.match(status, { status: 200, body: { data: { message_id: id, status: 'delivered' } } })
  t.notOk('trace' in status.body.data)
  t.match(await postroad.get(`/api/v1/email/${id.toUpperCase()}/status`, { key }), { status: 200 })

  const other = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await postroad.makeKey('--workspace', other.id)
  const unknown = '01900000-0000-7000-8000-000000000000'
  for (const [path, asker] of [
    [`/api/v1/email/${id}`, stranger],
    [`/api/v1/email/${id}/status`, stranger],
    [`/api/v1/email/${unknown}`, key],
    [`/api/v1/email/${unknown}/status`, key],
    ['/api/v1/email/not-an-id', key],
    [`/api/v1/email/${id}'%20or%201=1/status`, key],
  ] as const)
    t.match(
      await postroad.get(path, { key: asker }),
      { status: 404, body: { error: { code: 'not_found' } } },
      path,
    )
})
