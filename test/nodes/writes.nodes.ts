/** Writes on a real PostgreSQL: shared transactions, conflicts between two nodes, and a server that goes away. */
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import { insertNode } from '../../src/cluster/node-store.js'
import { ROLES } from '../../src/cluster/roles.js'
import { AppError } from '../../src/core/errors.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database, Tx } from '../../src/db/database.js'
import { systemClock } from '../../src/world/time/clock.js'
import { until } from '../support/until.js'
import {
  createDatabase,
  dropDatabase,
  migratedUrl,
  postgresUrl,
  psql,
  realPostgres,
  reusedDatabase,
  reusing,
} from '../support/db/real-postgres.js'
import type { ReusedDatabases } from '../support/db/reused-databases.js'

const NOW = 1_767_607_200_000

/** With a table of counters, for the tests of this file. */
let databases: ReusedDatabases | undefined

function withCounters(): ReusedDatabases {
  const original = createDatabase(migratedUrl())
  process.once('exit', () => dropDatabase(original))
  psql(
    original,
    "create table counters (name text primary key, value bigint not null); insert into counters values ('a', 0)",
  )
  return reusing(original)
}

async function openTwo(test: Test) {
  const url = await reusedDatabase(test, (databases ??= withCounters()))
  return { url, one: await realPostgres(test, { url }), two: await realPostgres(test, { url }) }
}

const valueOf = (url: string) => Number(psql(url, "select value from counters where name = 'a'")[0])

/** Decides from what it read, as services do. */
async function readAndAdd({ db }: Tx): Promise<number> {
  const { rows } = await sql<{ value: number }>`select value from counters where name = 'a'`.execute(db)
  const value = (rows[0]?.value ?? 0) + 1
  await sql`update counters set value = ${value} where name = 'a'`.execute(db)
  return value
}

t.test('works of two nodes that read and change one row all count', async t => {
  const { url, one, two } = await openTwo(t)
  const results = await Promise.all(
    Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? one : two).write(readAndAdd)),
  )
  t.equal(valueOf(url), 40)
  t.equal(new Set(results).size, 40, 'nobody decided from a value that another had changed')
})

t.test('a slow work is stored although another node changes the same row all the time', async t => {
  const { url, one, two } = await openTwo(t)
  const add = sql`update counters set value = value + 1 where name = 'a'`
  const slow = one.write(async ({ db }) => {
    await sql`select pg_sleep(0.03)`.execute(db)
    await add.execute(db)
  })
  let isStored = false
  let others = 0
  const ended = slow.then(() => (isStored = true))
  const busy = async () => {
    for (; !isStored; others += 1) {
      await two.write(({ db }) => add.execute(db))
      if (others > 20_000) throw new Error('it was never stored')
    }
  }
  await Promise.all([ended, busy(), busy()])
  t.equal(valueOf(url), others + 1)
})

t.test(
  'works that wait at the same time share a transaction, and one that throws undoes nothing of the others',
  async t => {
    const { url, one } = await openTwo(t)
    const transactions = new Set<string>()
    const noted = async (tx: Tx) => {
      const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(tx.db)
      transactions.add(rows[0]?.id ?? '')
      return readAndAdd(tx)
    }
    const refused = async (tx: Tx) => {
      await readAndAdd(tx)
      throw new AppError('conflict', 'refused')
    }
    const results = await Promise.allSettled([one.write(noted), one.write(noted), one.write(noted)])
    t.ok(results.every(({ status }) => status === 'fulfilled'))
    t.equal(transactions.size, 1)
    const mixed = await Promise.allSettled([one.write(readAndAdd), one.write(refused), one.write(readAndAdd)])
    t.same(
      mixed.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    t.equal(valueOf(url), 5)
  },
)

t.test(
  'when a group runs again after a conflict, a work that then fails takes none of the others with it',
  async t => {
    const { url, one } = await openTwo(t)
    const runs = { failing: 0, conflicting: 0 }
    const failing = async (tx: Tx) => {
      await readAndAdd(tx)
      if (++runs.failing > 1) throw new AppError('conflict', 'refused')
    }
    const conflicting = async (tx: Tx) => {
      if (++runs.conflicting === 1) throw Object.assign(new Error('could not serialize'), { code: '40001' })
      await readAndAdd(tx)
    }
    const results = await Promise.allSettled([
      one.write(readAndAdd),
      one.write(failing),
      one.write(conflicting),
    ])
    t.same(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    t.equal(valueOf(url), 2)
  },
)

t.test('callbacks of a work that ran twice are called once, and an abandoned run is undone', async t => {
  const { one } = await openTwo(t)
  const calls: string[] = []
  const counted = async (tx: Tx) => {
    tx.onCommit(() => calls.push('committed'))
    tx.onRollback?.(() => calls.push('undone'))
    await readAndAdd(tx)
  }
  const failing = async (tx: Tx) => {
    await readAndAdd(tx)
    throw new Error('no')
  }
  await Promise.allSettled([one.write(counted), one.write(failing)])
  t.same(calls, ['undone', 'committed'])
})

t.test('after the connections are cut, writes are refused or succeed, and later ones succeed', async t => {
  const { url, one } = await openTwo(t)
  await one.write(readAndAdd)
  const cut = () =>
    psql(
      url,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'postroad%'`,
    )
  const slow = one.write(async tx => {
    await readAndAdd(tx)
    cut()
    return readAndAdd(tx)
  })
  await t.rejects(slow, { code: 'unavailable' })
  t.equal(valueOf(url), 1)
  t.equal(await one.write(readAndAdd), 2)
})

t.test('a node that was removed can neither write nor finish a write', async t => {
  const { url, one, two } = await openTwo(t)
  const id = uuidv7(NOW, new Uint8Array(10))
  await one.write(tx => insertNode(tx.db, { id, name: 'one', roles: ROLES }, NOW, 60_000))
  one.actAs?.(id)
  t.equal(await one.write(readAndAdd), 1)
  const remove = (database: Database) =>
    database.write(async tx => {
      await sql`delete from nodes where id = ${id}`.execute(tx.db)
    })
  // Its row cannot be removed while it writes.
  let removed: Promise<void> | undefined
  await one.write(async tx => {
    removed = remove(two)
    return readAndAdd(tx)
  })
  await removed
  await t.rejects(one.write(readAndAdd), { code: 'unavailable', message: /removed/ })
  t.equal(valueOf(url), 2)
})

t.test('what one node changed is notified to the other, by topic', async t => {
  const url = await postgresUrl(t)
  const served = { url, clock: systemClock, isServing: true } as const
  const [one, two] = [await realPostgres(t, served), await realPostgres(t, served)]
  // Every topic counts as changed now and then; what is ahead of the others was notified.
  const ahead = () => two.changes.version('campaigns') - two.changes.version('keys')
  t.equal(ahead(), 0)
  await until('the notification', async () => {
    await one.write(async tx => tx.changed('campaigns'))
    return ahead() > 0
  })
})
