/** Which node takes which work: by roles, drains and stops. Several memberships on one database are several nodes. */
import t, { type Test } from 'tap'
import { leaseTargets, LEASES, type LeaseName } from '../../src/cluster/leases.js'
import { Membership } from '../../src/cluster/membership.js'
import { deleteDrain, insertDrain } from '../../src/cluster/node-store.js'
import { ROLES, type Role } from '../../src/cluster/roles.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database, Queries } from '../../src/db/database.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { postgresDatabase, sqliteDatabase } from '../support/db/database.js'
import { endPostgres } from '../support/db/postgres.js'
import { until } from '../support/until.js'

t.teardown(endPostgres)

const HEARTBEAT_MS = 3_000
const destinations = Array.from({ length: 60 }, (_, at) => `d${at}.example`)
const without = (...missing: Role[]) => ROLES.filter(role => !missing.includes(role))
const ownedBy = (node: Membership) => destinations.filter(one => node.owns(one)).length

async function openNodes(
  t: Test,
  database: Database,
  rolesOfEach: readonly (readonly Role[])[],
  names: readonly LeaseName[] = ['jobs'],
) {
  const clock = new FakeClock()
  const nodes: Membership[] = []
  for (const [at, roles] of rolesOfEach.entries()) {
    const nodeId = uuidv7(clock.now() + at, new Uint8Array(10))
    const node = new Membership({
      database,
      clock,
      log: new FakeLog(),
      nodeId,
      hostname: `mx${at + 1}.example.com`,
      roles,
    })
    nodes.push(node)
  }
  const leases = nodes.map(node => names.map(name => node.lease(name))[0] ?? node.lease('jobs'))
  for (const node of nodes) {
    await node.join()
    node.noteStarted()
    t.teardown(() => node.leave())
  }
  /** Lets heartbeats pass until the nodes have noticed. */
  const once = (what: string, isSo: () => boolean) =>
    until(what, async () => {
      await clock.advance(HEARTBEAT_MS)
      return isSo()
    })
  const write = (work: (db: Queries) => Promise<unknown>) => database.write(tx => work(tx.db))
  return { clock, nodes, leases, once, write }
}

t.test('only nodes with the role mta have destinations, each destination one of them', async t => {
  const { nodes, once } = await openNodes(t, await postgresDatabase(t), [ROLES, without('mta'), ROLES])
  const sum = () => nodes.reduce((count, node) => count + ownedBy(node), 0)
  await once('all to know each other', () => sum() === destinations.length)
  const [first = 0, second, third = 0] = nodes.map(ownedBy)
  t.equal(second, 0)
  t.ok(first > 0 && third > 0)
})

t.test('only a node with the role scheduler takes the lease', async t => {
  const { leases, once } = await openNodes(t, await postgresDatabase(t), [without('scheduler'), ROLES])
  await once('the lease to be taken', () => leases[1]?.isHeld() === true)
  t.equal(leases[0]?.isHeld(), false)
})

t.test(
  'a drained node loses its destinations and releases its lease; resumed, it has them again',
  async t => {
    const { nodes, leases, once, write } = await openNodes(t, await postgresDatabase(t), [ROLES, ROLES])
    const [one, two] = nodes as [Membership, Membership]
    const [lease, other] = leases as [(typeof leases)[0], (typeof leases)[0]]
    await once('both to know each other', () => one.standing.countTaking('mta') === 2)
    t.equal(lease.isHeld(), true)
    await write(db => insertDrain(db, 'mx1.example.com', 0))
    await once(
      'the drain to be noticed',
      () => lease.isDueForRelease() && ownedBy(two) === destinations.length,
    )
    t.equal(ownedBy(one), 0)
    t.equal(lease.isHeld(), false)
    t.equal(other.isHeld(), false, 'it is not taken before it is released')
    await lease.release()
    await once('the other to have it', () => other.isHeld())
    t.match(one.standing, { state: 'draining', leases: [] })
    await write(db => deleteDrain(db, 'mx1.example.com'))
    await once('it to have its share again', () => ownedBy(one) > 0 && ownedBy(one) + ownedBy(two) === 60)
    t.equal(one.standing.state, 'active')
  },
)

