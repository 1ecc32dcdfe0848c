/** The queue's tables on both databases. */
import t from 'tap'
import { insertAttempts, listAttempts, type Attempt } from '../../src/messages/attempt-store.js'
import { findCapturedMail, insertCapturedMails, listCapturedMails } from '../../src/messages/capture-store.js'
import { findContents } from '../../src/messages/content-store.js'
import {
  findAnyMessage,
  findMessage,
  findMessages,
  insertMessages,
} from '../../src/messages/message-store.js'
import { deleteEntries, listEntries, retryNow, setHeld } from '../../src/queue/operator/queue-admin-store.js'
import { summarize } from '../../src/queue/operator/queue-summary-store.js'
import { nextDueTimes, selectDue } from '../../src/queue/due-store.js'
import {
  requeueOrphans,
  claimEntries,
  findOrphans,
  clearClaims,
  releaseClaims,
  deferEntry,
  findEntries,
  listLanes,
  listLanesOfNew,
  removeEntries,
} from '../../src/queue/queue-store.js'
import type { Database } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import { firstIdAt } from '../../src/core/ids.js'
import { insertNode } from '../../src/cluster/node-store.js'
import { ROLES } from '../../src/cluster/roles.js'
import { eachDatabase } from '../support/db/database.js'
import { CONTENT, enqueue, laneTo, NOW } from '../support/mailroom.js'

const idsOf = (entries: readonly { messageId: string }[]) => entries.map(({ messageId }) => messageId)
const due = async (database: Database, destination: string, limit = 10) =>
  idsOf(
    (await selectDue(database.reader, [{ lane: laneTo(destination), limit }], NOW)).get(
      laneTo(destination),
    ) ?? [],
  )
const statusOf = async (database: Database, id: string) => (await findAnyMessage(database.reader, id))?.status

eachDatabase(t, 'the longest due messages come first', async (t, database) => {
  await enqueue(database, [
    { id: 'c', to: 'c@x.example', dueAt: NOW - 1 },
    { id: 'a', to: 'a@x.example', dueAt: NOW },
    { id: 'b', to: 'b@x.example', dueAt: NOW - 5 },
    { id: 'd', to: 'd@x.example', dueAt: NOW - 1 },
  ])
  t.same(await due(database, 'x.example'), ['b', 'c', 'd', 'a'])
  t.same(await due(database, 'x.example', 2), ['b', 'c'])
})

eachDatabase(t, 'a look begins at the due time it is given', async (t, database) => {
  await enqueue(
    database,
    [3, 1, 2].map(late => ({ id: `${late}`, to: 'a@x.example', dueAt: NOW - 10 + late })),
  )
  const lane = laneTo('x.example')
  const from = (dueAt: number) => selectDue(database.reader, [{ lane, limit: 10, from: dueAt }], NOW)
  t.same(idsOf((await from(NOW - 8)).get(lane) ?? []), ['2', '3'])
  t.same(idsOf((await from(NOW)).get(lane) ?? []), [])
})

eachDatabase(t, 'lanes of mail that was enqueued lately are listed by themselves', async (t, database) => {
  const id = (ms: number) => firstIdAt(ms)
  await enqueue(database, [
    { id: id(NOW - 60_000), to: 'a@old.example', dueAt: NOW - 60_000 },
    { id: id(NOW - 2_000), to: 'a@x.example', dueAt: NOW + 5 },
    { id: id(NOW - 1_000), to: 'b@x.example', dueAt: NOW },
    { id: id(NOW - 500), to: 'held@y.example' },
    { id: id(NOW - 400), to: 'claimed@z.example' },
  ])
  await database.write(async tx => {
    await setHeld(tx.db, { messageIds: [id(NOW - 500)] }, true)
    await claimEntries(tx.db, [id(NOW - 400)], NOW, 'run 1')
  })
  t.same(await listLanesOfNew(database.reader, NOW - 2_000), [{ lane: laneTo('x.example'), dueAt: NOW }])
})

eachDatabase(t, 'future and held messages and other destinations are not due', async (t, database) => {
  await enqueue(database, [
    { id: 'now', to: 'a@x.example' },
    { id: 'future', to: 'a@x.example', dueAt: NOW + 1 },
    { id: 'held', to: 'a@x.example' },
    { id: 'elsewhere', to: 'a@sub.x.example' },
  ])
  await database.write(tx => setHeld(tx.db, { messageIds: ['held'] }, true))
  t.same(await due(database, 'x.example'), ['now'])
})

