/** Single mails that are claimed in the transaction that accepts them. */
import t from 'tap'
import type { Database } from '../../src/db/database.js'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { findEntries, laneOf, type NewQueueEntry } from '../../src/queue/queue-store.js'
import type { QueueManager } from '../../src/queue/queue-manager.js'
import { sqliteDatabase } from '../support/db/database.js'
import { enqueue, letters, NOW, type Letter } from '../support/mailroom.js'
import { delivered } from '../support/outcomes.js'
import { failing, losingAnswers, openQueue } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

/** Counts the writes to a database. */
function counting(database: Database) {
  const counted = { writes: 0 }
  const write: Database['write'] = (work, options) => {
    counted.writes += 1
    return database.write(work, options)
  }
  return { counted, database: { ...failing(database, () => false), write } }
}

/** As message intake does. @returns ids of those that were claimed */
async function accept(
  { runner }: { readonly runner: QueueManager },
  database: Database,
  sent: readonly Letter[],
  change: (entry: NewQueueEntry) => NewQueueEntry = entry => entry,
): Promise<string[]> {
  const stored = await enqueue(database, sent, {}, (tx, entries) =>
    runner.claimAccepted(tx, entries.map(change)),
  )
  const claimed: string[] = []
  for (const entry of stored)
    if (entry.claim) claimed.push(entry.messageId)
    else runner.noteEnqueued(laneOf(entry), entry.nextAttemptAt)
  return claimed
}

async function untilGone(database: Database, ids: readonly string[]): Promise<void> {
  await until('all are recorded', async () => (await findEntries(database.reader, ids)).length === 0)
}

t.test('a single mail to a site with a free slot is offered with no commit after its acceptance', async t => {
  const { counted, database } = counting(await sqliteDatabase(t))
  const seen: unknown[] = []
  const queue = openQueue(t, database, {
    script: async job => {
      const [entry] = await findEntries(database.reader, [job.messageId])
      seen.push({ writes: counted.writes, attempts: entry?.attempts, job })
      return delivered
    },
  })
  await queue.haveAnswered('x.example')
  counted.writes = 0
  t.same(await accept(queue, database, letters('x.example', 1)), ['m1'])
  await untilGone(database, ['m1'])
  t.match(seen, [
    {
      writes: 1,
      attempts: 1,
      job: { messageId: 'm1', recipient: 'm1@x.example', attempt: 1, acceptedAt: NOW, dueAt: NOW },
    },
  ])
  t.equal(await queue.statusOf('m1'), 'delivered')
})

t.test(
  'mail that is accepted together starts up to the limits of its site, the rest as slots are freed',
  async t => {
    const database = await sqliteDatabase(t)
    const queue = openQueue(t, database, { script: () => 'wait', policy: { connectionsPerSite: 3 } })
    await queue.haveAnswered('x.example')
    t.same(await accept(queue, database, letters('x.example', 5)), ['m1', 'm2', 'm3'])
    t.same(await queue.handsOver(3), ['m1', 'm2', 'm3'])
    queue.agent.finish('m2', delivered)
    t.same(await queue.handsOver(4), ['m1', 'm2', 'm3', 'm4'])
    for (const id of ['m1', 'm3', 'm4']) queue.agent.finish(id, delivered)
    t.same(await queue.handsOver(5), ['m1', 'm2', 'm3', 'm4', 'm5'])
  },
)

t.test('all connections together are never exceeded', async t => {
  const database = await sqliteDatabase(t)
  const queue = openQueue(t, database, { script: () => 'wait', policy: { connections: 4 } })
  await queue.haveAnswered('x.example', 'y.example')
  const claimed = [
    ...(await accept(queue, database, letters('x.example', 3, 'x'))),
    ...(await accept(queue, database, letters('y.example', 3, 'y'))),
  ]
  t.same(claimed, ['x1', 'x2', 'x3'], 'one of four is kept for those that have not answered yet')
  t.same(await queue.handsOver(3), claimed)
})

