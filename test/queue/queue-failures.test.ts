/** The queue manager when things end or break: crashes, stopping, failing agents, a full disk. */
import { sql } from 'kysely'
import t from 'tap'
import type { Database } from '../../src/db/database.js'
import { listAttempts } from '../../src/messages/attempt-store.js'
import type { Deferred } from '../../src/mail/outcome.js'
import type { QueueManager } from '../../src/queue/queue-manager.js'
import { findEntries } from '../../src/queue/queue-store.js'
import { sqliteDatabase } from '../support/db/database.js'
import { enqueue, letters, NOW, laneTo } from '../support/mailroom.js'
import { bounced, deferred, delivered } from '../support/outcomes.js'
import { openQueue, sqliteQueue, failing, losingAnswers } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

const MINUTE_MS = 60_000
t.test('the claim and the retry time are committed before the agent is called', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
  const seen: unknown[] = []
  const { runner, handsOver } = openQueue(t, database, {
    script: async job => {
      seen.push(...(await findEntries(database.reader, [job.messageId])))
      return delivered
    },
  })
  await runner.start()
  await handsOver(1)
  t.match(seen, [{ attempts: 1 }])
  const { nextAttemptAt } = seen[0] as { nextAttemptAt: number }
  t.ok(nextAttemptAt >= NOW + 4.5 * MINUTE_MS && nextAttemptAt <= NOW + 5.5 * MINUTE_MS)
})

t.test('a claim whose transaction is retried loses no message and no slot', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(
    database,
    ['m1', 'm2', 'm3'].map(id => ({ id, to: `${id}@x.example` })),
  )
  const retrying: Database = {
    ...failing(database, () => false),
    async write(work, options) {
      const retry = new Error('retry')
      await database
        .write(async tx => {
          await work(tx)
          throw retry
        }, options)
        .catch((error: unknown) => {
          if (error !== retry) throw error
        })
      return database.write(work, options)
    },
  }
  const { runner, handsOver } = openQueue(t, retrying, { script: () => delivered })
  await runner.start()
  await handsOver(3)
  await until(
    'all are delivered',
    async () => (await findEntries(database.reader, ['m1', 'm2', 'm3'])).length === 0,
  )
  t.equal(runner.activeCount, 0)
})

t.test('after a crash claimed messages are retried immediately at the next start', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [
    { id: 'm1', to: 'm1@x.example' },
    { id: 'later', to: 'later@y.example', dueAt: NOW + 60 * MINUTE_MS },
  ])
  const crashed = openQueue(t, database, { script: () => 'wait' })
  await crashed.runner.start()
  await crashed.handsOver(1)
  const next = openQueue(t, database, { script: () => delivered })
  await next.runner.start()
  t.same(await next.handsOver(1), ['m1'])
  t.equal(next.agent.jobs[0]?.attempt, 2)
})

t.test('a message claimed at consecutive crashes backs off until an attempt ends', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
  const waits: number[] = []
  const startAndCrash = async () => {
    const crashing = openQueue(t, database, { script: () => 'wait' })
    await crashing.runner.start()
    const waitMs = (await crashing.entryOf('m1'))!.nextAttemptAt - crashing.clock.now()
    await crashing.clock.advance(waitMs)
    await crashing.handsOver(1)
    return waitMs
  }
  await startAndCrash()
  for (let crash = 1; crash <= 5; crash += 1) waits.push(await startAndCrash())
  t.same(waits.slice(0, 2), [0, 0])
  for (const [index, planned] of [5, 10, 20].entries())
    t.ok(Math.abs(waits[index + 2]! / 1_000 / planned - 1) <= 0.1, `crash ${index + 3}: about ${planned} s`)
  const calm = openQueue(t, database, { script: () => deferred })
  await calm.runner.start()
  await calm.clock.advance((await calm.entryOf('m1'))!.nextAttemptAt - NOW)
  await until('it is deferred', () => calm.settledCount() === 1)
  await calm.runner.stop(0)
  calm.agent.script = () => 'wait'
  const dueAt = (await calm.entryOf('m1'))!.nextAttemptAt
  const crashedAgain = openQueue(t, database, { script: () => 'wait' })
  await crashedAgain.runner.start()
  await crashedAgain.clock.advance(dueAt - NOW)
  await crashedAgain.handsOver(1)
  const last = openQueue(t, database, { script: () => delivered })
  await last.runner.start()
  t.same(await last.handsOver(1), ['m1'], 'one crash after a clean end')
})

