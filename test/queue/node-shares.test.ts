/** What each of several nodes delivers, and how much of a site it takes. */
import t from 'tap'
import { nodesFor } from '../../src/cluster/lane-shares.js'
import { insertNode } from '../../src/cluster/node-store.js'
import type { Database } from '../../src/db/database.js'
import { NodeShares } from '../../src/queue/node-shares.js'
import { SitePace } from '../../src/queue/pacing/site-pace.js'
import { shareOfSite } from '../../src/queue/pacing/site-share.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { onPostgres } from '../support/db/database.js'
import { addWorkspace, enqueue, laneTo, letters } from '../support/mailroom.js'
import { until } from '../support/until.js'

const IDS = ['n1', 'n2']
const facts = { name: 'big', connections: 10, messagesPerMinute: 1_200 }

t.test('shares of a site add up to what it allows, at any moment', async t => {
  for (let nodes = 1; nodes <= 6; nodes += 1)
    for (let connections = 1; connections <= 12; connections += 1)
      for (let turn = 0; turn < 7; turn += 1) {
        const shares = Array.from({ length: nodes }, (_, rank) =>
          shareOfSite({ name: '', connections, messagesPerMinute: 600 }, { nodes, rank, turn }),
        )
        const active = shares.filter(share => share.connections > 0)
        const sum = (of: (share: (typeof shares)[number]) => number) =>
          active.reduce((total, share) => total + of(share), 0)
        t.equal(
          sum(share => share.connections),
          connections,
        )
        t.ok(Math.abs(sum(share => share.messagesPerMinute) - 600) < 1e-6)
      }
})

t.test('a budget smaller than the number of nodes goes round', async t => {
  const one = { name: '', connections: 1, messagesPerMinute: 0 }
  const turns = [0, 1, 2].map(turn =>
    [0, 1, 2].map(rank => shareOfSite(one, { nodes: 3, rank, turn }).connections).join(''),
  )
  t.same(turns, ['100', '010', '001'])
})

t.test('a smaller share keeps what was learnt, and changes of shares add no bursts', async t => {
  const clock = new FakeClock()
  const pace = new SitePace(clock, facts, { firstMs: 30_000, maxMs: 900_000 })
  pace.setLimits({ connections: 5, messagesPerMinute: 600 }, true)
  for (let at = 0; at < 100; at += 1) {
    pace.reserve(1)
    pace.end({ kind: 'success' })
  }
  t.equal(pace.freeSlots, 0, 'what was saved up for the share is used')
  pace.setLimits(facts, true)
  t.equal(pace.freeSlots, 0)
  pace.setLimits({ connections: 0, messagesPerMinute: 600 }, true)
  await clock.advance(60_000)
  t.equal(pace.freeSlots, 0, "it is other nodes' turn")
  pace.setLimits({ connections: 3, messagesPerMinute: 600 }, true)
  t.equal(pace.freeSlots, 1, 'it grows again')
  t.equal(pace.joinBackoff(20_000), true)
  t.equal(pace.freeSlots, 0)
  t.equal(pace.joinBackoff(20_500), false, 'the same back-off')
})

function openNodes(database: Database, clock: FakeClock) {
  const nodes = IDS.map(nodeId => {
    const joined: ReadonlyMap<string, number>[] = []
    const state = {
      inUse: [{ site: 'big', backoffLeftMs: undefined as number | undefined }],
      lanes: [] as string[],
      changes: 0,
    }
    const ranks = (destination: string) => nodesFor(destination, IDS)
    const shares = new NodeShares({
      database: database.shared!,
      clock,
      log: new FakeLog(),
      membership: {
        nodeId,
        deliveringCount: 2,
        owns: destination => ranks(destination)[0] === nodeId,
        partsOf: (destination, parts) =>
          Array.from({ length: parts }, (_, at) => at).filter(at => ranks(destination)[at % 2] === nodeId),
      },
    })
    shares.start(
      {
        sitesInUse: () => state.inUse,
        reshare: backoffs => void joined.push(backoffs),
        busiest: () =>
          state.lanes.length > 0 ? [{ destination: 'big.test', lanes: state.lanes, facts }] : [],
      },
      () => (state.changes += 1),
    )
    return { shares, state, joined }
  })
  const [one, two] = nodes
  if (!one || !two) throw new Error('a node is missing')
  return { one, two }
}

/** Each step lets the nodes look once: a node that has looked waits for the clock again. */
async function look(clock: FakeClock, isDone: () => boolean) {
  await until('it', async () => {
    await clock.advance(1_000)
    await until('all to have looked', () => clock.waiting === IDS.length)
    return isDone()
  })
}

onPostgres(t, 'nodes at one site divide it, and one alone has all of it', async (t, database) => {
  const clock = new FakeClock()
  for (const id of IDS)
    await database.write(tx => insertNode(tx.db, { id, name: id, roles: ['mta'] }, clock.now(), 60_000))
  const { one, two } = openNodes(database, clock)
  t.teardown(() => [one, two].forEach(({ shares }) => shares.stop()))
  t.same(one.shares.shareOf(facts), { connections: 5, messagesPerMinute: 600 }, 'before anything is known')
  two.state.inUse = []
  await look(clock, () => one.shares.shareOf(facts)?.connections === 10)
  t.same(one.shares.shareOf(facts), { connections: 10, messagesPerMinute: 1_200 })
  two.state.inUse = [{ site: 'big', backoffLeftMs: 20_000 }]
  await look(clock, () => one.joined.some(backoffs => backoffs.has('big')))
  t.same(one.shares.shareOf(facts), { connections: 5, messagesPerMinute: 600 })
  const leftMs = one.joined.find(backoffs => backoffs.has('big'))?.get('big') ?? 0
  t.ok(leftMs > 10_000 && leftMs <= 20_000, 'and it waits as long as the other')
  t.equal(one.joined.filter(backoffs => backoffs.has('big')).length, 1, 'once')
})

onPostgres(
  t,
  'a destination with much due mail is split, and each part has one node',
  async (t, database) => {
    const clock = new FakeClock()
    for (const id of IDS)
      await database.write(tx => insertNode(tx.db, { id, name: id, roles: ['mta'] }, clock.now(), 60_000))
    const { one, two } = openNodes(database, clock)
    t.teardown(() => [one, two].forEach(({ shares }) => shares.stop()))
    one.state.lanes = two.state.lanes = [laneTo('big.test')]
    t.equal([one, two].filter(({ shares }) => shares.owns('big.test')).length, 1)
    await addWorkspace(database)
    await enqueue(database, letters('big.test', 1_200))
    await until(
      'the split',
      async () => {
        await look(clock, () => true)
        return [one, two].every(({ shares }) => shares.partOf('big.test') !== undefined)
      },
      30_000,
    )
    t.ok([one, two].every(({ shares }) => shares.owns('big.test')))
    t.same(
      [one, two].flatMap(({ shares }) => shares.partOf('big.test')?.parts ?? []).sort(),
      [0, 1],
      'together they have all parts',
    )
    t.ok(
      [one, two].every(({ state }) => state.changes > 0),
      'both were told',
    )
  },
)
