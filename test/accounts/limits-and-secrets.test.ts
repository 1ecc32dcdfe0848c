/** Hourly and daily limits, and the appliance's own secrets, on both databases. */
import t from 'tap'
import { plainBox } from '../../src/accounts/secret-box.js'
import { ensureSecret, readSecrets } from '../../src/accounts/secret-store.js'
import {
  allowanceWithinLimits,
  countAgainstLimits,
  returnToLimits,
  type LimitedWorkspace,
} from '../../src/accounts/sending-limit-store.js'
import { insertWorkspace, NEW_WORKSPACE } from '../../src/accounts/workspace-store.js'
import type { Database } from '../../src/db/database.js'
import { eachDatabase } from '../support/db/database.js'
import { DAY_MS, NOW } from '../support/mailroom.js'

const HOUR_MS = 3_600_000

const send = (
  database: Database,
  recipients: number,
  now = NOW,
  limits: Partial<LimitedWorkspace> = {},
  id = 'w1',
) => {
  const workspace = { id, hourlyLimit: 10, dailyLimit: 25, timezone: 'UTC', ...limits }
  return database.write(tx => countAgainstLimits(tx.db, workspace, recipients, now))
}

eachDatabase(t, 'the last place of the hour can be taken, the next one is refused', async (t, database) => {
  await send(database, 9)
  await send(database, 1)
  await t.rejects(send(database, 1), {
    code: 'limit_reached',
    message: 'the workspace may send 10 mails per hour; 0 are left in this one',
  })
})

eachDatabase(
  t,
  'a request that would cross the limit is refused whole and counts nothing',
  async (t, database) => {
    await send(database, 8)
    await t.rejects(send(database, 3), {
      code: 'limit_reached',
      message: 'the workspace may send 10 mails per hour; 2 are left in this one',
    })
    await send(database, 2)
  },
)

eachDatabase(t, 'a new clock hour starts at 0 while the day keeps counting', async (t, database) => {
  await send(database, 10, NOW + HOUR_MS - 1)
  await send(database, 10, NOW + HOUR_MS)
  await t.rejects(send(database, 6, NOW + 2 * HOUR_MS), {
    code: 'limit_reached',
    message: 'the workspace may send 25 mails per day; 5 are left in this one',
  })
  await send(database, 5, NOW + 2 * HOUR_MS)
  await t.rejects(send(database, 1, NOW + 13 * HOUR_MS), { code: 'limit_reached' })
  await send(database, 10, Date.UTC(2026, 0, 6))
})

eachDatabase(t, 'two requests at once cannot both take the last places', async (t, database) => {
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => send(database, 4)))
  t.equal(results.filter(result => result.status === 'fulfilled').length, 2)
})

eachDatabase(t, 'a limit of 0 means unlimited, and workspaces do not share limits', async (t, database) => {
  await send(database, 1_000_000, NOW, { hourlyLimit: 0, dailyLimit: 0 })
  await send(database, 10, NOW, { hourlyLimit: 10, dailyLimit: 10 }, 'w2')
  await t.rejects(send(database, 1, NOW, { hourlyLimit: 0, dailyLimit: 10 }, 'w2'), /per day/)
})

eachDatabase(t, 'a clock set back an hour counts in the hour it shows', async (t, database) => {
  await send(database, 10, NOW)
  await send(database, 10, NOW - HOUR_MS)
  await t.rejects(send(database, 6, NOW + DAY_MS - 11 * HOUR_MS), { code: 'limit_reached' })
})

eachDatabase(
  t,
  'a clock set back or ahead and back gives nothing a second time, and takes nothing from the right time',
  async (t, database) => {
    await send(database, 10, NOW)
    for (const wrong of [NOW - 2 * HOUR_MS, NOW + 365 * DAY_MS]) {
      await send(database, 10, wrong)
      await t.rejects(send(database, 1, NOW), { code: 'limit_reached' }, 'used up before')
      await t.rejects(send(database, 1, wrong), { code: 'limit_reached' }, 'and there as well')
    }
    await send(database, 5, NOW + HOUR_MS)
    await send(database, 10, NOW + DAY_MS)
  },
)

eachDatabase(t, 'of windows only the latest are remembered', async (t, database) => {
  for (let hour = 0; hour < 80; hour += 1) await send(database, 1, NOW + hour * HOUR_MS)
  const rows = await database.reader.selectFrom('sending_usage').select('window_kind').execute()
  t.equal(rows.filter(row => row.window_kind === 'hour').length, 64)
  t.equal(rows.filter(row => row.window_kind === 'day').length, 4)
})