eachDatabase(t, 'the next due time skips held and claimed messages', async (t, database) => {
  await enqueue(database, [
    { id: 'held', to: 'a@x.example', dueAt: NOW + 1 },
    { id: 'claimed', to: 'a@x.example', dueAt: NOW },
    { id: 'waiting', to: 'a@x.example', dueAt: NOW + 5 },
  ])
  await database.write(tx => setHeld(tx.db, { messageIds: ['held'] }, true))
  await database.write(tx => claimEntries(tx.db, ['claimed'], NOW + 2, 'run 1'))
  const next = async (destination: string, after: number) =>
    (await nextDueTimes(database.reader, [{ lane: laneTo(destination) }], after)).get(laneTo(destination))
  t.equal(await next('x.example', NOW), NOW + 5)
  t.equal(await next('x.example', NOW + 5), undefined)
  t.equal(await next('y.example', NOW), undefined)
})

eachDatabase(
  t,
  'several lanes are looked into at once, each with its own order and limit',
  async (t, database) => {
    const lanes = Array.from({ length: 5 }, (_, at) => `d${at}.example`)
    await enqueue(
      database,
      lanes.flatMap(to =>
        [3, 1, 2].map(late => ({ id: `${to} ${late}`, to: `a@${to}`, dueAt: NOW - 10 + late })),
      ),
    )
    await enqueue(database, [{ id: 'later', to: 'a@d3.example', dueAt: NOW + 7 }])
    const found = await selectDue(
      database.reader,
      lanes.map((to, at) => ({ lane: laneTo(to), limit: at })),
      NOW,
    )
    t.same(
      lanes.map(to => idsOf(found.get(laneTo(to)) ?? [])),
      lanes.map((to, at) => [1, 2, 3].slice(0, at).map(late => `${to} ${late}`)),
    )
    t.same(
      [
        ...(await nextDueTimes(
          database.reader,
          lanes.map(to => ({ lane: laneTo(to) })),
          NOW,
        )),
      ],
      [[laneTo('d3.example'), NOW + 7]],
    )
  },
)

eachDatabase(
  t,
  'claimed messages are neither due nor listed until their outcome is known',
  async (t, database) => {
    await enqueue(database, [{ id: 'a', to: 'a@x.example' }])
    await database.write(tx => claimEntries(tx.db, ['a'], NOW - 1, 'run 1'))
    t.same(await due(database, 'x.example'), [])
    t.same(await listLanes(database.reader), [])
    await database.write(tx => deferEntry(tx.db, 'a', NOW, false))
    t.same(await due(database, 'x.example'), ['a'])
    await database.write(tx => claimEntries(tx.db, ['a'], NOW + 300_000, 'run 1'))
    await database.write(tx => clearClaims(tx.db, ['a'], 'run 1'))
    t.same(await listLanes(database.reader), [{ lane: laneTo('x.example'), dueAt: NOW + 300_000 }])
  },
)

eachDatabase(t, 'consecutive crashes are counted until an outcome is recorded', async (t, database) => {
  await enqueue(database, [
    { id: 'a', to: 'a@x.example' },
    { id: 'own', to: 'own@x.example' },
    { id: 'waiting', to: 'b@x.example' },
  ])
  await database.write(tx => claimEntries(tx.db, ['own'], NOW + 300_000, 'run 3'))
  await database.write(tx => insertNode(tx.db, { id: 'run 3', name: 'one', roles: ROLES }, NOW, 1_000))
  for (const crashes of [0, 1]) {
    await database.write(tx => claimEntries(tx.db, ['a'], NOW + 300_000, `run ${crashes}`))
    t.same(await findOrphans(database.reader), [{ messageId: 'a', crashes }])
    await database.write(tx => requeueOrphans(tx.db, ['a'], NOW))
    t.same(await findOrphans(database.reader), [])
  }
  await database.write(tx => deferEntry(tx.db, 'a', NOW, false))
  await database.write(tx => claimEntries(tx.db, ['a'], NOW + 300_000, 'run 2'))
  t.same(await findOrphans(database.reader), [{ messageId: 'a', crashes: 0 }])
})

eachDatabase(
  t,
  'every lane with unheld messages is listed once, with its earliest due time',
  async (t, database) => {
    t.same(await listLanes(database.reader), [])
    await enqueue(database, [
      { id: 'a1', to: 'a@a.example', dueAt: NOW + 9 },
      { id: 'a2', to: 'a@a.example', dueAt: NOW + 3 },
      { id: 'b1', to: 'a@b.example', dueAt: NOW + 1 },
      { id: 'c1', to: 'a@c.example', dueAt: NOW },
      { id: 'd1', to: 'a@d.example', dueAt: NOW - 1 },
      { id: 'd2', to: 'a@d.example', dueAt: NOW + 1 },
    ])
    await database.write(tx => setHeld(tx.db, { destinations: ['c.example'] }, true))
    await database.write(tx => setHeld(tx.db, { messageIds: ['d1'] }, true))
    t.same(await listLanes(database.reader), [
      { lane: laneTo('a.example'), dueAt: NOW + 3 },
      { lane: laneTo('b.example'), dueAt: NOW + 1 },
      { lane: laneTo('d.example'), dueAt: NOW + 1 },
    ])
  },
)

