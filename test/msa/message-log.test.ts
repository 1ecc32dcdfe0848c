/** `GET /email`: the log of messages, its filters and pages. */
import t from 'tap'
import { insertContent, type MessageContent } from '../../src/messages/content-store.js'
import { insertMessages, type NewMessage } from '../../src/messages/message-store.js'
import { applyTransition } from '../../src/messages/message-status-store.js'
import { claimEntries, clearClaims } from '../../src/queue/queue-store.js'
import { insertQueueEntries } from '../../src/queue/queue-store.js'
import type { MessageStatus } from '../../src/messages/message-status.js'
import { searchMessages } from '../../src/msa/log/message-search-store.js'
import { listMessages, type MessageFilter } from '../../src/msa/log/message-log-store.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'

const good = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const NOW = Date.parse('2026-01-05T10:00:00Z')
const MINUTE = 60_000

// proves: decisions: Email > GET /email (additive) message log
t.test('the log can be asked for a tag, alone and with other fields, in pages', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const sandbox = await postroad.makeKey('--sandbox')
  const letter = (subject: string, tags: string[]) => ({ ...good, to: 'ann@one.test', subject, tags })
  for (const [who, subject, tags] of [
    [key, 'A', ['welcome', 'say "hi"']],
    [key, 'B', ['wel']],
    [key, 'C', ['x', 'welcome']],
    [key, 'D', ['a', 'b']],
    [key, 'E', []],
  ] as const) {
    await postroad.send(who, letter(subject, [...tags]))
    await postroad.clock.advance(1)
  }
  await postroad.send(sandbox, letter('S', ['welcome']))
  const log = async (query: object, asker = key) =>
    (await postroad.get(`/api/v1/email?${new URLSearchParams({ ...query }).toString()}`, { key: asker })).body
  const shown = async (query: object, asker = key) =>
    (await log(query, asker)).data.map((one: { subject: string }) => one.subject).join('')
  t.equal(await shown({ tag: 'welcome', is_sandbox: 'false' }), 'CA')
  t.equal(await shown({ tag: 'say "hi"' }), 'A')
  t.equal(await shown({ tag: 'wel' }), 'B', 'to the letter')
  t.equal(await shown({ tag: ',' }), '', 'and not what stands between them')
  t.equal(await shown({ tag: '","' }), '')
  t.equal(await shown({ tag: 'welcome', to: 'Ann <ANN@one.test>', is_sandbox: 'false' }), 'CA')
  t.equal(await shown({ tag: 'welcome', to: 'bob@one.test' }), '')
  t.match(await log({ tag: 'welcome', is_sandbox: 'false', limit: '1', offset: '1' }), {
    data: [{ subject: 'A' }],
    pagination: { total: 2, limit: 1, offset: 1, has_more: false },
  })
  t.equal(await shown({ is_sandbox: 'true' }, sandbox), 'S')
  t.match(await log({ is_sandbox: 'perhaps' }), { error: { code: 'validation_error', path: 'is_sandbox' } })
})

