/** The queue on both databases: what the operator sees and selects, claiming, due times, and the queue manager itself. */
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import type { Database, Queries } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import { listAttempts } from '../../src/messages/attempt-store.js'
import { claim, type Claimed } from '../../src/queue/claiming/claim.js'
import { claimEntries, findEntries, listLanes } from '../../src/queue/queue-store.js'
import { correctDueTimes } from '../../src/queue/clock-changes.js'
import { laneFromKey } from '../../src/queue/lane.js'
import {
  deleteEntries,
  listDestinations,
  listEntries,
  selectBatch,
  setHeld,
  type QueuePosition,
  type QueueSelection,
} from '../../src/queue/operator/queue-admin-store.js'
import { countDestinations } from '../../src/queue/operator/queue-status-store.js'
import { Site, type Turn } from '../../src/queue/pacing/site.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase, onPostgres } from '../support/db/database.js'
import { enqueue, laneTo, letters, NOW } from '../support/mailroom.js'
import { bounced, deferred, delivered } from '../support/outcomes.js'
import { openQueue } from '../support/queue.js'
import { until } from '../support/turns.js'

const MINUTE_MS = 60_000
const RETRY = { firstMs: 5 * MINUTE_MS, factor: 2, maxMs: 60 * MINUTE_MS }

const hold = (database: Database, id: string) =>
  database.write(tx => setHeld(tx.db, { messageIds: [id] }, true))

eachDatabase(t, 'waiting messages are counted by destination: total, held and due', async (t, database) => {
  await enqueue(database, [
    ...letters('x.example', 3, 'x'),
    { id: 'later', to: 'a@x.example', dueAt: NOW + 1 },
    { id: 'y', to: 'a@y.example' },
  ])
  await hold(database, 'x1')
  const countAll = (destinations: string[], most: number) =>
    countDestinations(database.reader, destinations, NOW, most)
  const count = async (destination: string, most: number) => (await countAll([destination], most))[0]
  const x = { destination: 'x.example', queued: 4, held: 1, due: 2 }
  t.same(await count('x.example', 5), { ...x, hasMore: false })
  t.match(await count('x.example', 4), { ...x, hasMore: true }, 'there may be more')
  t.match(await count('x.example', 2), { queued: 2, hasMore: true })
  t.match(await count('y.example', 5), { queued: 1, held: 0, due: 1 })
  t.match(await countAll(['y.example', 'z.example', 'x.example'], 5), [{ queued: 1 }, { queued: 4 }])
  t.same(await countAll([], 5), [])
  t.same(await listDestinations(database.reader), ['x.example', 'y.example'])
  t.same(await listDestinations(database.reader, 1), ['x.example'])
})

async function idsOf(db: Queries, selection: QueueSelection): Promise<string[][]> {
  const found: string[][] = []
  for (let after: QueuePosition | undefined; ;) {
    const batch = await selectBatch(db, selection, { kind: 'hold', now: NOW }, after)
    if (batch.entries.length > 0) found.push(batch.entries.map(({ messageId }) => messageId))
    if (!batch.end) return found
    after = batch.end
  }
}

eachDatabase(t, 'a selection is read in batches, each message once', async (t, database) => {
  const domains = Array.from({ length: 130 }, (_, n) => `d${n}.example`)
  await enqueue(
    database,
    domains.flatMap((domain, n) => letters(domain, 2, `d${n}-`)),
  )
  await enqueue(database, letters('x.example', 251, 'x'))
  const select = (selection: QueueSelection) => idsOf(database.reader, selection)
  const sizes = async (selection: QueueSelection) => (await select(selection)).map(ids => ids.length)
  t.same(await sizes({ destinations: ['x.example'] }), [250, 1])
  t.same(await sizes({ destinations: domains }), [250, 10])
  t.same(await sizes({}), [250, 250, 11])
  t.same(await sizes({ workspaceId: 'w1' }), [250, 250, 11])
  t.same(await sizes({ workspaceId: 'other' }), [])
  t.same(await select({ messageIds: ['x1', 'd3-2', 'unknown'] }), [['d3-2', 'x1']])
  t.same(await sizes({ destinations: [...domains, 'x.example'] }), [250, 250, 11])
  await hold(database, 'x1')
  t.same(await select({ messageIds: ['x1', 'x2'] }), [['x2']], 'what is held already is left out')
  t.equal(new Set((await select({})).flat()).size, 510)
})

/** Turns as the schedule gives them. */
function turnFor(destination: string, slots: number): Turn {
  const facts = { name: destination, connections: 20, messagesPerMinute: 0 }
  const site = new Site(new FakeClock(), facts, { firstMs: 1, maxMs: 1 })
  return { lane: laneFromKey(laneTo(destination)), site, slots, standing: 'new', dueAt: 0 }
}

const shown = (claimed: readonly Claimed[]) =>
  claimed.map(({ entries, nextDueAt }) => [entries.map(({ messageId }) => messageId), nextDueAt])

eachDatabase(
  t,
  'a claim takes due messages up to its slots, reports the next due time, and is exclusive',
  async (t, database) => {
    await enqueue(database, [
      { id: 'x1', to: 'a@x.example', dueAt: NOW - 3 },
      { id: 'x2', to: 'a@x.example', dueAt: NOW - 2 },
      { id: 'x3', to: 'a@x.example', dueAt: NOW - 1 },
      { id: 'y1', to: 'a@y.example' },
      { id: 'y2', to: 'a@y.example', dueAt: NOW + 7 },
    ])
    const terms = { now: NOW, retry: RETRY, fraction: 0.5, incarnation: 'run 1' }
    const take = (...turns: Turn[]) => database.write(tx => claim(tx.db, turns, terms))
    const first = await take(turnFor('x.example', 2), turnFor('y.example', 2))
    t.same(shown(first), [
      [['x1', 'x2'], NOW - 1],
      [['y1'], NOW + 7],
    ])
    t.match(first[0]?.entries[0], { attempts: 1, nextAttemptAt: NOW + 5 * MINUTE_MS })
    t.match(await findEntries(database.reader, ['x1']), [{ attempts: 1, nextAttemptAt: NOW + 5 * MINUTE_MS }])
    t.same(shown(await take(turnFor('x.example', 2), turnFor('y.example', 2))), [
      [['x3'], undefined],
      [[], NOW + 7],
    ])
  },
)