t.test('a message without a reply at the final exit keeps its retry time', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
  const left = openQueue(t, database, { script: () => 'wait' })
  await left.runner.start()
  await left.handsOver(1)
  await left.runner.clearActiveClaims()
  const next = openQueue(t, database, { script: () => delivered })
  await next.runner.start()
  await comeToRest()
  t.same(next.agent.ids, [])
  await next.clock.advance((await next.entryOf('m1'))!.nextAttemptAt - NOW)
  t.same(await next.handsOver(1), ['m1'])
})

t.test('stopping starts no delivery and waits for those in progress', async t => {
  const { database, runner, handsOver, agent, statusOf } = await sqliteQueue(t, {
    script: () => 'wait',
    policy: { connectionsPerSite: 1 },
  })
  await enqueue(database, letters('x.example', 2))
  await runner.start()
  await handsOver(1)
  let isStopped = false
  const stopped = runner.stop(30_000).then(() => (isStopped = true))
  await comeToRest()
  t.equal(isStopped, false)
  t.equal(agent.isClosed, false)
  agent.finish('m1', delivered)
  await stopped
  t.equal(await statusOf('m1'), 'delivered')
  t.same(agent.ids, ['m1'])
  t.equal(agent.isClosed, true)
  runner.noteEnqueued(laneTo('x.example'), NOW)
  await comeToRest()
  t.same(agent.ids, ['m1'], 'a stopped queue stays stopped')
})

t.test('after the grace period deliveries are aborted and due immediately', async t => {
  const { database, runner, handsOver, clock, entryOf, statusOf, haveAnswered, look } = await sqliteQueue(t, {
    script: () => 'wait',
  })
  await haveAnswered('x.example')
  await enqueue(database, letters('x.example', 2))
  await look()
  await handsOver(2)
  const stopped = runner.stop(30_000)
  await clock.advance(29_999)
  t.equal(runner.activeCount, 2)
  await clock.advance(1)
  await stopped
  for (const id of ['m1', 'm2']) {
    t.equal(await statusOf(id), 'sent')
    t.match(await entryOf(id), { attempts: 1, nextAttemptAt: clock.now() })
  }
})

t.test('messages claimed during a stop are released', async t => {
  const late: { runner?: QueueManager } = {}
  let stopped: Promise<void> | undefined
  const { database, runner, agent, entryOf } = await sqliteQueue(t, {
    script: () => delivered,
    jobs: {
      returnPath: id => {
        stopped ??= late.runner?.stop(30_000)
        return `bounce+${id}@mail.example.net`
      },
    },
  })
  await enqueue(database, letters('x.example', 2))
  late.runner = runner
  await runner.start()
  await until('it is stopping', () => stopped !== undefined)
  await stopped
  t.same(agent.ids, [])
  for (const id of ['m1', 'm2']) t.match(await entryOf(id), { attempts: 0, nextAttemptAt: NOW })
})