t.test(
  'a node that stops has no destinations from then on, and the others know at their next look',
  async t => {
    const { nodes, leases, once } = await openNodes(t, await postgresDatabase(t), [ROLES, ROLES])
    const [one, two] = nodes as [Membership, Membership]
    await once('both to know each other', () => one.standing.countTaking('mta') === 2)
    await one.retire()
    t.equal(ownedBy(one), 0)
    t.equal(one.standing.state, 'stopping')
    t.equal(leases[0]?.isHeld(), false)
    await leases[0]?.release()
    await once(
      'the other to have all',
      () => ownedBy(two) === destinations.length && leases[1]?.isHeld() === true,
    )
  },
)

t.test('with SQLite the only node has everything until its end', async t => {
  const { nodes, leases } = await openNodes(t, await sqliteDatabase(t), [ROLES])
  const [one] = nodes as [Membership]
  t.equal(ownedBy(one), destinations.length)
  t.match(one.standing, { state: 'active', leases: ['jobs'], heartbeatAgeMs: 0, isShared: false })
  await one.retire()
  t.equal(ownedBy(one), destinations.length)
  t.equal(leases[0]?.isHeld(), true)
  t.equal(leases[0]?.isDueForRelease(), false)
  t.equal(one.standing.state, 'stopping')
})

t.test(
  'nodes share the leases; what a node has too many of it gives up, and those of a dead one move',
  async t => {
    const database = await postgresDatabase(t)
    const { nodes, once, write, clock } = await openNodes(t, database, [ROLES, ROLES, ROLES], LEASES)
    const [one, two, three] = nodes as [Membership, Membership, Membership]
    const counts = () => nodes.map(({ standing }) => standing.leases.length)
    /** As the server does: releases what is due. */
    const follow = async () => {
      for (const node of nodes)
        for (const name of LEASES) {
          const lease = node.lease(name)
          if (lease.isDueForRelease()) await lease.release()
        }
    }
    await until('all to have their share', async () => {
      await clock.advance(HEARTBEAT_MS)
      await follow()
      return String(counts()) === '3,2,2'
    })
    for (const name of LEASES) {
      const holders = nodes.filter(node => node.lease(name).isHeld())
      t.equal(holders.length, 1, `${name} is held once`)
    }
    await clock.advance(HEARTBEAT_MS)
    t.same(counts(), [3, 2, 2], 'nothing moves to and fro')
    await write(db => db.deleteFrom('nodes').where('id', 'in', [one.nodeId, two.nodeId]).execute())
    await once('the last one to have all', () => three.standing.leases.length === LEASES.length)
  },
)

t.test(
  'work whose lease came with a late answer of the database is begun once the node is trusted',
  async t => {
    const shared = await postgresDatabase(t)
    const clock = new FakeClock()
    let takesMs = 10_000
    const database: Database = Object.create(shared, {
      write: {
        value: async (work: Parameters<Database['write']>[0]) => {
          const result = await shared.write(work)
          clock.skip(takesMs)
          return result
        },
      },
    })
    const nodeId = uuidv7(clock.now(), new Uint8Array(10))
    const node = new Membership({ database, clock, log: new FakeLog(), nodeId, hostname: 'mx', roles: ROLES })
    t.teardown(() => node.leave())
    const lease = node.lease('jobs')
    let begun = 0
    node.whenChanged(() => (begun += lease.isHeld() ? 1 : 0))
    await node.join()
    t.match(node.standing, { leases: ['jobs'], isTrusted: false })
    takesMs = 0
    await until('the work to be begun', async () => {
      await clock.advance(HEARTBEAT_MS)
      return begun > 0
    })
    t.equal(lease.isHeld(), true)
  },
)

t.test('how many leases each node holds differs by one at most, and as few move as possible', async t => {
  const node = (id: string, leases: readonly LeaseName[]) => ({ id, leases })
  const targets = (...takers: ReturnType<typeof node>[]) =>
    Object.fromEntries(leaseTargets(takers, LEASES.length))
  t.same(targets(node('a', [])), { a: 7 })
  t.same(targets(node('a', LEASES), node('b', [])), { a: 4, b: 3 })
  t.same(targets(node('a', []), node('b', LEASES)), { a: 3, b: 4 }, 'the one that has them keeps more')
  t.same(targets(node('a', []), node('b', []), node('c', LEASES)), { a: 2, b: 2, c: 3 })
})
