/** The queue manager: what is delivered when, and within which limits. */
import t from 'tap'
import { listAttempts } from '../../src/messages/attempt-store.js'
import { retryNow, setHeld } from '../../src/queue/operator/queue-admin-store.js'
import { findEntries } from '../../src/queue/queue-store.js'
import { insertSuppression } from '../../src/deliverability/suppressions/suppression-store.js'
import type { Database } from '../../src/db/database.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { readEventsAfter } from '../../src/events/store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase, sqliteFile } from '../support/db/database.js'
import { enqueue, letters, NOW, laneTo } from '../support/mailroom.js'
import { deferred, delivered } from '../support/outcomes.js'
import { openQueue, sqliteQueue, failing } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

const MINUTE_MS = 60_000
t.test('messages enqueued before the start are delivered', async t => {
  const { database, runner, handsOver, becomes, agent, settledCount } = await sqliteQueue(t, {
    script: () => delivered,
  })
  await enqueue(database, [...letters('x.example', 3, 'x'), ...letters('y.example', 2, 'y')])
  await runner.start()
  t.same((await handsOver(5)).sort(), ['x1', 'x2', 'x3', 'y1', 'y2'])
  for (const id of ['x1', 'x2', 'x3', 'y1', 'y2']) await becomes(id, 'delivered')
  t.same(await findEntries(database.reader, ['x1', 'x2', 'x3', 'y1', 'y2']), [])
  t.ok(settledCount() > 0, 'event consumers are woken')
  t.match(
    agent.jobs.find(({ messageId }) => messageId === 'x1'),
    {
      workspaceId: 'w1',
      recipient: 'x1@x.example',
      envelopeSender: 'bounce+x1@mail.example.net',
      attempt: 1,
      acceptedAt: NOW,
      content: { subject: 'Your order', from: { name: 'Shop', address: 'shop@example.com' } },
      signingKeys: [],
    },
  )
})

t.test('messages enqueued later are delivered immediately, or when they fall due', async t => {
  const { database, runner, handsOver, clock, becomes } = await sqliteQueue(t, { script: () => delivered })
  await runner.start()
  await enqueue(database, [{ id: 'a', to: 'a@x.example' }])
  runner.noteEnqueued(laneTo('x.example'), NOW)
  t.same(await handsOver(1), ['a'])
  await becomes('a', 'delivered')
  await enqueue(database, [{ id: 'b', to: 'b@x.example', dueAt: NOW + 60_000 }])
  runner.noteEnqueued(laneTo('x.example'), NOW + 60_000)
  await clock.advance(59_999)
  await comeToRest()
  t.same(await handsOver(1), ['a'])
  await clock.advance(1)
  t.same(await handsOver(2), ['a', 'b'])
})

t.test('messages that fell due while the machine slept are delivered soon after it wakes', async t => {
  const { database, runner, handsOver, clock } = await sqliteQueue(t, { script: () => delivered })
  await runner.start()
  const dueAt = NOW + 600 * MINUTE_MS
  await enqueue(database, [{ id: 'a', to: 'a@x.example', dueAt }])
  runner.noteEnqueued(laneTo('x.example'), dueAt)
  await comeToRest()
  clock.jump(599 * MINUTE_MS)
  t.same(await handsOver(0), [])
  clock.jump(MINUTE_MS)
  await clock.advance(MINUTE_MS)
  t.same(await handsOver(1), ['a'])
})

t.test('a destination never exceeds its connections, and freed slots are used', async t => {
  const { database, runner, handsOver, agent, haveAnswered, look } = await sqliteQueue(t, {
    script: () => 'wait',
    policy: { connectionsPerSite: 2 },
  })
  await haveAnswered('x.example')
  await enqueue(database, letters('x.example', 5))
  await look()
  t.same(await handsOver(2), ['m1', 'm2'])
  t.equal(runner.activeCount, 2)
  agent.finish('m2', delivered)
  t.same(await handsOver(3), ['m1', 'm2', 'm3'])
  t.equal(runner.activeCount, 2)
  for (const id of ['m1', 'm3']) agent.finish(id, delivered)
  t.same(await handsOver(5), ['m1', 'm2', 'm3', 'm4', 'm5'])
})