const daily = (timezone: string) => ({ hourlyLimit: 0, dailyLimit: 25, timezone })
/** The last and the first moment of two days there; the second pair beside a day of 23 hours, the third of 25. */
const MIDNIGHTS = {
  'Pacific/Kiritimati': ['2026-01-05T10:00:00Z'],
  'Pacific/Honolulu': ['2026-01-06T10:00:00Z'],
  'Asia/Kathmandu': ['2026-01-05T18:15:00Z'],
  'Europe/Berlin': [
    '2026-03-28T23:00:00Z',
    '2026-03-29T22:00:00Z',
    '2026-10-24T22:00:00Z',
    '2026-10-25T23:00:00Z',
  ],
  // There is no midnight: clocks went from 23:59 to 01:00.
  'America/Sao_Paulo': ['2018-11-04T03:00:00Z'],
} as const

for (const [zone, midnights] of Object.entries(MIDNIGHTS))
  eachDatabase(t, `${zone}: the daily limit is one of days there`, async (t, database) => {
    for (const midnight of midnights.map(Date.parse)) {
      await send(database, 25, midnight - 1, daily(zone))
      const refused = send(database, 1, midnight - 1, daily(zone))
      const next = new Date(midnight).toISOString()
      await t.rejects(refused, {
        code: 'limit_reached',
        message: `the next begins at ${next}`,
        retryAfterMs: 1,
      })
      const workspace = { id: 'w1', ...daily(zone) }
      t.same(await allowanceWithinLimits(database.reader, workspace, midnight - 1), {
        mails: 0,
        moreAt: midnight,
        fullest: { kind: 'day', limit: 25 },
      })
      await send(database, 5, midnight, daily(zone))
      t.equal((await allowanceWithinLimits(database.reader, workspace, midnight)).mails, 20, next)
      // Leaves room for the next midnight, which may end this day.
      await database.write(tx => tx.db.deleteFrom('sending_usage').execute())
    }
  })

eachDatabase(t, 'another time zone makes no room for mail on the same day', async (t, database) => {
  await send(database, 20, NOW, daily('UTC'))
  // Midnight was just now there, and eight hours ago; on the first day of an upgrade it was so in UTC.
  for (const zone of ['Pacific/Kiritimati', 'Asia/Shanghai', 'Pacific/Honolulu', 'UTC']) {
    await t.rejects(
      send(database, 6, NOW + HOUR_MS, daily(zone)),
      { message: '5 are left in this one' },
      zone,
    )
    await send(database, 1, NOW, daily(zone))
    await database.write(tx => tx.db.updateTable('sending_usage').set({ accepted: 20 }).execute())
  }
})

eachDatabase(t, 'after the time zone changed, the next day has all its room', async (t, database) => {
  await send(database, 20, NOW, daily('UTC'))
  await send(database, 5, NOW + 5 * HOUR_MS, daily('Europe/Berlin'))
  const midnight = Date.parse('2026-01-05T23:00:00Z')
  await t.rejects(send(database, 1, midnight - 1, daily('Europe/Berlin')), { code: 'limit_reached' })
  await send(database, 25, midnight, daily('Europe/Berlin'))
})

eachDatabase(t, 'cancelled mail returns to the day of its workspace', async (t, database) => {
  const workspace = { ...NEW_WORKSPACE, id: 'w1', name: 'w1', ...daily('Pacific/Kiritimati'), createdAt: NOW }
  await database.write(tx => insertWorkspace(tx.db, workspace))
  const now = Date.parse('2026-01-05T09:59:00Z')
  await send(database, 25, now, workspace)
  await database.write(tx => returnToLimits(tx.db, 'w1', 10, now))
  t.equal((await allowanceWithinLimits(database.reader, workspace, now)).mails, 10)
})

eachDatabase(t, 'a secret is made once and stays', async (t, database) => {
  const first = Buffer.alloc(32, 1)
  t.same(await ensureSecret(database, 'return_path', first, NOW, plainBox), [{ version: 1, secret: first }])
  t.same(await ensureSecret(database, 'return_path', Buffer.alloc(32, 2), NOW + 1, plainBox), [
    { version: 1, secret: first },
  ])
})

eachDatabase(
  t,
  'two processes that make the secret at once end up with the same one',
  async (t, database) => {
    const made = await Promise.all(
      [1, 2, 3].map(n => ensureSecret(database, 'return_path', Buffer.alloc(32, n), NOW, plainBox)),
    )
    t.same(made[1], made[0])
    t.same(made[2], made[0])
    t.same(await readSecrets(database.reader, 'return_path', plainBox), made[0])
  },
)