// proves: decisions: Email > GET /email (additive) message log | Optional fields null is as
t.test('the log shows the messages of the workspace, newest first, and can be asked by field', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  await postroad.json('suppress', 'add', 'gone@one.test', '--workspace', postroad.workspaceId)
  await postroad.send(key, { ...good, to: ['Ann@one.test', 'gone@one.test', 'nobody'], subject: 'First' })
  await postroad.clock.advance(MINUTE)
  const { body } = await postroad.send(key, { ...good, to: 'bob@two.test', subject: 'Second' })
  await postroad.messageOnce(key, String(body.data.results[0].message_id), 'delivered')
  await postroad.clock.advance(MINUTE)
  await postroad.send(key, { ...good, to: 'ann@ONE.test', subject: 'Third', send_at: '2026-01-05T12:00:00Z' })
  const log = async (query: string) => (await postroad.get(`/api/v1/email${query}`, { key })).body
  const shown = async (query: string) =>
    (await log(query)).data.map((one: { subject: string; to: string }) => `${one.subject} ${one.to}`)

  t.match(await log(''), {
    data: [{ subject: 'Third' }, { subject: 'Second' }, { subject: 'First' }, {}, {}],
    pagination: { total: 5, limit: 100, offset: 0, has_more: false },
  })
  t.match((await log('')).data[1], {
    message_id: body.data.results[0].message_id,
    status: 'delivered',
    to: 'bob@two.test',
    is_sandbox: false,
    campaign_id: null,
    created_at: '2026-01-05T10:01:00.000Z',
    delivered_at: '2026-01-05T10:01:00.000Z',
    opened_at: null,
  })
  t.same(await shown('?to=ANN@one.test'), ['Third ann@one.test', 'First Ann@one.test'])
  t.same(await shown('?to=ann'), [])
  // Two messages of one millisecond have no order between them.
  await postroad.clock.advance(1)
  await postroad.send(key, {
    ...good,
    to: 'Ünal@bücher.test',
    subject: 'Far',
    send_at: '2026-01-05T12:00:00Z',
  })
  t.same(await shown(`?to=${encodeURIComponent('Ünal@BÜCHER.test')}`), ['Far Ünal@xn--bcher-kva.test'])
  t.same(await shown('?status=scheduled'), ['Far Ünal@xn--bcher-kva.test', 'Third ann@one.test'])
  t.same(await shown('?status=suppressed'), ['First gone@one.test'])
  t.same(await shown('?status=failed'), ['First nobody'])
  t.same((await shown('?since=2026-01-05T10:01:00Z')).slice(1), ['Third ann@one.test', 'Second bob@two.test'])
  t.same(await shown('?since=2026-01-05T10:01:00Z&until=2026-01-05T10:02:00Z'), ['Second bob@two.test'])
  t.same(await shown('?until=2026-01-05T10:00:00Z'), [])
  t.same(await shown('?status=delivered&to=bob@two.test&since=2026-01-05'), ['Second bob@two.test'])
  t.equal((await shown('?until=2026-01-05')).length, 6, 'that day included')
  t.same(await shown('?until=2026-01-04'), [])
  t.same(await shown('?since=20260105T110100%2B0100&until=2026-01-05T10:02'), ['Second bob@two.test'])
  t.same(await shown('?campaign_id=none'), [])
  t.match(await log('?limit=2&offset=1'), {
    data: [{ subject: 'Third' }, { subject: 'Second' }],
    pagination: { total: 6, limit: 2, offset: 1, has_more: true },
  })
  t.match(await log('?limit=2&offset=4'), { pagination: { has_more: false } })

  for (const [query, path] of [
    ['?status=lost', 'status'],
    ['?since=yesterday', 'since'],
    ['?until=', 'until'],
    ['?until=2026-11-31', 'until'],
    ['?limit=1001', 'limit'],
    ['?limit=0', 'limit'],
    ['?offset=-1', 'offset'],
    ['?from=x', 'from'],
  ] as const)
    t.match(await log(query), { error: { code: 'validation_error', path } }, query)
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const stranger = await postroad.makeKey('--workspace', id)
  t.match(await postroad.get('/api/v1/email', { key: stranger }), {
    body: { data: [], pagination: { total: 0 } },
  })
  const sender = await postroad.makeKey('--permissions', 'email:send')
  t.match(await postroad.get('/api/v1/email', { key: sender }), { status: 403 })
})

const content: MessageContent = {
  id: 'c',
  workspaceId: 'w',
  from: { address: 'me@sender.test' },
  subject: 'Hello',
  text: 'Hello',
  signingDomainId: null,
  trackOpens: false,
  trackClicks: false,
  createdAt: NOW,
}

eachDatabase(t, 'a recipient beyond ASCII is found however its case is written', async (t, database) => {
  const recipients = ['Ünal@one.test', 'üNAL@one.test', 'ünal@two.test', 'unal@one.test', 'ΟΔΟΣ@one.test']
  await database.write(async ({ db }) => {
    await insertContent(db, content)
    const messages = recipients.map((recipient, at) => ({
      id: uuidv7(NOW, Buffer.alloc(10, at)),
      recipient,
      status: 'sent' as const,
      reason: null,
    }))
    await insertMessages(db, content, false, messages)
  })
  const found = async (to: string) =>
    (await listMessages(database.reader, 'w', { to }, { limit: 10, offset: 0 })).items.map(
      ({ recipient }) => recipient,
    )
  for (const to of ['Ünal@one.test', 'ÜNAL@ONE.TEST', 'ünal@one.test'])
    t.same(await found(to), ['üNAL@one.test', 'Ünal@one.test'], to)
  t.same(await found('Unal@one.test'), ['unal@one.test'])
  t.same(await found('ΟΔΟΣ@one.test'), ['ΟΔΟΣ@one.test'])
  t.same(await found('ö@one.test'), [])
})