t.test('all destinations together never exceed the connections', async t => {
  const ids = ['a', 'b', 'c', 'd', 'e']
  const { database, handsOver, agent, clock, haveAnswered, look } = await sqliteQueue(t, {
    script: () => 'wait',
    policy: { connections: 4 },
  })
  await haveAnswered(...ids.map(id => `${id}.example`))
  await enqueue(
    database,
    ids.map(id => ({ id, to: `${id}@${id}.example` })),
  )
  await look()
  const first = await handsOver(3)
  t.equal(first.length, 3, 'one of four is kept for those that have not answered yet')
  await clock.advance(20_000)
  t.equal((await handsOver(3)).length, 3)
  agent.finish(first[0]!, delivered)
  t.equal((await handsOver(4)).length, 4)
  for (const id of agent.waitingIds) agent.finish(id, delivered)
  t.same((await handsOver(5)).sort(), ['a', 'b', 'c', 'd', 'e'])
})

t.test('a busy destination with much mail does not delay another', async t => {
  const { database, runner, handsOver, agent, haveAnswered, look } = await sqliteQueue(t, {
    script: job => (job.recipient.endsWith('@busy.example') ? 'wait' : delivered),
    policy: { connections: 6, connectionsPerSite: 4 },
  })
  await haveAnswered('busy.example')
  await enqueue(database, letters('busy.example', 200, 'busy'))
  await look()
  await handsOver(4)
  await enqueue(database, letters('quiet.example', 3, 'quiet'))
  runner.noteEnqueued(laneTo('quiet.example'), NOW)
  await handsOver(7)
  t.same(agent.ids.slice(4).sort(), ['quiet1', 'quiet2', 'quiet3'])
})

t.test('with few connections every destination is served in turn', async t => {
  const { database, runner, handsOver, agent } = await sqliteQueue(t, {
    script: () => 'wait',
    policy: { connections: 1, connectionsPerSite: 1 },
  })
  await enqueue(database, [...letters('a.example', 3, 'a'), ...letters('b.example', 3, 'b')])
  await runner.start()
  for (let count = 1; count <= 6; count += 1) {
    await handsOver(count)
    agent.finish(agent.ids.at(-1)!, delivered)
  }
  const order = agent.ids.map(id => id.charAt(0)).join('')
  t.match(order, /^(ab){3}$|^(ba){3}$/)
})

t.test('a deferred message is retried with growing delays until it is delivered', async t => {
  const { database, runner, handsOver, agent, clock, entryOf, becomes } = await sqliteQueue(t, {
    script: () => deferred,
  })
  await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
  await runner.start()
  const pauses: number[] = []
  for (let attempt = 1; attempt <= 4; attempt += 1) {
    await handsOver(attempt)
    await until('it is settled', async () => (await listAttempts(database.reader, 'm1')).length === attempt)
    const pause = (await entryOf('m1'))!.nextAttemptAt - clock.now()
    pauses.push(pause)
    await clock.advance(pause - 1)
    await comeToRest()
    t.equal(agent.jobs.length, attempt, 'not before its time')
    if (attempt === 4) agent.script = () => delivered
    await clock.advance(1)
  }
  await becomes('m1', 'delivered')
  t.same(
    agent.jobs.map(job => job.attempt),
    [1, 2, 3, 4, 5],
  )
  for (const [index, planned] of [5, 10, 20, 40].entries())
    t.ok(
      Math.abs(pauses[index]! / MINUTE_MS / planned - 1) <= 0.1,
      `pause ${index + 1} is about ${planned} minutes`,
    )
})

t.test("a server's wish to wait is granted, up to the usual ceiling", async t => {
  const waits: Record<string, number> = { short: 1_000, long: 30 * MINUTE_MS, endless: 1_000 * MINUTE_MS }
  const {
    database,
    runner,
    handsOver,
    entryOf,
    becomes: _,
    settledCount,
  } = await sqliteQueue(t, {
    script: job => ({ ...deferred, retryAfterMs: waits[job.messageId]! }),
  })
  await enqueue(
    database,
    Object.keys(waits).map(id => ({ id, to: `${id}@x.example` })),
  )
  await runner.start()
  await handsOver(3)
  await until('all are settled', () => settledCount() === 3)
  const minutes = async (id: string) => ((await entryOf(id))!.nextAttemptAt - NOW) / MINUTE_MS
  t.ok(Math.abs((await minutes('short')) - 5) <= 0.5, 'never sooner than planned')
  t.equal(await minutes('long'), 30)
  t.equal(await minutes('endless'), 60)
})