t.test('an agent that fails defers the message and says so in the log', async t => {
  const { database, runner, handsOver, log, entryOf, settledCount } = await sqliteQueue(t, {
    script: () => new Error('a bug in the agent'),
  })
  await enqueue(database, letters('x.example', 1))
  await runner.start()
  await handsOver(1)
  await until('it is settled', () => settledCount() === 1)
  t.match(await entryOf('m1'), { attempts: 1 })
  t.ok((await entryOf('m1'))!.nextAttemptAt > NOW)
  t.match(
    log.lines.filter(({ level }) => level === 'error'),
    [{ event: 'delivery agent failed', fields: { messageId: 'm1', error: 'a bug in the agent' } }],
  )
  t.match(await listAttempts(database.reader, 'm1'), [
    { classification: { subtype: 'internal_error', permanence: 'transient' } },
  ])
})

t.test('while outcomes cannot be written nothing is lost and no delivery starts', async t => {
  const database = await sqliteDatabase(t)
  let isFull = false
  const { handsOver, agent, log, clock, statusOf, becomes, haveAnswered, look } = openQueue(
    t,
    failing(database, () => isFull),
    {
      script: () => 'wait',
      policy: { connections: 3 },
    },
  )
  await haveAnswered('x.example')
  await enqueue(database, letters('x.example', 4))
  await look()
  await handsOver(2)
  isFull = true
  agent.finish('m1', delivered)
  agent.finish('m2', bounced)
  await until('the failure is logged', () =>
    log.lines.some(({ event }) => event === 'delivery outcome write failed'),
  )
  await clock.advance(5 * MINUTE_MS)
  t.same(agent.ids, ['m1', 'm2'])
  t.equal(await statusOf('m1'), 'sent')
  isFull = false
  await clock.advance(MINUTE_MS)
  await becomes('m1', 'delivered')
  await becomes('m2', 'bounced')
  t.same(await handsOver(4), ['m1', 'm2', 'm3', 'm4'])
  t.equal((await listAttempts(database.reader, 'm1')).length, 1)
})

/** Nothing about this message can be written there. */
const poison = (database: Database, on: string, column: string) =>
  database.write(async ({ db }) => {
    const row = on.startsWith('insert') ? 'new' : 'old'
    await sql
      .raw(
        `create trigger poison_${on.replaceAll(' ', '_')} before ${on}
         when ${row}.${column} = 'm2' begin select raise(abort, 'poison'); end`,
      )
      .execute(db)
  })

t.test('an attempt that cannot be logged blocks no other outcome, and its message still ends', async t => {
  const { database, runner, handsOver, becomes, entryOf, log } = await sqliteQueue(t, {
    script: () => delivered,
  })
  await poison(database, 'insert on attempts', 'message_id')
  await enqueue(database, letters('x.example', 4))
  await runner.start()
  t.same((await handsOver(4)).toSorted(), ['m1', 'm2', 'm3', 'm4'])
  for (const id of ['m1', 'm2', 'm3', 'm4']) await becomes(id, 'delivered')
  t.equal(await entryOf('m2'), undefined)
  t.same(await listAttempts(database.reader, 'm2'), [])
  t.equal((await listAttempts(database.reader, 'm1')).length, 1)
  t.match(
    log.lines.filter(({ level }) => level === 'error'),
    [{ event: 'delivery outcome recorded incompletely', fields: { message: 'm2', error: /poison/ } }],
  )
})

t.test(
  'a delivered message whose status cannot be written leaves the queue, so it is not sent twice',
  async t => {
    const { database, runner, handsOver, becomes, statusOf, entryOf, agent, log } = await sqliteQueue(t, {
      script: () => delivered,
    })
    await poison(database, 'update on messages', 'id')
    await enqueue(database, letters('x.example', 3))
    await runner.start()
    await handsOver(3)
    await becomes('m1', 'delivered')
    await becomes('m3', 'delivered')
    await until('m2 leaves the queue', async () => (await entryOf('m2')) === undefined)
    t.equal(await statusOf('m2'), 'sent')
    t.equal(log.lines.filter(({ level }) => level === 'error').length, 1)
    await runner.stop(0)
    const next = openQueue(t, database, { script: () => delivered })
    await next.runner.start()
    await comeToRest()
    t.same(next.agent.ids, [])
    t.equal(agent.jobs.length, 3)
  },
)