eachDatabase(
  t,
  'messages deferred by a clock that was ahead are due at the intended time',
  async (t, database) => {
    const ahead = NOW + 30 * 24 * 60 * MINUTE_MS
    await enqueue(database, [
      { id: 'put off', to: 'a@x.example', dueAt: ahead },
      { id: 'claimed', to: 'a@x.example', dueAt: ahead },
      { id: 'first', to: 'a@x.example', dueAt: NOW + 1 },
    ])
    await database.write(tx => claimEntries(tx.db, ['put off'], ahead, 'run 1'))
    await database.write(({ db }) => db.updateTable('queue').set({ claimed_by: null }).execute())
    await database.write(tx => claimEntries(tx.db, ['claimed'], ahead, 'run 1'))
    const corrected: [string, number][] = []
    const lanes = (await listLanes(database.reader)).map(({ lane }) => lane)
    await correctDueTimes({ database, retry: RETRY }, lanes, { now: NOW, byMs: 0 }, (lane, dueAt) =>
      corrected.push([lane, dueAt]),
    )
    const [entry] = await findEntries(database.reader, ['put off'])
    t.ok(entry && entry.nextAttemptAt <= NOW + 6 * MINUTE_MS && entry.nextAttemptAt > NOW)
    t.same(corrected, [[laneTo('x.example'), entry?.nextAttemptAt]])
    t.match(await findEntries(database.reader, ['claimed']), [{ nextAttemptAt: ahead }])
    t.match(await findEntries(database.reader, ['first']), [{ nextAttemptAt: NOW + 1 }])
  },
)

async function deliverAll(t: Test, database: Database) {
  const queue = openQueue(t, database, {
    script: ({ recipient, attempt }) => {
      if (recipient.startsWith('gone')) return bounced
      return recipient.startsWith('slow') && attempt === 1 ? deferred : delivered
    },
  })
  await enqueue(database, [
    ...letters('x.example', 3, 'x'),
    { id: 'gone', to: 'gone@y.example' },
    { id: 'slow', to: 'slow@y.example' },
    { id: 'held', to: 'held@x.example' },
  ])
  await hold(database, 'held')
  await queue.runner.start()
  for (const id of ['x1', 'x2', 'x3']) await queue.becomes(id, 'delivered')
  await queue.becomes('gone', 'bounced')
  await until('it is put off', async () => (await listAttempts(database.reader, 'slow')).length === 1)
  return queue
}

eachDatabase(
  t,
  'the queue delivers, defers and bounces messages, and writes their events',
  async (t, database) => {
    const { runner, becomes, entryOf, clock } = await deliverAll(t, database)
    await clock.advance((await entryOf('slow'))!.nextAttemptAt - NOW)
    await becomes('slow', 'delivered')
    t.match(await listAttempts(database.reader, 'slow'), [{ number: 1 }, { number: 2 }])
    t.equal((await entryOf('held'))?.attempts, 0, 'what is held is left alone')
    await runner.stop(0)
    const told = await readEventsAfter(database.reader, 0, ['email.delivered', 'email.bounced'], 10)
    t.same(told.map(({ kind, messageId }) => `${messageId} ${kind.slice(6)}`).sort(), [
      ...['gone bounced', 'slow delivered', 'x1 delivered', 'x2 delivered', 'x3 delivered'],
    ])
  },
)

eachDatabase(
  t,
  'a message deleted during its delivery ends with the outcome of that attempt',
  async (t, database) => {
    const { runner, agent, statusOf, becomes } = openQueue(t, database, { script: () => 'wait' })
    await enqueue(database, [
      { id: 'claimed', to: 'a@x.example' },
      { id: 'later', to: 'b@x.example', dueAt: NOW + 60 * MINUTE_MS },
    ])
    await runner.start()
    await until('it is under way', () => agent.waitingIds.length === 1)
    t.equal(await database.write(tx => deleteEntries(tx, {}, NOW, true)), 2)
    t.equal(await statusOf('later'), 'failed')
    t.equal(await statusOf('claimed'), 'sent')
    agent.finish('claimed', delivered)
    await becomes('claimed', 'delivered')
    t.same(await listEntries(database.reader, {}, 10), [])
  },
)

onPostgres(t, 'statements are planned for a full queue even while it is empty', async (t, database) => {
  await enqueue(database, letters('x.example', 1_000, 'x'))
  await database.write(tx => tx.db.deleteFrom('queue').execute())
  await sql`vacuum (analyze) queue`.execute(database.reader)
  const { rows } = await sql<{ 'QUERY PLAN': string }>`
    explain select min(lane) from queue where is_held = 0 and claimed_by is null`.execute(database.reader)
  t.notMatch(rows.map(row => row['QUERY PLAN']).join('\n'), /Seq Scan/)
  const ids = Array.from({ length: 50 }, (_, at) => `x ${at}`)
  const deletion = await database.write(({ db }) =>
    sql<{ 'QUERY PLAN': string }>`
      explain delete from queue where message_id in (${sql.join(ids)})`.execute(db),
  )
  t.match(deletion.rows.map(row => row['QUERY PLAN']).join('\n'), /queue_pkey/)
})
