/** The wall clock is set while the queue runs: ages and back-offs do not change, due times are corrected. */
import t from 'tap'
import { ClockSteps } from '../../src/queue/clock-changes.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase, eachDatabase } from '../support/db/database.js'
import { enqueue, laneTo, letters, NOW } from '../support/mailroom.js'
import { deferred, delivered } from '../support/outcomes.js'
import { openQueue, sqliteQueue } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'
import { correctDueTime, selectWaiting, type WaitingPage } from '../../src/queue/queue-store.js'
import { setHeld } from '../../src/queue/operator/queue-admin-store.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

t.test('a deferred message is retried after its delay although the clock was set back', async t => {
  const { database, runner, handsOver, clock, agent, settledCount } = await sqliteQueue(t, {
    script: () => deferred,
  })
  await enqueue(database, letters('x.example', 1))
  await runner.start()
  await handsOver(1)
  await until('it is settled', () => settledCount() === 1)
  clock.jump(-2 * HOUR_MS)
  await clock.advance(1_000)
  await comeToRest()
  agent.script = () => delivered
  await clock.advance(6 * MINUTE_MS)
  t.same(await handsOver(2), ['m1', 'm1'])
})

t.test(
  'after the clock was set back, queued mail is sent at once and scheduled mail at its time',
  async t => {
    const { database, runner, handsOver, clock } = await sqliteQueue(t, { script: () => delivered })
    await runner.start()
    clock.jump(2 * HOUR_MS)
    await clock.advance(1_000)
    const ahead = NOW + 2 * HOUR_MS
    await database.write(async tx => {
      await tx.db.updateTable('queue').set({ enqueued_at: ahead }).execute()
    })
    await enqueue(database, [{ id: 'now', to: 'a@x.example', dueAt: ahead + 2_000 }])
    await enqueue(database, [{ id: 'at noon', to: 'b@x.example', dueAt: NOW + HOUR_MS }])
    await database.write(async tx => {
      await tx.db
        .updateTable('queue')
        .set({ enqueued_at: ahead + 2_000 })
        .where('message_id', '=', 'now')
        .execute()
      await tx.db.updateTable('messages').set({ status: 'scheduled' }).where('id', '=', 'at noon').execute()
    })
    clock.jump(-2 * HOUR_MS)
    runner.noteEnqueued(laneTo('x.example'), NOW + HOUR_MS)
    await clock.advance(1_000)
    t.same(await handsOver(1), ['now'])
    await clock.advance(HOUR_MS)
    t.same(await handsOver(2), ['now', 'at noon'])
  },
)

t.test('the event log reveals a clock that was set back while the server was down', async t => {
  const database = await sqliteDatabase(t)
  const before = openQueue(t, database, { script: () => deferred })
  before.clock.jump(2 * HOUR_MS)
  await enqueue(database, [...letters('x.example', 1, 'put off'), { id: 'gone', to: 'gone@y.example' }])
  before.agent.script = job => (job.messageId === 'gone' ? delivered : deferred)
  await before.runner.start()
  await until('both are settled', () => before.settledCount() === 2)
  await before.runner.stop(0)
  const after = openQueue(t, database, { script: () => delivered })
  await after.runner.start()
  await comeToRest()
  await after.clock.advance(6 * MINUTE_MS)
  t.same(await after.handsOver(1), ['put off1'])
})

t.test('setting the clock forward by a year expires no message', async t => {
  const { database, runner, handsOver, clock, settledCount, statusOf } = await sqliteQueue(t, {
    script: () => deferred,
  })
  await enqueue(database, letters('x.example', 1))
  await runner.start()
  await handsOver(1)
  await until('it is settled', () => settledCount() === 1)
  clock.jump(365 * DAY_MS)
  await clock.advance(1_000)
  await handsOver(2)
  await until('it is settled again', () => settledCount() === 2)
  t.equal(await statusOf('m1'), 'sent')
  for (let hours = 0; hours < 80 && (await statusOf('m1')) === 'sent'; hours += 1) {
    await clock.advance(HOUR_MS)
    await comeToRest()
  }
  t.equal(await statusOf('m1'), 'bounced', 'after its three days')
})

