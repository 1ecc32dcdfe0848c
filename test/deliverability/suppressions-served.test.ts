/** The suppression list over HTTP on the running server, and its effect on mail. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

const SUPPRESSIONS = '/api/v1/suppressions'
const mail = { to: 'ann@x.example', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  return {
    ...postroad,
    add: (body: object) => postroad.post(SUPPRESSIONS, body, { key }),
    remove: (email: string) => postroad.delete(`${SUPPRESSIONS}/${encodeURIComponent(email)}`, { key }),
    list: async (query = '', asker = key) =>
      (await postroad.get(`${SUPPRESSIONS}${query}`, { key: asker })).body,
    emails: async (query = '') =>
      (await postroad.get(`${SUPPRESSIONS}${query}`, { key })).body.data.map(
        ({ email }: { email: string }) => email,
      ),
  }
}

// proves: Conventions > A single resource is returned | Timestamps are ISO 8601 strings
// proves: Deliverability, domains, analytics, tracking > POST /suppressions | DELETE /suppressions/:email
// proves: Errors > 200 | 201 | 409 | duplicate; decisions: Email > POST /suppressions with a wider
// proves: decisions: Deliverability > Suppression {email reason scope source_message_id
// answers: POST /suppressions: duplicate
t.test('an address is suppressed once, whatever its case, and again after removal', async t => {
  const { add, remove } = await open(t)
  t.match(await add({ email: 'Ann@X.example' }), {
    status: 201,
    body: {
      data: {
        email: 'ann@x.example',
        reason: 'manual',
        scope: 'all',
        source_message_id: null,
        created_at: '2026-01-05T10:00:00.000Z',
      },
    },
  })
  t.match(await add({ email: 'ann@x.example', reason: 'complaint' }), {
    status: 409,
    body: { error: { code: 'duplicate', path: 'email' } },
  })
  t.match(await remove('ANN@x.example'), { status: 200, body: { data: { success: true } } })
  t.match(await remove('ann@x.example'), { status: 404, body: { error: { code: 'not_found' } } })
  t.match(await add({ email: 'ann@x.example' }), { status: 201 })
})

// proves: decisions: Added after the whole contract > Suppressions and contacts POST and
// answers: PATCH /contacts/{id}: conflict
t.test('a contact is unsubscribed while a manual suppression exists, and resubscribed after it', async t => {
  const { add, remove, key, ...postroad } = await open(t)
  const made = await postroad.post('/api/v1/contacts', { email: 'ann@x.example' }, { key })
  const path = `/api/v1/contacts/${made.body.data.id}`
  const isSubscribed = async () => (await postroad.get(path, { key })).body.data.subscribed
  await add({ email: 'ann@x.example' })
  t.equal(await isSubscribed(), false, 'right after the answer')
  t.match(await postroad.patch(path, { subscribed: true }, { key }), {
    status: 409,
    body: { error: { code: 'conflict', path: 'subscribed' } },
  })
  await remove('ann@x.example')
  t.equal(await isSubscribed(), true)
})

// proves: Deliverability, domains, analytics, tracking > POST /suppressions
// proves: decisions: Email > POST /suppressions with a wider
// proves: decisions: Deliverability > Suppression {email reason scope source_message_id
t.test('a wider scope widens the entry; the same or a narrower one is a duplicate', async t => {
  const { add, list, key, clock, ...postroad } = await open(t)
  await add({ email: 'ann@x.example', reason: 'unsubscribe' })
  const duplicate = { status: 409, body: { error: { code: 'duplicate', path: 'email' } } }
  t.match(await add({ email: 'ann@x.example', reason: 'unsubscribe' }), duplicate)
  await clock.advance(1_000)
  t.match(await add({ email: 'Ann@x.example', reason: 'hard_bounce' }), {
    status: 200,
    body: { data: { reason: 'hard_bounce', scope: 'all', created_at: '2026-01-05T10:00:01.000Z' } },
  })
  t.match((await list()).data, [{ email: 'ann@x.example', reason: 'hard_bounce', scope: 'all' }])
  t.match(await postroad.send(key, mail), { body: { data: { sent: 0, skipped: 1 } } })
  t.match(await add({ email: 'ann@x.example', reason: 'complaint' }), duplicate)
  t.match(await add({ email: 'ann@x.example', scope: 'marketing' }), duplicate)
  t.match((await list()).data, [{ reason: 'hard_bounce', scope: 'all' }])
})

// proves: Deliverability, domains, analytics, tracking > POST /suppressions
// proves: decisions: Email > POST /suppressions with a wider
// proves: decisions: Deliverability > Suppression {email reason scope source_message_id
t.test('an entry is found, honoured and removed in any notation of its domain', async t => {
  const { add, remove, emails, key, ...postroad } = await open(t)
  const forms = ['@Bücher.example', '@XN--BCHER-KVA.example', '@bücher.example.', ' @bu\u0308cher.EXAMPLE ']
  for (const form of forms) {
    t.match(await add({ email: form }), { status: 201, body: { data: { email: '@xn--bcher-kva.example' } } })
    for (const other of forms) {
      t.match(await add({ email: other }), { status: 409 }, `${form} is ${other}`)
      t.same(await emails(`?email=${encodeURIComponent(other)}`), ['@xn--bcher-kva.example'])
    }
    for (const to of ['ann@bücher.example', 'ann@XN--bcher-kva.example'])
      t.match(await postroad.send(key, { ...mail, to }), { body: { data: { skipped: 1 } } })
    t.equal((await remove(forms[0]!)).status, 200)
  }
  await add({ email: 'ann@bücher.example.' })
  t.same(await emails(`?email=${encodeURIComponent('ANN@xn--bcher-kva.example')}`), [
    'ann@xn--bcher-kva.example',
  ])
  t.equal((await remove('Ann@BÜCHER.example')).status, 200)
})

// proves: Deliverability, domains, analytics, tracking > POST /suppressions
// proves: decisions: Email > POST /suppressions with a wider
// proves: decisions: Deliverability > Suppression {email reason scope source_message_id
t.test('an invalid suppression is rejected by field name', async t => {
  const { add, list } = await open(t)
  for (const [body, path] of [
    [{}, 'email'],
    [{ email: 'nobody' }, 'email'],
    [{ email: '@' }, 'email'],
    [{ email: 7 }, 'email'],
    [{ email: '' }, 'email'],
    [{ email: 'ann@x.example', reason: 'dislike' }, 'reason'],
    [{ email: 'ann@x.example', scope: 'some' }, 'scope'],
    [{ email: 'ann@x.example', note: 'x' }, 'note'],
  ] as const)
    t.match(
      await add(body),
      { status: 400, body: { error: { code: 'validation_error', path } } },
      JSON.stringify(body),
    )
  t.match(await list('?reason=dislike'), { error: { code: 'validation_error', path: 'reason' } })
  t.same((await list()).data, [])
})

// proves: Deliverability, domains, analytics, tracking > POST /suppressions
// operations: POST /suppressions/batch; POST /suppressions/bulk-delete
t.test('many entries are added and removed at once', async t => {
  const { emails, list, key, ...postroad } = await open(t)
  const bulk = (path: string, body: object) => postroad.post(`${SUPPRESSIONS}${path}`, body, { key })
  const contact = await postroad.post('/api/v1/contacts', { email: 'a@x.example' }, { key })
  const isSubscribed = async () =>
    (await postroad.get(`/api/v1/contacts/${contact.body.data.id}`, { key })).body.data.subscribed
  const suppressions = [
    { email: 'A@X.example' },
    { email: '@y.example', reason: 'complaint' },
    ...Array.from({ length: 120 }, (_, at) => ({ email: `b${at}@x.example`, reason: 'unsubscribe' })),
  ]
  t.match(await bulk('/batch', { suppressions }), {
    status: 200,
    body: { data: { added: 122, widened: 0, known: 0 } },
  })
  t.equal(await isSubscribed(), false)
  t.match(
    (await bulk('/batch', { suppressions: [{ email: 'b0@x.example' }, { email: 'a@x.example' }] })).body,
    {
      data: { added: 0, widened: 1, known: 1 },
    },
  )
  t.match(await bulk('/batch', { suppressions: [{ email: 'c@x.example' }, { email: 'nobody' }] }), {
    status: 400,
    body: { error: { code: 'validation_error', path: 'suppressions.1.email' } },
  })
  t.same(await emails('?email=c@x.example'), [], 'nothing of an invalid batch is stored')
  const gone = ['a@x.example', 'A@x.example', '@Y.example', 'never@x.example']
  t.match((await bulk('/bulk-delete', { emails: gone })).body, { data: { removed: 2, not_found: 1 } })
  t.equal(await isSubscribed(), true)
  t.equal((await list('?limit=1')).pagination.total, 120)
  t.match(await bulk('/bulk-delete', { emails: [] }), { status: 400 })
  const tooMany = Array.from({ length: 1_001 }, (_, at) => `d${at}@x.example`)
  t.match(await bulk('/bulk-delete', { emails: tooMany }), { status: 400 })
})

// proves: Other resources > Suppression an email address filterable
// proves: Deliverability, domains, analytics, tracking > GET /suppressions
t.test('the list is filtered by reason, scope and address, and paged', async t => {
  const { add, list, emails, clock, ...postroad } = await open(t)
  for (const [email, reason] of [
    ['a@x.example', 'hard_bounce'],
    ['b@x.example', 'unsubscribe'],
    ['c@x.example', 'complaint'],
    ['d@x.example', 'hard_bounce'],
  ] as const) {
    await add({ email, reason })
    await clock.advance(1)
  }
  t.same(await emails(), ['d@x.example', 'c@x.example', 'b@x.example', 'a@x.example'])
  t.same(await emails('?reason=hard_bounce'), ['d@x.example', 'a@x.example'])
  t.same(await emails('?reason=manual'), [])
  t.same(await emails('?scope=marketing'), ['b@x.example'])
  t.same(await emails('?email=C@X.example'), ['c@x.example'])
  t.match(await list('?reason=hard_bounce&limit=1'), {
    data: [{ email: 'd@x.example', reason: 'hard_bounce', scope: 'all' }],
    pagination: { total: 2, limit: 1, offset: 0, has_more: true },
  })
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await postroad.makeKey('--workspace', id)
  t.same((await list('', stranger)).data, [])
  t.match(await postroad.delete(`${SUPPRESSIONS}/a@x.example`, { key: stranger }), { status: 404 })
})

// proves: Deliverability, domains, analytics, tracking > POST /suppressions | DELETE /suppressions/:email
// proves: decisions: Email > Suppression scope all stops every | POST /suppressions with a wider
// proves: decisions: Deliverability > Suppression {email reason scope source_message_id
t.test('a suppressed address or domain is not mailed until removed', async t => {
  const { add, remove, key, ...postroad } = await open(t)
  await add({ email: 'ann@x.example' })
  await add({ email: '@closed.example' })
  const skipped = {
    status: 200,
    body: { data: { sent: 0, skipped: 1, results: [{ success: false, reason: 'suppressed' }] } },
  }
  t.match(await postroad.send(key, mail), skipped)
  t.match(await postroad.send(key, { ...mail, to: 'who@closed.example' }), skipped)
  await remove('ann@x.example')
  await remove('@closed.example')
  t.match(await postroad.send(key, mail), { status: 200, body: { data: { sent: 1 } } })
  t.match(await postroad.send(key, { ...mail, to: 'who@closed.example' }), { body: { data: { sent: 1 } } })
})

// proves: Deliverability, domains, analytics, tracking > POST /suppressions
// proves: decisions: Email > Suppression scope all stops every | POST /suppressions with a wider
// proves: decisions: Deliverability > Suppression {email reason scope source_message_id
t.test('an unsubscribed recipient still gets single sends and batches', async t => {
  const { add, key, ...postroad } = await open(t)
  t.match(await add({ email: 'ann@x.example', reason: 'unsubscribe' }), {
    status: 201,
    body: { data: { scope: 'marketing' } },
  })
  t.match(await postroad.send(key, mail), { status: 200, body: { data: { sent: 1, skipped: 0 } } })
  t.match(await postroad.post('/api/v1/email/batch', { messages: [mail] }, { key }), {
    body: { data: { sent: 1 } },
  })
})
