/** Failed logins count wherever they were tried. */
import t from 'tap'
import { LoginGuard } from '../../src/accounts/login-guard.js'
import { SharedLoginJournal } from '../../src/accounts/login-journal.js'
import type { Database } from '../../src/db/database.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { onPostgres } from '../support/db/database.js'

const limits = { failures: 3, lockoutMs: 60_000 }
const login = (password = 'guess') => ({ account: 'ann@example.com', password })

function openGuard(database: Database, nodeId: string, clock = new FakeClock()) {
  const journal = new SharedLoginJournal({ database, clock, log: new FakeLog(), nodeId, limits })
  return new LoginGuard(clock, limits, journal)
}

onPostgres(t, 'failures at two nodes lock the account at both, exactly at the limit', async (t, database) => {
  const [one, two] = [openGuard(database, 'n1'), openGuard(database, 'n2')]
  t.same(await one.failed('192.0.2.1', login()), { throttledForMs: 0 })
  t.equal(await two.lockedForMs('192.0.2.1', login()), 0)
  t.same(await two.failed('192.0.2.1', login()), { throttledForMs: 0 })
  t.equal(await one.lockedForMs('192.0.2.1', login()), 0)
  t.same(await one.failed('192.0.2.1', login()), { throttledForMs: 0, lockedOut: 'address' })
  t.ok((await two.lockedForMs('192.0.2.1', login())) > 55_000)
  t.equal(await two.lockedForMs('192.0.2.9', login()), 0, 'not from another address')
  t.match(await two.locks(), [
    { scope: 'address', address: '192.0.2.1', failures: 3 },
    { scope: 'account_at_address', account: 'ann@example.com', failures: 3 },
  ])
  t.ok(
    (await openGuard(database, 'n3').lockedForMs('192.0.2.1', login())) > 55_000,
    'also at a node that starts later',
  )
})

onPostgres(t, 'checks at the same moment count each failure once', async (t, database) => {
  const [one, two] = [openGuard(database, 'n1'), openGuard(database, 'n2')]
  for (let at = 0; at < 2; at += 1) await one.failed('192.0.2.1', login())
  const locked = await Promise.all(Array.from({ length: 10 }, () => two.lockedForMs('192.0.2.1', login())))
  t.ok(locked.every(ms => ms === 0))
  t.match(await two.failed('192.0.2.1', login()), { lockedOut: 'address' })
})

onPostgres(t, 'unlocking at one node unlocks at all, and so does a success', async (t, database) => {
  const [one, two] = [openGuard(database, 'n1'), openGuard(database, 'n2')]
  for (let at = 0; at < 3; at += 1) await one.failed('192.0.2.1', login())
  t.equal(await two.forgive('192.0.2.1'), true)
  t.equal(await one.lockedForMs('192.0.2.1', login()), 0)
  for (let at = 0; at < 2; at += 1) await one.failed('192.0.2.2', login())
  await two.lockedForMs('192.0.2.2', login('right'))
  await two.succeeded('192.0.2.2', login('right'))
  t.equal(await one.lockedForMs('192.0.2.2', login()), 0)
  t.same(await one.failed('192.0.2.2', login()), { throttledForMs: 0 }, 'counts from one again')
})

onPostgres(t, 'a flood of failures stores a bounded number of rows', async (t, database) => {
  const clock = new FakeClock()
  const guard = openGuard(database, 'n1', clock)
  await Promise.all(
    Array.from({ length: 300 }, (_, at) => guard.failed(`192.0.2.${at % 250}`, login(String(at)))),
  )
  const { rows } = await database.reader
    .selectFrom('login_failures')
    .select(e => e.fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  t.equal(rows, 200)
})