t.test('a deferred message whose attempt cannot be logged is retried at its time', async t => {
  const { database, runner, handsOver, becomes, entryOf, agent, clock } = await sqliteQueue(t, {
    script: job => (job.messageId === 'm2' && job.attempt === 1 ? deferred : delivered),
  })
  await poison(database, 'insert on attempts', 'message_id')
  await enqueue(database, letters('x.example', 3))
  await runner.start()
  await handsOver(3)
  await becomes('m3', 'delivered')
  await until('m2 is deferred', async () => ((await entryOf('m2'))?.nextAttemptAt ?? 0) > NOW)
  agent.script = () => delivered
  await clock.advance(6 * MINUTE_MS)
  await becomes('m2', 'delivered')
})

t.test('an outcome of which nothing can be written stays claimed until the next start', async t => {
  const { database, runner, handsOver, becomes, entryOf, agent, clock, log } = await sqliteQueue(t, {
    script: () => delivered,
  })
  await poison(database, 'insert on attempts', 'message_id')
  await poison(database, 'delete on queue', 'message_id')
  await enqueue(database, letters('x.example', 3))
  await runner.start()
  await handsOver(3)
  await becomes('m1', 'delivered')
  await becomes('m3', 'delivered')
  await until('it is given up', () =>
    log.lines.some(
      ({ event, fields }) => event === 'delivery outcome abandoned' && fields['message'] === 'm2',
    ),
  )
  await clock.advance(60 * MINUTE_MS)
  t.equal(agent.jobs.length, 3)
  t.ok(await entryOf('m2'))
})

t.test('a failed claim is retried', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, letters('x.example', 2))
  let isFull = true
  const { runner, handsOver, agent, log, clock } = openQueue(
    t,
    failing(database, () => isFull),
    { script: () => delivered },
  )
  await runner.start()
  await until('the failure is logged', () => log.lines.length > 0)
  t.match(log.lines[0], {
    level: 'error',
    event: 'queue not claimed',
    fields: { error: 'the disk is full' },
  })
  isFull = false
  await comeToRest()
  t.same(agent.ids, [])
  await clock.advance(1_000)
  t.same(await handsOver(2), ['m1', 'm2'])
})

t.test('claimed messages that cannot be loaded are released', async t => {
  let isBroken = true
  const { database, runner, handsOver, agent, log, clock, entryOf } = await sqliteQueue(t, {
    script: () => delivered,
    policy: { connectionsPerSite: 1 },
    jobs: {
      returnPath: id => {
        if (isBroken) throw new Error('no secret')
        return `bounce+${id}@mail.example.net`
      },
    },
  })
  await enqueue(database, letters('x.example', 2))
  await runner.start()
  await until('the failure is logged', () => log.lines.length > 0)
  await comeToRest()
  t.equal(log.lines.length, 1, 'once, not over and over')
  t.match(await entryOf('m1'), { attempts: 0 })
  isBroken = false
  await clock.advance(1_000)
  t.same(await handsOver(2), ['m1', 'm2'])
  t.same(
    agent.jobs.map(job => job.attempt),
    [1, 1],
  )
})

t.test('a message whose content is missing is retried until it expires, and fails then', async t => {
  const { database, runner, clock, statusOf, entryOf, becomes, agent } = await sqliteQueue(t, {
    script: () => delivered,
  })
  await enqueue(database, [{ id: 'm1', to: 'm1@x.example', expiresAt: NOW + 60 * MINUTE_MS }])
  await database.write(({ db }) => db.updateTable('message_contents').set({ pruned_at: NOW }).execute())
  await runner.start()
  await clock.advance(30 * MINUTE_MS)
  await comeToRest()
  t.ok(await entryOf('m1'))
  t.equal(await statusOf('m1'), 'sent')
  for (let hour = 0; hour < 3; hour += 1) {
    await clock.advance(60 * MINUTE_MS)
    await comeToRest()
  }
  await becomes('m1', 'failed')
  t.equal(await entryOf('m1'), undefined)
  t.same(agent.ids, [])
})