eachDatabase(
  t,
  'claiming counts the attempt and sets the retry time; releasing reverts both',
  async (t, database) => {
    await enqueue(database, [
      { id: 'a', to: 'a@x.example' },
      { id: 'b', to: 'b@x.example' },
    ])
    await database.write(tx => claimEntries(tx.db, ['a'], NOW + 300_000, 'run 1'))
    t.match(await findEntries(database.reader, ['a']), [{ attempts: 1, nextAttemptAt: NOW + 300_000 }])
    t.match(await findEntries(database.reader, ['b']), [{ attempts: 0, nextAttemptAt: NOW }])
    await database.write(tx => releaseClaims(tx.db, ['a'], NOW + 9, 'run 2'))
    t.match(await findEntries(database.reader, ['a']), [{ attempts: 1 }], 'but not the claim of another run')
    await database.write(tx => releaseClaims(tx.db, ['a'], NOW + 1, 'run 1'))
    await database.write(tx => releaseClaims(tx.db, [], NOW + 1, 'run 1'))
    t.match(await findEntries(database.reader, ['a']), [{ attempts: 0, nextAttemptAt: NOW + 1 }])
  },
)

eachDatabase(t, 'deferring keeps that a server was offered the message', async (t, database) => {
  await enqueue(database, [{ id: 'a', to: 'a@x.example' }])
  for (const [wasOffered, remembered] of [
    [false, false],
    [true, true],
    [false, true],
  ] as const) {
    await database.write(tx => deferEntry(tx.db, 'a', NOW + 7, wasOffered))
    t.match(await findEntries(database.reader, ['a']), [{ nextAttemptAt: NOW + 7, wasOffered: remembered }])
  }
})

eachDatabase(t, 'removing entries keeps their messages', async (t, database) => {
  await enqueue(database, [
    { id: 'a', to: 'a@x.example' },
    { id: 'b', to: 'b@x.example' },
  ])
  const removed = await database.write(tx => removeEntries(tx.db, ['a', 'unknown']))
  t.same(idsOf(removed), ['a'], 'told as they were')
  await database.write(tx => removeEntries(tx.db, []))
  t.same(idsOf(await findEntries(database.reader, ['a', 'b'])), ['b'])
  t.equal(await statusOf(database, 'a'), 'sent')
})

eachDatabase(t, 'hundreds of messages are stored and enqueued at once', async (t, database) => {
  await enqueue(
    database,
    Array.from({ length: 345 }, (_, n) => ({ id: `m${n}`, to: `p${n}@x.example` })),
  )
  t.equal((await due(database, 'x.example', 1_000)).length, 345)
})

eachDatabase(t, 'message and content read back as they were written', async (t, database) => {
  const content = { ...CONTENT, replyTo: { name: 'Änn', address: 'ann@example.com' }, signingDomainId: 'd1' }
  await enqueue(database, [{ id: 'm1', to: 'bob@x.example' }], content)
  t.same(await findContents(database.reader, ['c1', 'unknown']), [content])
  t.match(await findMessage(database.reader, 'w1', 'm1'), {
    id: 'm1',
    contentId: 'c1',
    recipient: 'bob@x.example',
    status: 'sent',
    reason: null,
    isSandbox: false,
    createdAt: NOW,
    sentAt: NOW,
    deliveredAt: null,
  })
  t.equal(await findMessage(database.reader, 'w2', 'm1'), undefined, 'not for another workspace')
  t.same(await findMessages(database.reader, []), [])
  await database.write(tx =>
    insertMessages(tx.db, content, true, [{ id: 'm2', recipient: 'x', status: 'failed', reason: 'invalid' }]),
  )
  t.match(await findAnyMessage(database.reader, 'm2'), {
    status: 'failed',
    reason: 'invalid',
    isSandbox: true,
    sentAt: null,
  })
  t.equal(await findAnyMessage(database.reader, 'm3'), undefined)
})

eachDatabase(t, 'attempts are listed oldest first, with all details', async (t, database) => {
  await enqueue(database, [{ id: 'a', to: 'a@x.example' }])
  const attempt: Attempt = {
    messageId: 'a',
    number: 1,
    startedAt: NOW,
    finishedAt: NOW + 1,
    kind: 'deferred',
    summary: 'mx answered 451',
    replyCode: 451,
    status: '4.7.1',
    classification: { cause: 'transient', scope: 'source', permanence: 'transient', subtype: 'greylisted' },
    tried: [
      { host: 'mx.x.example', address: '192.0.2.1', port: 25, stage: 'rcpt', durationMs: 3, reused: false },
    ],
  }
  const second: Attempt = {
    ...attempt,
    number: 2,
    kind: 'delivered',
    replyCode: null,
    status: null,
    classification: null,
    tried: [],
  }
  await database.write(tx => insertAttempts(tx.db, [attempt, second]))
  await database.write(tx => insertAttempts(tx.db, []))
  t.same(await listAttempts(database.reader, 'a'), [attempt, second])
})

