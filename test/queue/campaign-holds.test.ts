/** Campaigns that are held: what is queued of them stays, whatever is due, and everybody else's mail goes. */
import t from 'tap'
import type { Database } from '../../src/db/database.js'
import {
  deleteHold,
  findHeldMs,
  holdCampaign,
  listHeldCampaigns,
  releaseCampaign,
} from '../../src/queue/claiming/campaign-hold-store.js'
import { laneFromKey, laneKey, type Lane } from '../../src/queue/lane.js'
import { countDestinations } from '../../src/queue/operator/queue-status-store.js'
import { listEntries, setHeld } from '../../src/queue/operator/queue-admin-store.js'
import { summarize } from '../../src/queue/operator/queue-summary-store.js'
import { Schedule } from '../../src/queue/pacing/schedule.js'
import { siteBackoff } from '../../src/queue/pacing/site-pace.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase, sqliteDatabase, sqliteFile } from '../support/db/database.js'
import { DAY_MS, enqueue, letters, NOW } from '../support/mailroom.js'
import { deferred, delivered } from '../support/outcomes.js'
import { openQueue, sqliteQueue } from '../support/queue.js'
import { comeToRest, until } from '../support/turns.js'

const SPRING = { id: 'spring', workspaceId: 'w1' }

const hold = (database: Database, now = NOW) => database.write(tx => holdCampaign(tx.db, SPRING, now))
const release = (database: Database, now = NOW) => database.write(tx => releaseCampaign(tx.db, 'spring', now))
const claimed = async (database: Database) =>
  database.reader.selectFrom('queue').select('message_id').where('claimed_by', 'is not', null).execute()

t.test('holding a campaign aborts its deliveries and keeps its mail queued', async t => {
  const { database, runner, agent, entryOf, handsOver, becomes, look, haveAnswered } = await sqliteQueue(t, {
    script: () => 'wait',
  })
  await haveAnswered('x.example')
  await enqueue(database, letters('x.example', 30, 'spring'), { campaignId: 'spring' })
  await look()
  const begun = (await handsOver(4)).length
  await hold(database)
  runner.reloadHolds()
  await until('nothing is claimed', async () => (await claimed(database)).length === 0)
  await comeToRest()
  t.equal(agent.jobs.length, begun, 'none took their place')
  t.match(await entryOf('spring1'), { attempts: 0, nextAttemptAt: NOW }, 'as if it had not begun')

  agent.script = () => delivered
  await enqueue(database, letters('x.example', 3, 'single'))
  await look()
  for (const id of ['single1', 'single2', 'single3']) await becomes(id, 'delivered')
  await comeToRest()
  t.same(agent.ids.slice(begun).sort(), ['single1', 'single2', 'single3'], 'others are served')

  await release(database)
  runner.reloadHolds()
  for (const { id } of letters('x.example', 30, 'spring')) await becomes(id, 'delivered')
  const after = agent.ids.slice(begun + 3)
  t.equal(after.length, 30)
  t.equal(new Set(after).size, 30, 'each once')
})

t.test('mail already accepted by a server counts, and another process sees the hold', async t => {
  const file = sqliteFile(t)
  const database = await sqliteDatabase(t, file)
  let accept: () => void = () => {}
  const { runner, agent, becomes } = openQueue(t, database, {
    // Past the final dot nothing is broken off.
    script: () => new Promise(resolve => (accept = () => resolve(delivered))),
    policy: { connectionsPerSite: 1 },
  })
  await enqueue(database, letters('x.example', 3, 'spring'), { campaignId: 'spring' })
  await runner.start()
  await until('it is under way', () => agent.jobs.length === 1)
  await hold(database)
  runner.reloadHolds()
  accept()
  await becomes('spring1', 'delivered')
  await comeToRest()
  t.same(agent.ids, ['spring1'])
  await runner.stop(0)

  const next = openQueue(t, database, { script: () => delivered })
  await next.runner.start()
  await next.clock.advance(60_000)
  await next.runner.retryNow()
  await comeToRest()
  t.same(next.agent.ids, [], 'nothing starts after a restart, nor when everything is retried')

  // Another process, as the command line.
  const other = await openSqlite({ file, clock: new FakeClock() })
  t.teardown(() => other[Symbol.asyncDispose]())
  await release(other)
  await next.clock.advance(1_000)
  await next.becomes('spring3', 'delivered')
  await enqueue(database, letters('y.example', 1, 'late'), { campaignId: 'spring' })
  await hold(other)
  await next.clock.advance(1_000)
  await comeToRest()
  await next.runner.retryNow()
  await comeToRest()
  t.same(next.agent.ids.slice(2), [])
})

t.test("neither the operator's hold nor the campaign's undoes the other", async t => {
  const { database, runner, agent, becomes, look } = await sqliteQueue(t, { script: () => delivered })
  await hold(database)
  await enqueue(database, letters('x.example', 2, 'spring'), { campaignId: 'spring' })
  await runner.start()
  const set = (isHeld: boolean) =>
    database.write(tx => setHeld(tx.db, { destinations: ['x.example'] }, isHeld))
  await set(true)
  await set(false)
  await look()
  await comeToRest()
  t.same(agent.ids, [], 'released by the operator, and still held by the campaign')
  await database.write(tx => setHeld(tx.db, { messageIds: ['spring1'] }, true))
  await release(database)
  runner.reloadHolds()
  await becomes('spring2', 'delivered')
  await comeToRest()
  t.same(agent.ids, ['spring2'], 'and the other way round')
})