t.test('mail that others wait before, or that is not due, single and small, is queued', async t => {
  const database = await sqliteDatabase(t)
  const queue = openQueue(t, database, { script: () => 'wait', policy: { connectionsPerSite: 1 } })
  t.same(await accept(queue, database, letters('unknown.example', 1, 'unknown')), [])
  await queue.haveAnswered('x.example', 'y.example')
  const later = { id: 'later', to: 'later@y.example', dueAt: NOW + 60_000 }
  t.same(await accept(queue, database, [later]), [])
  const bulk = (entry: NewQueueEntry) => ({ ...entry, priority: PRIORITIES.campaign })
  t.same(await accept(queue, database, letters('y.example', 1, 'bulk'), bulk), [])
  t.same(
    await accept(queue, database, letters('y.example', 1, 'big'), one => ({ ...one, isLarge: true })),
    [],
  )
  t.same(await accept(queue, database, letters('x.example', 2, 'first')), ['first1'])
  await queue.handsOver(1)
  queue.agent.script = () => delivered
  await database.write(async tx => {
    const [entry] = await findEntries(tx.db, ['first2'])
    t.match(entry, { attempts: 0 }, 'it waits for the slot of the first')
    const next = { ...entry, messageId: 'next', isLarge: false } as NewQueueEntry
    queue.agent.finish('first1', delivered)
    t.notOk(queue.runner.claimAccepted(tx, [next])[0]?.claim, 'what waits at the site goes first')
  })
})

t.test('a transaction that fails gives the slot back', async t => {
  const database = await sqliteDatabase(t)
  const queue = openQueue(t, database, { script: () => delivered, policy: { connectionsPerSite: 1 } })
  await queue.haveAnswered('x.example')
  const failed = enqueue(database, letters('x.example', 1, 'failed'), {}, (tx, entries) => {
    t.ok(queue.runner.claimAccepted(tx, entries)[0]?.claim)
    throw new Error('the disk is full')
  })
  await t.rejects(failed, { message: 'the disk is full' })
  t.same(await accept(queue, database, letters('x.example', 1)), ['m1'])
  t.same(await queue.handsOver(1), ['m1'])
})

t.test('mail whose commit was not answered is delivered once', async t => {
  const database = await sqliteDatabase(t)
  let isLosing = false
  const losing = losingAnswers(database, () => isLosing)
  const queue = openQueue(t, losing, { script: () => delivered })
  await queue.haveAnswered('x.example')
  isLosing = true
  await t.rejects(accept(queue, losing, letters('x.example', 1)), { code: 'unavailable' })
  isLosing = false
  t.same(await queue.handsOver(1), ['m1'])
  await untilGone(database, ['m1'])
  await queue.clock.advance(120_000)
  await comeToRest()
  t.same(queue.agent.ids, ['m1'])
})

t.test('claims that are being committed are not taken for lost ones', async t => {
  const database = await sqliteDatabase(t)
  let commit = () => {}
  const slow: Database = {
    ...failing(database, () => false),
    // Rows are seen before the caller hears of the commit.
    async write(work, options) {
      const done: (() => void)[] = []
      const result = await database.write(
        tx => work({ ...tx, changed: topic => tx.changed(topic), onCommit: one => done.push(one) }),
        options,
      )
      await new Promise<void>(resolve => (commit = resolve))
      for (const callback of done) callback()
      return result
    },
  }
  const queue = openQueue(t, database, { script: () => 'wait' })
  await queue.haveAnswered('x.example')
  const accepting = accept(queue, slow, letters('x.example', 1))
  await until('it is claimed', async () => (await findEntries(database.reader, ['m1']))[0]?.attempts === 1)
  await queue.clock.advance(120_000)
  await comeToRest()
  t.same(queue.agent.ids, [])
  commit()
  t.same(await accepting, ['m1'])
  t.same(await queue.handsOver(1), ['m1'])
  t.equal((await queue.entryOf('m1'))?.attempts, 1)
})

t.test('mail that was accepted and not yet offered at a crash is delivered at the next start', async t => {
  const database = await sqliteDatabase(t)
  const crashed = openQueue(t, database, { script: () => 'wait' })
  await crashed.haveAnswered('x.example')
  await accept(crashed, database, letters('x.example', 1))
  const next = openQueue(t, database, { script: () => delivered })
  await next.runner.start()
  t.same(await next.handsOver(1), ['m1'])
})

t.test('mail that is accepted while the queue stops is due at the next start', async t => {
  const database = await sqliteDatabase(t)
  const queue = openQueue(t, database, { script: () => 'wait' })
  await queue.haveAnswered('x.example')
  let stopped: Promise<void> | undefined
  await enqueue(database, letters('x.example', 1), {}, (tx, entries) => {
    const stored = queue.runner.claimAccepted(tx, entries)
    t.ok(stored[0]?.claim)
    stopped = queue.runner.stop(0)
    return stored
  })
  await stopped
  t.same(queue.agent.ids, [])
  t.match(await queue.entryOf('m1'), { attempts: 0, nextAttemptAt: NOW })
  t.same(await accept(queue, database, letters('x.example', 1, 'later')), [])
  const next = openQueue(t, database, { script: () => delivered })
  await next.runner.start()
  t.same((await next.handsOver(2)).sort(), ['later1', 'm1'])
})