t.test(
  'mail deferred while the clock was ahead for less than a second is retried after its delay',
  async t => {
    const { database, runner, handsOver, clock, agent, settledCount } = await sqliteQueue(t, {
      script: () => deferred,
    })
    await runner.start()
    clock.jump(DAY_MS)
    await enqueue(database, letters('x.example', 1))
    runner.noteEnqueued(laneTo('x.example'), NOW)
    await handsOver(1)
    await until('it is settled', () => settledCount() === 1)
    clock.jump(-DAY_MS)
    await clock.advance(1_000)
    await comeToRest()
    agent.script = () => delivered
    await clock.advance(6 * MINUTE_MS)
    t.same(await handsOver(2), ['m1', 'm1'])
  },
)

t.test('steps since a moment are summed, and drift is not a step', async t => {
  const clock = new FakeClock(1_000_000)
  const steps = new ClockSteps(clock)
  await clock.advance(60_000)
  clock.jump(2_000)
  t.equal(steps.takeStep(), 0)
  const early = clock.now()
  clock.jump(HOUR_MS)
  t.equal(steps.since(early), HOUR_MS)
  t.equal(steps.takeStep(), HOUR_MS)
  t.equal(steps.takeStep(), 0)
  await clock.advance(1)
  t.equal(steps.since(clock.now()), 0)
  clock.jump(-HOUR_MS)
  t.equal(steps.since(early), 0)
  t.equal(steps.takeStep(), -HOUR_MS)
})

t.test('a clock that was set ahead and right again was set back', t => {
  const clock = new FakeClock(1_000_000)
  const steps = new ClockSteps(clock)
  clock.jump(DAY_MS)
  steps.notice()
  clock.jump(-DAY_MS)
  t.equal(steps.takeStep(), -DAY_MS)
  t.equal(steps.takeStep(), 0)
  t.end()
})

const BEGINNING = { dueAt: 0, messageId: '' }

eachDatabase(t, 'paging through a lane returns each waiting row once, soonest first', async (t, database) => {
  await enqueue(database, [
    { id: 'b', to: 'b@x.example', dueAt: NOW },
    { id: 'a', to: 'a@x.example', dueAt: NOW },
    { id: 'late', to: 'c@x.example', dueAt: NOW + 9 },
    { id: 'held', to: 'd@x.example', dueAt: NOW },
    { id: 'elsewhere', to: 'a@y.example', dueAt: NOW },
  ])
  await database.write(tx => setHeld(tx.db, { messageIds: ['held'] }, true))
  const seen: string[] = []
  let after: WaitingPage['after'] = BEGINNING
  for (;;) {
    const [row, ...others] = await selectWaiting(database.reader, {
      lane: laneTo('x.example'),
      after,
      limit: 1,
    })
    t.same(others, [], 'no more than asked for')
    if (!row) break
    t.match(row, { attempts: 0, enqueuedAt: NOW, isScheduled: false })
    seen.push(row.messageId)
    after = { dueAt: row.nextAttemptAt, messageId: row.messageId }
  }
  t.same(seen, ['a', 'b', 'late'])
})

eachDatabase(t, 'only the given rows get the corrected due time', async (t, database) => {
  await enqueue(database, [
    { id: 'far', to: 'a@x.example', dueAt: NOW + 7_200_000 },
    { id: 'near', to: 'b@x.example', dueAt: NOW + 1 },
  ])
  await database.write(tx => correctDueTime(tx.db, ['far'], NOW))
  const rows = await selectWaiting(database.reader, {
    lane: laneTo('x.example'),
    after: BEGINNING,
    limit: 10,
  })
  t.same(
    rows.map(({ messageId, nextAttemptAt }) => [messageId, nextAttemptAt]),
    [
      ['far', NOW],
      ['near', NOW + 1],
    ],
  )
})