eachDatabase(t, 'the last thousand captured mails are kept, byte for byte', async (t, database) => {
  const mail = (n: number) => ({
    messageId: `m${n}`,
    capturedAt: NOW + n,
    envelopeSender: 'r1@bounce.example',
    recipient: 'a@x.example',
    subject: `Mail ${n}`,
    raw: Buffer.from([0, 13, 10, 255, n % 256]),
  })
  for (let start = 0; start < 1_010; start += 101)
    await database.write(tx =>
      insertCapturedMails(
        tx.db,
        Array.from({ length: 101 }, (_, n) => mail(start + n)),
      ),
    )
  await database.write(tx => insertCapturedMails(tx.db, []))
  const { items, total } = await listCapturedMails(database.reader, { limit: 2, offset: 1 })
  t.equal(total, 1_000)
  t.match(items, [{ messageId: 'm1008', size: 5, subject: 'Mail 1008' }, { messageId: 'm1007' }])
  t.equal(await findCapturedMail(database.reader, 'm9'), undefined, 'the oldest were dropped')
  const byMessage = await findCapturedMail(database.reader, 'm1009')
  t.same(Buffer.from(byMessage!.raw), Buffer.from([0, 13, 10, 255, 1_009 % 256]))
  t.match(await findCapturedMail(database.reader, String(byMessage!.id)), { messageId: 'm1009' })
  t.equal(await findCapturedMail(database.reader, '99999999'), undefined)
})

eachDatabase(
  t,
  'the operator holds, releases and retries by message, by destination or all at once',
  async (t, database) => {
    await enqueue(database, [
      { id: 'a', to: 'a@x.example', dueAt: NOW + 100 },
      { id: 'b', to: 'b@x.example', dueAt: NOW + 100 },
      { id: 'c', to: 'c@y.example', dueAt: NOW + 100 },
    ])
    t.equal(await database.write(tx => setHeld(tx.db, { destinations: ['x.example'] }, true)), 2)
    t.equal(await database.write(tx => setHeld(tx.db, {}, true)), 1, 'the others are held already')
    t.equal(await database.write(tx => setHeld(tx.db, { messageIds: ['a'] }, false)), 1)
    t.equal(await database.write(tx => retryNow(tx.db, {}, NOW)), 3)
    t.equal(await database.write(tx => retryNow(tx.db, {}, NOW)), 0)
    t.same(await due(database, 'x.example'), ['a'])
    t.match(await listEntries(database.reader, {}, 2), [
      { messageId: 'a', isHeld: false, recipient: 'a@x.example', lastSummary: null },
      { messageId: 'b', isHeld: true },
    ])
  },
)

eachDatabase(
  t,
  'the summary counts by destination and age, and says what its rows leave out',
  async (t, database) => {
    const at = (ms: number, limit: number) => summarize(database.reader, NOW + ms, [60_000, 3_600_000], limit)
    t.same(await at(0, 10), { rows: [], found: 0, total: 0, held: 0 })
    await enqueue(database, [
      { id: 'a', to: 'a@x.example' },
      { id: 'b', to: 'b@x.example' },
      { id: 'c', to: 'c@y.example' },
    ])
    await database.write(tx => setHeld(tx.db, { messageIds: ['b'] }, true))
    t.same((await at(30_000, 10)).rows, [
      { destination: 'x.example', held: 1, total: 2, byAge: [2, 0, 0] },
      { destination: 'y.example', held: 0, total: 1, byAge: [1, 0, 0] },
    ])
    const { rows, ...all } = await at(60_000, 1)
    t.match(rows, [{ byAge: [0, 2, 0] }])
    t.strictSame(all, { found: 2, total: 3, held: 1 })
    t.match(await at(3_600_000, 1), { rows: [{ byAge: [0, 0, 2] }] })
  },
)

eachDatabase(t, 'a deleted message becomes failed, with an event', async (t, database) => {
  await enqueue(database, [
    { id: 'a', to: 'a@x.example' },
    { id: 'b', to: 'b@y.example' },
  ])
  t.equal(await database.write(tx => deleteEntries(tx, { destinations: ['x.example'] }, NOW, true)), 1)
  t.equal(await database.write(tx => deleteEntries(tx, { destinations: ['x.example'] }, NOW, true)), 0)
  t.equal(await statusOf(database, 'a'), 'failed')
  t.equal(await statusOf(database, 'b'), 'sent')
  t.match(await readEventsAfter(database.reader, 0, ['email.failed'], 10), [
    { messageId: 'a', payload: { to: 'a@x.example', reason: /operator/ } },
  ])
})
