/** One person's mail beside another workspace's campaign to the same hosts, and what long queues cost in memory. */
import t, { type Test } from 'tap'
import type { Database } from '../../src/db/database.js'
import { laneKey } from '../../src/queue/lane.js'
import { PRIORITIES, type Priority } from '../../src/messages/mail-origin.js'
import { insertContent } from '../../src/messages/content-store.js'
import { insertMessages } from '../../src/messages/message-store.js'
import { insertQueueEntries, listLanes } from '../../src/queue/queue-store.js'
import { Schedule } from '../../src/queue/pacing/schedule.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase } from '../support/db/database.js'
import { CONTENT, NOW } from '../support/mailroom.js'
import { delivered } from '../support/outcomes.js'
import { sqliteQueue } from '../support/queue.js'

interface Batch {
  readonly workspaceId: string
  readonly priority: Priority
  readonly destination: string
  readonly count: number
  /** Of the message ids: `bulk1`, `bulk2`, ... */
  readonly prefix: string
}

async function enqueueBatch(database: Database, batch: Batch): Promise<void> {
  const { workspaceId, priority, destination, count, prefix } = batch
  const content = { ...CONTENT, id: `content of ${prefix}`, workspaceId }
  const ids = Array.from({ length: count }, (_, n) => `${prefix}${n + 1}`)
  await database.write(async tx => {
    await insertContent(tx.db, content)
    await insertMessages(
      tx.db,
      content,
      false,
      ids.map(id => ({ id, recipient: `${id}@${destination}`, status: 'sent', reason: null })),
    )
    await insertQueueEntries(
      tx.db,
      ids.map(messageId => ({
        messageId,
        workspaceId,
        destination,
        priority,
        nextAttemptAt: NOW,
        expiresAt: NOW + 86_400_000,
        enqueuedAt: NOW,
        contentId: content.id,
        recipient: `${messageId}@${destination}`,
      })),
    )
  })
}

/** A site with four slots, all of them taken by a campaign of 20,000. */
async function busyWithCampaign(t: Test) {
  const queue = await sqliteQueue(t, { script: () => 'wait', policy: { connections: 20 } })
  await queue.haveAnswered('x.example')
  await enqueueBatch(queue.database, {
    workspaceId: 'bulk',
    priority: PRIORITIES.campaign,
    destination: 'x.example',
    count: 20_000,
    prefix: 'bulk',
  })
  await queue.look()
  t.equal((await queue.handsOver(4)).length, 4)
  return {
    ...queue,
    /** A delivery ends; resolves with the message that takes its place. */
    next: async () => {
      const before = queue.agent.ids.length
      queue.agent.finish(queue.agent.waitingIds[0]!, delivered)
      return (await queue.handsOver(before + 1)).at(-1)!
    },
    sendSingle: async (prefix: string, count: number) => {
      await enqueueBatch(queue.database, {
        workspaceId: 'shop',
        priority: PRIORITIES.transactional,
        destination: 'x.example',
        count,
        prefix,
      })
      queue.runner.noteEnqueued(laneKey('x.example', PRIORITIES.transactional, 'shop'), NOW)
    },
  }
}

t.test('a single send is delivered before 20,000 campaign messages to the same domain', async t => {
  const { sendSingle, next, handsOver } = await busyWithCampaign(t)
  for (const prefix of ['reset', 'code', 'receipt']) {
    await sendSingle(prefix, 1)
    await handsOver(4)
    t.ok([await next(), await next()].includes(`${prefix}1`), `${prefix} is among the next two`)
  }
})

t.test('under a stream of single sends the campaign gets every fourth turn', async t => {
  const { sendSingle, next } = await busyWithCampaign(t)
  await sendSingle('single', 100)
  const order: string[] = []
  for (let turn = 0; turn < 40; turn += 1) order.push((await next()).startsWith('bulk') ? 'bulk' : 'single')
  t.equal(order.filter(kind => kind === 'bulk').length, 10)
  t.notMatch(order.join(' '), /(bulk ){2}/, 'never two in a row')
})

t.test("the schedule's memory depends on lanes, not on 100,000 messages", async t => {
  const database = await sqliteDatabase(t)
  for (let lane = 0; lane < 50; lane += 1)
    await enqueueBatch(database, {
      workspaceId: `w${lane % 5}`,
      priority: lane % 2 === 0 ? PRIORITIES.transactional : PRIORITIES.campaign,
      destination: `d${Math.floor(lane / 10)}.example`,
      count: 2_000,
      prefix: `m${lane}-`,
    })
  const clock = new FakeClock()
  const schedule = new Schedule({
    clock,
    backoff: { firstMs: 30_000, maxMs: 900_000 },
    connections: 500,
    locateSite: async () => ({ name: 'mx.example', connections: 20, messagesPerMinute: 0 }),
    onChange: () => {},
  })
  const lookAround = async () => {
    for (const { lane, dueAt } of await listLanes(database.reader)) schedule.note(lane, dueAt)
  }
  await lookAround()
  t.match(schedule.size, { lanes: 50, dueTimes: 50 })
  schedule.takeTurns(100, 100)
  await clock.advance(0)
  // Whatever is looked at again and again while everything waits leaves nothing behind.
  for (let round = 0; round < 20; round += 1) {
    for (const turn of schedule.takeTurns(100, 100)) schedule.claimEnded(turn, 0, clock.now())
    await lookAround()
  }
  t.match(schedule.size, { lanes: 50, sites: 1 })
  t.ok(schedule.size.dueTimes <= 100, `${schedule.size.dueTimes} due times`)
})

t.test('resetting a back-off lets one message probe the named sites only', async t => {
  const clock = new FakeClock()
  const schedule = new Schedule({
    clock,
    backoff: { firstMs: 30_000, maxMs: 900_000 },
    connections: 500,
    locateSite: async destination => ({ name: destination, connections: 20, messagesPerMinute: 0 }),
    onChange: () => {},
  })
  for (const destination of ['a.example', 'b.example'])
    schedule.note(laneKey(destination, PRIORITIES.transactional, 'w1'), clock.now())
  schedule.takeTurns(100, 100)
  await clock.advance(0)
  for (const turn of schedule.takeTurns(100, 100)) {
    schedule.claimEnded(turn, 1, clock.now())
    schedule.deliveryEnded(turn, { kind: 'asked', waitMs: 600_000 }, 10)
    schedule.settled(turn, clock.now())
  }
  t.same(schedule.takeTurns(100, 100), [])
  schedule.resetBackoff(new Set(['b.example']))
  t.match(schedule.takeTurns(100, 100), [{ lane: { destination: 'b.example' }, slots: 1 }])
  schedule.resetBackoff()
  t.match(schedule.takeTurns(100, 100), [{ lane: { destination: 'a.example' }, slots: 1 }])
})