eachDatabase(t, 'the log finds every state and the messages of a campaign', async (t, database) => {
  const ids = ['scheduled', 'cancelled', 'started', 'delivered', 'opened', 'clicked', 'bounced'].map(
    (name, at) => ({
      name,
      id: uuidv7(NOW, Buffer.alloc(10, at)),
    }),
  )
  const idOf = (name: string) => ids.find(one => one.name === name)?.id ?? ''
  await database.write(async ({ db }) => {
    await insertContent(db, content)
    await insertMessages(
      db,
      content,
      false,
      ids.map(({ name, id }) => ({
        id,
        recipient: `${name}@one.test`,
        status: ['scheduled', 'cancelled', 'started'].includes(name) ? 'scheduled' : 'sent',
        reason: null,
        ...(name === 'opened' ? { campaignId: 'spring' } : {}),
      })),
    )
    for (const [kind, names] of [
      ['cancelled', ['cancelled', 'delivered']],
      ['started', ['started', 'delivered']],
      ['delivered', ['delivered', 'opened', 'scheduled']],
      ['bounced', ['bounced']],
      ['opened', ['opened', 'bounced']],
      ['clicked', ['clicked']],
      ['opened', ['clicked']],
    ] as const)
      await applyTransition(db, kind, names.map(idOf), NOW + 5)
  })
  const found = async (filter: MessageFilter) =>
    (await listMessages(database.reader, 'w', filter, { limit: 10, offset: 0 })).items.map(({ recipient }) =>
      recipient.replace('@one.test', ''),
    )
  t.same(await found({ status: 'scheduled' }), ['scheduled'])
  t.same(await found({ status: 'cancelled' }), ['cancelled'])
  t.same(await found({ status: 'sent' }), ['started'], 'begun')
  t.same(await found({ status: 'delivered' }), ['delivered'])
  t.same(await found({ status: 'opened' }), ['opened'])
  t.same(await found({ status: 'clicked' }), ['clicked'], 'a click stays a click')
  t.same(await found({ status: 'bounced' }), ['bounced'], 'and a bounce a bounce')
  t.same(await found({ campaignId: 'spring' }), ['opened'])
  const ofOther = await listMessages(
    database.reader,
    'other',
    { campaignId: 'spring' },
    { limit: 10, offset: 0 },
  )
  t.match(ofOther, { items: [], total: 0 }, 'to its own workspace alone')
  t.same(await found({ campaignId: 'spring', status: 'opened', to: 'OPENED@one.test', since: NOW }), [
    'opened',
  ])
  const { items } = await listMessages(database.reader, 'w', { status: 'clicked' }, { limit: 1, offset: 0 })
  t.match(items, [{ openedAt: NOW + 5, clickedAt: NOW + 5, sentAt: NOW }])
})

/** Message `n` was accepted `n` ms after the first. */
async function insertLog(
  database: Database,
  count: number,
  toMessage: (n: number) => Omit<NewMessage, 'id' | 'reason'>,
): Promise<void> {
  await database.write(async ({ db }) => {
    await insertContent(db, content)
    const messages = Array.from({ length: count }, (_, n) => ({
      ...toMessage(n),
      id: uuidv7(NOW + n, Buffer.alloc(10)),
      reason: null,
    }))
    await insertMessages(db, content, false, messages)
  })
}

eachDatabase(t, 'the log finds what waits in the queue, by whether it was tried', async (t, database) => {
  const states = ['untried', 'deferred', 'scheduled', 'sending', 'delivered'] as const
  const stateOf = (n: number) => states[n % 5] ?? 'delivered'
  const idOf = (n: number) => uuidv7(NOW + n, Buffer.alloc(10))
  await insertLog(database, 3_000, n => ({
    recipient: `reader${n % 7}@one.test`,
    status: stateOf(n) === 'scheduled' || stateOf(n) === 'delivered' ? (stateOf(n) as MessageStatus) : 'sent',
    ...(n % 2 === 0 ? { campaignId: 'spring' } : {}),
  }))
  const entry = (n: number, workspaceId = 'w') => ({
    ...{
      messageId: idOf(n),
      workspaceId,
      destination: 'one.test',
      priority: 0 as const,
      recipient: 'x@one.test',
    },
    ...{ nextAttemptAt: NOW, expiresAt: NOW + MINUTE, enqueuedAt: NOW, contentId: 'c' },
  })
  await database.write(async ({ db }) => {
    const queued = Array.from({ length: 3_000 }, (_, n) => n).filter(n => stateOf(n) !== 'delivered')
    await insertQueueEntries(
      db,
      queued.map(n => entry(n)),
    )
    const tried = queued.filter(n => stateOf(n) === 'deferred' || stateOf(n) === 'sending').map(idOf)
    await claimEntries(db, tried, NOW + MINUTE, 'run')
    await clearClaims(db, queued.filter(n => stateOf(n) === 'deferred').map(idOf), 'run')
  })
  const asked = async (filter: MessageFilter, limit = 1, offset = 0) => {
    const { items, total } = await listMessages(database.reader, 'w', filter, { limit, offset })
    return { found: items.map(({ id, deliveryState }) => [ids.indexOf(id), deliveryState]), total }
  }
  const ids = Array.from({ length: 3_000 }, (_, n) => idOf(n))
  t.same(await asked({ status: 'queued' }), { found: [[2_995, 'queued']], total: 600 })
  t.same(await asked({ status: 'deferred' }, 2, 598), {
    found: [
      [6, 'deferred'],
      [1, 'deferred'],
    ],
    total: 600,
  })
  t.same(await asked({ status: 'deferred' }, 2, 600), { found: [], total: 600 })
  t.same(await asked({ status: 'sent' }, 2), {
    found: [
      [2_998, 'sending'],
      [2_996, 'deferred'],
    ],
    total: 1_800,
  })
  t.same(await asked({ status: 'scheduled' }), { found: [[2_997, null]], total: 600 })
  t.same(await asked({ status: 'deferred', campaignId: 'spring' }), {
    found: [[2_996, 'deferred']],
    total: 300,
  })
  t.same(await asked({ status: 'queued', to: 'READER0@one.test' }), { found: [[2_975, 'queued']], total: 86 })
  t.same(await asked({ status: 'queued', isSandbox: true }), { found: [], total: 0 })
  t.same(await asked({ status: 'queued', tag: 'none' }), { found: [], total: 0 })
  t.same(await asked({ status: 'queued', until: NOW }), { found: [], total: 0 })
  t.equal((await asked({ status: 'queued', since: NOW })).total, 600)
  const other = await listMessages(database.reader, 'other', { status: 'queued' }, { limit: 1, offset: 0 })
  t.equal(other.total, 0)
  const { messages: search } = await searchMessages(database.reader, { status: 'deferred' }, ['w'], 2)
  t.same(
    search.map(({ id }) => ids.indexOf(id)),
    [2_996, 2_991],
  )
})

