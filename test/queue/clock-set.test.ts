/** The wall clock is set while the queue runs: ages and rests are not changed by that, due times recover. */
import t from 'tap'
import { ClockSteps } from '../../src/queue/clock-changes.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase } from '../support/db/database.js'
import { enqueue, laneTo, letters, NOW } from '../support/mailroom.js'
import { deferred, delivered } from '../support/outcomes.js'
import { openQueue, sqliteQueue } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

t.test('after the clock was set back, what was put off is tried when its delay has passed', async t => {
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
  'mail accepted before the clock was set back leaves at once, scheduled mail at the time named',
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

t.test('a clock that was set back while the server was down is noticed by the event log', async t => {
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

t.test(
  'a clock that is set forward by a year expires nothing, and by itself nothing is given up sooner',
  async t => {
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
  },
)

t.test('steps since a moment are summed, drift is no step', async t => {
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
