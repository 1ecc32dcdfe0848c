/** Failed logins count wherever they were tried. */
import t from 'tap'
import { LoginGuard } from '../../src/accounts/login-guard.js'
import { SharedLoginJournal } from '../../src/accounts/login-journal.js'
import type { Database } from '../../src/db/database.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { onPostgres } from '../support/db/database.js'
import { fail, refusedMs } from '../support/logins.js'

const limits = { failures: 3, lockoutMs: 60_000 }
const login = (password = 'guess') => ({ account: 'ann@example.com', password })

function openGuard(database: Database, nodeId: string, clock = new FakeClock()) {
  const journal = new SharedLoginJournal({ database, clock, log: new FakeLog(), nodeId, limits })
  return new LoginGuard(clock, limits, journal)
}

onPostgres(t, 'failures at two nodes lock the account at both, exactly at the limit', async (t, database) => {
  const [one, two] = [openGuard(database, 'n1'), openGuard(database, 'n2')]
  t.same(await fail(one, '192.0.2.1', login()), { throttledForMs: 0 })
  t.equal(await refusedMs(two, '192.0.2.1', login()), 0)
  t.same(await fail(two, '192.0.2.1', login()), { throttledForMs: 0 })
  t.equal(await refusedMs(one, '192.0.2.1', login()), 0)
  t.same(await fail(one, '192.0.2.1', login()), { throttledForMs: 0, lockedOut: 'address' })
  t.ok((await refusedMs(two, '192.0.2.1', login())) > 55_000)
  t.equal(await refusedMs(two, '192.0.2.9', login()), 0, 'not from another address')
  t.match(await two.locks(), [
    { scope: 'address', address: '192.0.2.1', failures: 3 },
    { scope: 'account_at_address', account: 'ann@example.com', failures: 3 },
  ])
  t.ok(
    (await refusedMs(openGuard(database, 'n3'), '192.0.2.1', login())) > 55_000,
    'also at a node that starts later',
  )
})

onPostgres(t, 'checks at the same moment count each failure once', async (t, database) => {
  const [one, two] = [openGuard(database, 'n1'), openGuard(database, 'n2')]
  for (let at = 0; at < 2; at += 1) await fail(one, '192.0.2.1', login())
  t.equal(await refusedMs(two, '192.0.2.1', login()), 0, 'there is one left')
  const effects = await Promise.all(Array.from({ length: 10 }, () => fail(two, '192.0.2.1', login())))
  t.ok(effects.filter(effect => effect !== undefined).length <= 1)
  t.equal(await fail(one, '192.0.2.1', login()), undefined)
})

onPostgres(t, 'unlocking at one node unlocks at all, and so does a success', async (t, database) => {
  const [one, two] = [openGuard(database, 'n1'), openGuard(database, 'n2')]
  for (let at = 0; at < 3; at += 1) await fail(one, '192.0.2.1', login())
  t.equal(await two.forgive('192.0.2.1'), true)
  t.equal(await refusedMs(one, '192.0.2.1', login()), 0)
  for (let at = 0; at < 2; at += 1) await fail(one, '192.0.2.2', login())
  const attempt = await two.reserve('192.0.2.2', login('right'))
  if (typeof attempt === 'number') throw new Error('it was refused')
  await attempt.succeeded()
  t.equal(await refusedMs(one, '192.0.2.2', login()), 0)
  t.same(await fail(one, '192.0.2.2', login()), { throttledForMs: 0 }, 'counts from one again')
})

onPostgres(t, 'a flood of failures stores a bounded number of rows', async (t, database) => {
  const clock = new FakeClock()
  const guard = openGuard(database, 'n1', clock)
  await Promise.all(
    Array.from({ length: 300 }, (_, at) =>
      fail(guard, `192.0.2.${at % 250}`, { account: `user ${at}`, password: 'guess' }),
    ),
  )
  const { rows } = await database.reader
    .selectFrom('login_failures')
    .select(e => e.fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  t.equal(rows, 200)
})

onPostgres(
  t,
  'attempts at the same moment at two nodes are never checked more often than they may fail',
  async (t, database) => {
    const guards = [openGuard(database, 'n1'), openGuard(database, 'n2')]
    const reserved = await Promise.all(
      guards.flatMap(guard =>
        Array.from({ length: 150 }, (_, at) =>
          guard.reserve('192.0.2.1', login(`guess ${at}`)).then(async attempt => {
            if (typeof attempt === 'number') return false
            await attempt.failed()
            return true
          }),
        ),
      ),
    )
    const checked = reserved.filter(Boolean).length
    t.ok(checked <= limits.failures, `${checked} were checked`)
  },
)