t.test('a recipient suppressed after acceptance is not mailed', async t => {
  const { database, runner, handsOver, becomes, agent, entryOf } = await sqliteQueue(t, {
    script: () => delivered,
  })
  await enqueue(database, [
    { id: 'ann', to: 'Ann@x.example' },
    { id: 'bob', to: 'bob@x.example' },
    { id: 'cyd', to: 'cyd@gone.example' },
  ])
  for (const email of ['ann@x.example', '@gone.example'])
    await database.write(tx =>
      insertSuppression(tx.db, {
        workspaceId: 'w1',
        email,
        reason: 'manual',
        scope: 'all',
        sourceMessageId: null,
        createdAt: NOW,
      }),
    )
  await runner.start()
  await handsOver(1)
  for (const id of ['ann', 'cyd']) {
    await becomes(id, 'suppressed')
    t.equal(await entryOf(id), undefined)
  }
  t.same(agent.ids, ['bob'])
  const told = await readEventsAfter(database.reader, 0, ['email.suppressed'], 10)
  t.same(told.map(event => event.messageId).sort(), ['ann', 'cyd'])
})

t.test('a delivery that outlasts its retry time is not started twice', async t => {
  const database = await sqliteDatabase(t)
  let writes = 0
  const counting: Database = {
    ...failing(database, () => false),
    write: work => {
      writes += 1
      return database.write(work)
    },
  }
  const { runner, handsOver, agent, clock, becomes } = openQueue(t, counting, { script: () => 'wait' })
  await enqueue(database, letters('x.example', 1))
  await runner.start()
  await handsOver(1)
  await clock.advance(60 * MINUTE_MS)
  await comeToRest()
  t.same(agent.ids, ['m1'])
  t.ok(writes < 10, `${writes} transactions while it waited`)
  agent.finish('m1', delivered)
  await becomes('m1', 'delivered')
})

t.test("an operator's retry does not send a second copy of what is under way", async t => {
  const { database, runner, handsOver, agent, becomes, haveAnswered, look } = await sqliteQueue(t, {
    script: () => 'wait',
  })
  await haveAnswered('x.example')
  await enqueue(database, [
    { id: 'm1', to: 'm1@x.example' },
    { id: 'later', to: 'later@x.example', dueAt: NOW + MINUTE_MS },
  ])
  await look()
  await handsOver(1)
  await database.write(tx => retryNow(tx.db, {}, NOW))
  runner.noteEnqueued(laneTo('x.example'), NOW)
  t.same(await handsOver(2), ['m1', 'later'])
  agent.finish('m1', delivered)
  await becomes('m1', 'delivered')
  t.same(agent.ids, ['m1', 'later'])
})

t.test('a slow delivery delays neither a deferred nor a waiting message', async t => {
  const { database, runner, handsOver, agent, clock, entryOf, settledCount } = await sqliteQueue(t, {
    script: job => (job.messageId === 'slow' ? 'wait' : deferred),
  })
  await enqueue(database, [
    { id: 'slow', to: 'slow@x.example' },
    { id: 'put off', to: 'b@x.example' },
  ])
  await runner.start()
  await handsOver(2)
  await until('it is settled', () => settledCount() === 1)
  await clock.advance((await entryOf('put off'))!.nextAttemptAt - NOW)
  t.same((await handsOver(3))[2], 'put off')
  agent.finish('slow', delivered)
})

t.test('held messages are delivered soon after another process releases them', async t => {
  const file = sqliteFile(t)
  const database = await sqliteDatabase(t, file)
  await enqueue(database, letters('x.example', 1))
  await database.write(tx => setHeld(tx.db, {}, true))
  const { runner, handsOver, agent, clock } = openQueue(t, database, { script: () => delivered })
  await runner.start()
  await clock.advance(60 * MINUTE_MS)
  t.same(agent.ids, [])
  const commandLine = await openSqlite({ file, clock: new FakeClock() })
  await commandLine.write(tx => setHeld(tx.db, {}, false))
  await commandLine[Symbol.asyncDispose]()
  await clock.advance(1_000)
  t.same(await handsOver(1), ['m1'])
})
