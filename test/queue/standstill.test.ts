/** A stalled queue, as monitoring reports it. */
import t from 'tap'
import { sqliteDatabase } from '../support/db/database.js'
import { enqueue, letters, NOW } from '../support/mailroom.js'
import { deferred, delivered } from '../support/outcomes.js'
import { openQueue } from '../support/queue.js'
import { comeToRest } from '../support/turns.js'

const MINUTE_MS = 60_000

t.test('a queue in which no attempt ends is stalled until the next outcome', async t => {
  const database = await sqliteDatabase(t)
  // A site that never answered has one connection: the second message waits for it.
  await enqueue(database, letters('x.example', 2, 'm'))
  const { runner, agent, clock, handsOver } = openQueue(t, database, { script: () => 'wait' })
  await runner.start()
  await handsOver(1)
  t.equal(runner.standstillMs, 0)
  await clock.advance(30 * MINUTE_MS)
  t.ok(runner.standstillMs >= 29 * MINUTE_MS, String(runner.standstillMs))
  const [first] = agent.waitingIds
  agent.script = () => delivered
  agent.finish(first ?? '', delivered)
  await comeToRest()
  t.equal(runner.standstillMs, 0)
})

t.test('one site at which nothing moves is a standstill, however much moves elsewhere', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [...letters('x.example', 2, 'm'), ...letters('y.example', 40, 'n')])
  const { runner, clock, handsOver } = openQueue(t, database, {
    script: ({ recipient }) => (recipient.endsWith('@x.example') ? 'wait' : deferred),
  })
  await runner.start()
  await handsOver(41)
  for (let minute = 0; minute < 30; minute += 1) {
    await clock.advance(MINUTE_MS)
    await comeToRest()
  }
  t.ok(runner.standstillMs >= 29 * MINUTE_MS, String(runner.standstillMs))
})

t.test('a queue that waits for its next attempts is not stalled', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [{ id: 'm1', to: 'a@x.example', dueAt: NOW }])
  const { runner, clock, handsOver } = openQueue(t, database, { script: () => deferred })
  await runner.start()
  await handsOver(1)
  await clock.advance(2 * MINUTE_MS)
  t.equal(runner.standstillMs, 0)
})
