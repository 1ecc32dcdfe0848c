/** The reserve of a quick site: claimed messages that wait in memory for a delivery to end. */
import t, { type Test } from 'tap'
import type { Outcome } from '../../src/mail/outcome.js'
import type { DeliveryJob } from '../../src/queue/delivery-agent.js'
import { sqliteDatabase } from '../support/db/database.js'
import { enqueue, letters, NOW } from '../support/mailroom.js'
import { deferred, delivered } from '../support/outcomes.js'
import { openQueue } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

const QUICK = 30

/** A site with four slots that has taken 30 messages in no time, and then holds on to what it is given. */
async function quickSite(t: Test) {
  const database = await sqliteDatabase(t)
  const isFirst = ({ messageId }: DeliveryJob) => messageId.startsWith('quick')
  const queue = openQueue(t, database, {
    script: job => (isFirst(job) ? delivered : 'wait'),
    policy: { connectionsPerSite: 4 },
  })
  await enqueue(database, letters('x.example', QUICK, 'quick'))
  await enqueue(
    database,
    letters('x.example', 20, 'later').map(letter => ({ ...letter, dueAt: NOW + 1_000 })),
  )
  await queue.runner.start()
  await queue.becomes(`quick${QUICK}`, 'delivered')
  await queue.clock.advance(1_000)
  await queue.handsOver(QUICK + 4)
  const attempts = async () =>
    Promise.all(
      Array.from({ length: 20 }, async (_, n) => (await queue.entryOf(`later${n + 1}`))?.attempts ?? -1),
    )
  return { ...queue, attempts }
}

const count = (values: readonly number[], wanted: number) => values.filter(value => value === wanted).length

t.test('a fast site prefetches as many messages as it delivers', async t => {
  const { agent, handsOver, attempts } = await quickSite(t)
  t.equal(count(await attempts(), 1), 8)
  agent.finish(agent.waitingIds[0]!, delivered)
  // In the order of their ids: the fifth of the twenty.
  t.equal((await handsOver(QUICK + 5)).at(-1), 'later13')
})

t.test('prefetched messages of a site that backs off are released, attempts not counted', async t => {
  const { agent, handsOver, attempts } = await quickSite(t)
  const slowDown: Outcome = {
    ...deferred,
    cause: 'reputation',
    scope: 'source',
    reply: { code: 421, text: 'slow down' },
    retryAfterMs: 600_000,
  }
  agent.finish(agent.waitingIds[0]!, slowDown)
  await until('the reserve is handed back', async () => count(await attempts(), 1) === 4)
  await comeToRest()
  t.equal((await handsOver(QUICK + 4)).length, QUICK + 4, 'nothing more is begun')
})

t.test('stopping releases prefetched messages, due immediately', async t => {
  const { runner, attempts, entryOf, agent } = await quickSite(t)
  for (const id of agent.waitingIds) agent.finish(id, delivered)
  await runner.stop(0)
  const after = await attempts()
  t.equal(count(after, 1), 0)
  t.equal((await entryOf('later20'))?.nextAttemptAt, NOW + 1_000)
})