t.test('a claim whose answer is lost is released, and its message delivered once', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, letters('x.example', 2))
  let isLosing = true
  const flaky = losingAnswers(database, () => isLosing)
  const { runner, handsOver, clock, becomes } = openQueue(t, flaky, { script: () => delivered })
  await runner.start()
  await comeToRest()
  t.match(await findEntries(database.reader, ['m1', 'm2']), [{ attempts: 1 }, {}], 'it was committed')
  t.same(await handsOver(0), [])
  isLosing = false
  for (let second = 0; second < 5; second += 1) {
    await clock.advance(1_000)
    await comeToRest()
  }
  t.same((await handsOver(2)).sort(), ['m1', 'm2'])
  for (const id of ['m1', 'm2']) await becomes(id, 'delivered')
  t.same(
    (await listAttempts(database.reader, 'm1')).map(({ number }) => number),
    [1],
    'the lost claim is not counted as an attempt',
  )
})

t.test('an outcome whose answer is lost is recorded once', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [
    { id: 'm1', to: 'm1@x.example' },
    { id: 'm2', to: 'm2@y.example' },
  ])
  let hasAnswered = false
  let losses = 0
  const flaky = losingAnswers(database, () => hasAnswered && (losses += 1) <= 2)
  const { runner, clock, becomes, entryOf } = openQueue(t, flaky, {
    script: ({ messageId }) => {
      hasAnswered = true
      return messageId === 'm1' ? delivered : deferred
    },
  })
  await runner.start()
  await comeToRest()
  const { nextAttemptAt } = (await entryOf('m2')) ?? {}
  for (let second = 0; second < 5; second += 1) {
    await clock.advance(1_000)
    await comeToRest()
  }
  await becomes('m1', 'delivered')
  for (const id of ['m1', 'm2']) t.equal((await listAttempts(database.reader, id)).length, 1, id)
  t.equal((await entryOf('m2'))?.nextAttemptAt, nextAttemptAt)
  t.equal(runner.activeCount, 0)
})

t.test('mail that was claimed while its site began to back off is delivered after the back-off', async t => {
  const database = await sqliteDatabase(t)
  let isSlow = false
  const inClaim: (() => void)[] = []
  const slow: Database = {
    ...failing(database, () => false),
    async write(work, options) {
      const result = await database.write(work, options)
      if (isSlow) await new Promise<void>(resolve => inClaim.push(resolve))
      return result
    },
  }
  let isAsking = true
  const { haveAnswered, handsOver, look, clock, agent } = openQueue(t, slow, {
    script: () => 'wait',
  })
  await haveAnswered('x.example')
  await enqueue(database, letters('x.example', 1))
  await look()
  await handsOver(1)
  await enqueue(database, letters('x.example', 1, 'n'))
  isSlow = true
  await look()
  await until('the second is being claimed', () => inClaim.length > 0)
  agent.script = () => (isAsking ? slowDown : delivered)
  agent.finish('m1', slowDown)
  await comeToRest()
  isSlow = false
  for (const resolve of inClaim) resolve()
  await comeToRest()
  t.same(agent.ids, ['m1'], 'it does not start during the back-off')
  isAsking = false
  for (let minute = 0; minute < 30; minute += 1) {
    await clock.advance(MINUTE_MS)
    await comeToRest()
  }
  t.same(await findEntries(database.reader, ['m1', 'n1']), [], 'and both are delivered afterwards')
})

const slowDown: Deferred = {
  ...deferred,
  scope: 'source',
  cause: 'reputation',
  subtype: 'rate_limited',
  summary: 'mx.x.example answered 450 4.7.1 slow down',
  reply: { code: 450, enhanced: '4.7.1', text: 'slow down' },
}