eachDatabase(
  t,
  'the log is asked by several fields at once, in pages, and tells how many there are',
  async (t, database) => {
    const statuses = ['sent', 'bounced', 'sent', 'failed'] as const
    await insertLog(database, 40, n => ({
      recipient: `Reader${n % 5}@one.test`,
      status: statuses[n % 4] ?? 'sent',
      // The second campaign begins before the first has ended.
      ...(n < 20 && n % 2 === 1 ? { campaignId: 'spring' } : {}),
      ...(n > 10 && n % 2 === 0 ? { campaignId: 'summer' } : {}),
    }))
    const asked = async (filter: MessageFilter, limit = 100, offset = 0) => {
      const { items, total } = await listMessages(database.reader, 'w', filter, { limit, offset })
      // The moment of acceptance is in the identifier.
      return {
        found: items.map(({ id }) => Number.parseInt(id.replace('-', '').slice(0, 12), 16) - NOW),
        total,
      }
    }
    t.same(await asked({ campaignId: 'spring', status: 'bounced' }), { found: [17, 13, 9, 5, 1], total: 5 })
    t.same(await asked({ campaignId: 'spring', status: 'sent' }), { found: [], total: 0 })
    t.same(await asked({ campaignId: 'summer', status: 'sent' }, 2), { found: [38, 36], total: 14 })
    t.same(await asked({ campaignId: 'none', status: 'failed' }), { found: [], total: 0 })
    t.same(await asked({ to: 'reader3@ONE.test', status: 'bounced' }), { found: [33, 13], total: 2 })
    t.same(await asked({ to: 'reader3@one.test', campaignId: 'spring' }), { found: [13, 3], total: 2 })
    t.same(await asked({ to: 'reader3@one.test', campaignId: 'spring', status: 'failed' }), {
      found: [3],
      total: 1,
    })
    t.same(await asked({}, 3, 30), { found: [9, 8, 7], total: 40 })
    t.same(await asked({ status: 'bounced' }, 3, 4), { found: [21, 17, 13], total: 10 })
    t.same(await asked({ status: 'sent' }, 3, 18), { found: [2, 0], total: 20 })
    t.same(await asked({}, 3, 40), { found: [], total: 40 })
    t.same(await asked({}, 3, 41), { found: [], total: 40 })
    t.same(await asked({ status: 'failed' }, 3, 1_000_000_000), { found: [], total: 10 })
  },
)

t.test('a page deep in a long log is found, and what lies beyond the log is empty', async t => {
  const database = await sqliteDatabase(t)
  const messages = 45_000
  await insertLog(database, messages, n => ({ recipient: `reader${n}@one.test`, status: 'sent' }))
  const asked = async (offset: number) => {
    const { items, total } = await listMessages(database.reader, 'w', {}, { limit: 2, offset })
    return { found: items.map(({ recipient }) => recipient), total }
  }
  t.same(await asked(0), { found: ['reader44999@one.test', 'reader44998@one.test'], total: 10_002 })
  t.same(await asked(20_000), { found: ['reader24999@one.test', 'reader24998@one.test'], total: 30_002 })
  t.same(await asked(44_000), { found: ['reader999@one.test', 'reader998@one.test'], total: messages })
  t.same(await asked(44_999), { found: ['reader0@one.test'], total: messages })
  t.same(await asked(messages), { found: [], total: messages })
  t.same(await asked(70_000), { found: [], total: messages })
})
