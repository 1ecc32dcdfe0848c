/** How a node on PostgreSQL learns what others changed: by notifications, and where those are lost, after a while. */
import t, { type Test } from 'tap'
import { setRestoreHold } from '../../src/accounts/restore-hold-store.js'
import type { Database } from '../../src/db/database.js'
import { openPostgres, type PostgresOptions } from '../../src/db/postgres/open-postgres.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemRandom } from '../../src/world/random.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { newDatabase, postgresUrl, realPostgres } from '../support/db/real-postgres.js'
import { NOW } from '../support/mailroom.js'
import { until } from '../support/until.js'

/** All topics count as changed when it begins to listen. */
async function listening(t: Test, options: Partial<PostgresOptions>): Promise<Database> {
  const database = await realPostgres(t, { ...options, isServing: true })
  await until('it to listen', () => database.changes.version('inbound') > 0)
  return database
}

t.test('rows that a worker of another node waits for are announced with their commit', async t => {
  const [url, clock] = [await postgresUrl(t), new FakeClock()]
  const [here, there] = [await listening(t, { url, clock }), await listening(t, { url, clock })]
  const before = there.changes.version('queue')
  await here.write(tx => setRestoreHold(tx.db, NOW))
  await clock.advance(100)
  await until('the change to be known there', () => there.changes.version('queue') > before)
  t.equal(there.changes.version('inbound'), before, 'nothing else counts as changed')
})

t.test('a command announces what it wrote before it ends', async t => {
  const [url, clock] = [await postgresUrl(t), new FakeClock()]
  const there = await listening(t, { url, clock })
  const before = there.changes.version('queue')
  const command = await openPostgres({ url, clock, random: systemRandom, log: new FakeLog() })
  await command.write(tx => setRestoreHold(tx.db, NOW))
  await command[Symbol.asyncDispose]()
  await until('the change to be known there', () => there.changes.version('queue') > before)
})

t.test('while notifications arrive, nothing counts as changed but once in half a minute', async t => {
  const [url, clock] = [await postgresUrl(t), new FakeClock()]
  const { changes } = await listening(t, { url, clock })
  const version = () => changes.version('inbound')
  await until('it to hear itself', async () => {
    const before = version()
    await clock.advance(2_000)
    return version() === before
  })
  const before = version()
  await clock.advance(4_000)
  t.equal(version(), before)
  // A node that died between its commit and its notification told nobody.
  await clock.advance(30_000)
  t.ok(version() > before)
})

t.test('while notifications do not arrive, everything counts as changed every two seconds', async t => {
  const [url, clock] = [await postgresUrl(t), new FakeClock()]
  // As a pooler that does not pass them on.
  const { changes, reader } = await listening(t, { url, clock, listenUrl: newDatabase(t) })
  for (let second = 0; second < 20; second += 2) {
    const before = changes.version('inbound')
    await clock.advance(2_000)
    t.ok(changes.version('inbound') > before)
    await reader.selectFrom('restore_holds').selectAll().execute()
  }
})