t.test('the time of a hold does not count against the expiry of the mail', async t => {
  const { database, runner, agent, becomes, clock, entryOf, handsOver } = await sqliteQueue(t, {
    script: () => deferred,
  })
  await enqueue(database, letters('x.example', 1, 'spring'), { campaignId: 'spring' })
  await enqueue(database, letters('y.example', 1, 'single'))
  await hold(database)
  await runner.start()
  clock.skip(10 * DAY_MS)
  await release(database, clock.now())
  runner.reloadHolds()
  await becomes('single1', 'bounced')
  await handsOver(2)
  t.match(await entryOf('spring1'), { attempts: 1 })
  for (let hours = 0; hours < 80 && (await entryOf('spring1')); hours += 1) {
    clock.skip(3_540_000)
    await clock.advance(60_000)
    await comeToRest()
  }
  await becomes('spring1', 'bounced')
  t.ok(agent.jobs.length > 20, 'it was tried for three days, as if there had been no pause')
})

t.test('a hold removes all lanes of the campaign until the release', async t => {
  const clock = new FakeClock()
  let held = new Set<string | undefined>()
  const schedule = new Schedule({
    clock,
    backoff: siteBackoff({ firstMs: 60_000, factor: 2, maxMs: 3_600_000 }),
    connections: 10,
    isHeld: ({ campaignId }: Lane) => campaignId !== undefined && held.has(campaignId),
    locateSite: async name => ({ name, connections: 5, messagesPerMinute: 0 }),
    onChange: () => {},
  })
  const lanes = Array.from({ length: 3_000 }, (_, at) => laneKey(`d${at}.example`, 1, 'w1', false, 'spring'))
  for (const lane of lanes) schedule.note(lane, clock.now())
  t.equal(schedule.hasTurn, false, 'their sites are not known yet')
  await until('some are located', () => schedule.hasTurn)
  const [turn] = schedule.takeTurns(1, 1)
  held = new Set(['spring'])
  await schedule.holdLanes()
  t.notOk(schedule.hasTurn)
  schedule.claimEnded(turn!, 0, clock.now())
  for (const lane of lanes) schedule.note(lane, clock.now())
  t.notOk(schedule.hasTurn, 'noted while it is held')
  t.same(schedule.size, { lanes: 0, sites: 0, dueTimes: 0 }, 'they take no memory')
  held = new Set()
  for (const lane of lanes) schedule.note(lane, clock.now())
  t.ok(schedule.hasTurn)
})

t.test('a lane key contains the campaign', async t => {
  for (const isLarge of [true, false])
    for (const campaignId of ['spring', undefined])
      t.match(laneFromKey(laneKey('x.example', 1, 'w1', isLarge, campaignId)), {
        ...{ destination: 'x.example', priority: 1, workspaceId: 'w1', isLarge, campaignId },
      })
})

eachDatabase(t, 'holds are opened, released and deleted, and their duration is kept', async (t, database) => {
  await hold(database, NOW)
  await hold(database, NOW + 500)
  t.same([...(await listHeldCampaigns(database.reader))], ['spring'])
  t.same([...(await findHeldMs(database.reader, ['spring', 'other'], NOW + 700))], [['spring', 700]])
  await release(database, NOW + 1_000)
  await release(database, NOW + 9_000)
  t.equal((await listHeldCampaigns(database.reader)).size, 0)
  await hold(database, NOW + 10_000)
  t.equal((await findHeldMs(database.reader, ['spring'], NOW + 10_500)).get('spring'), 1_500)
  await release(database, NOW)
  t.equal((await findHeldMs(database.reader, ['spring'], NOW)).get('spring'), 1_000, 'the clock was set back')
  await database.write(tx => deleteHold(tx.db, 'spring'))
  t.equal((await findHeldMs(database.reader, ['spring'], NOW)).size, 0)
})

eachDatabase(t, 'the queue list shows which mail waits for a paused campaign', async (t, database) => {
  await enqueue(database, letters('x.example', 2, 'spring'), { campaignId: 'spring' })
  await enqueue(database, letters('x.example', 3, 'single'))
  await hold(database)
  const count = () => countDestinations(database.reader, ['x.example'], NOW, 10)
  t.match(await count(), [{ queued: 5, held: 2, due: 3 }])
  t.match(await summarize(database.reader, NOW, [60_000], 10), { rows: [{ total: 5, held: 2 }], held: 2 })
  const entries = await listEntries(database.reader, {}, 10)
  t.same(
    entries.map(({ messageId, isHeld, isCampaignPaused }) => [messageId, isHeld, isCampaignPaused]),
    [
      ['single1', false, false],
      ['single2', false, false],
      ['single3', false, false],
      ['spring1', false, true],
      ['spring2', false, true],
    ],
  )
  await release(database)
  t.match(await count(), [{ queued: 5, held: 0, due: 5 }])
  t.match(await summarize(database.reader, NOW, [60_000], 10), { rows: [{ total: 5, held: 0 }], held: 0 })
})
