/** Suppressions of addresses and whole domains, on both databases. */
import t from 'tap'
import {
  deleteSuppression,
  findSuppressed,
  insertSuppression,
  listSuppressions,
  suppressOrWiden,
  type Suppression,
} from '../../src/deliverability/suppressions/suppression-store.js'
import type { Database } from '../../src/db/database.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const suppress = (database: Database, email: string, more: Partial<Suppression> = {}) =>
  database.write(tx =>
    insertSuppression(tx.db, {
      workspaceId: 'w1',
      email,
      reason: 'manual',
      scope: 'all',
      sourceMessageId: null,
      createdAt: NOW,
      ...more,
    }),
  )
const suppressed = async (database: Database, emails: string[], workspace = 'w1', isMarketing = false) =>
  [...(await findSuppressed(database.reader, workspace, emails, isMarketing))].sort()

eachDatabase(t, 'a suppressed address is found among others, in its workspace only', async (t, database) => {
  await suppress(database, 'ann@example.com')
  t.same(await suppressed(database, ['bob@example.com', 'ann@example.com', 'ann@example.org']), [
    'ann@example.com',
  ])
  t.same(await suppressed(database, ['ann@example.com'], 'w2'), [])
  t.same(await suppressed(database, []), [])
})

eachDatabase(
  t,
  'a whole domain is suppressed, but not its subdomains or similar names',
  async (t, database) => {
    await suppress(database, '@example.com')
    t.same(
      await suppressed(database, [
        'ann@example.com',
        'bob@example.com',
        'ann@sub.example.com',
        'ann@notexample.com',
      ]),
      ['ann@example.com', 'bob@example.com'],
    )
    t.same(await suppressed(database, ['"a@example.org"@example.com']), ['"a@example.org"@example.com'])
    t.same(await suppressed(database, ['"a@example.com"@example.org']), [])
  },
)

eachDatabase(t, 'an unsubscribe stops marketing mail only', async (t, database) => {
  await suppress(database, 'ann@example.com', { scope: 'marketing', reason: 'unsubscribe' })
  t.same(await suppressed(database, ['ann@example.com']), [])
})

eachDatabase(t, 'a second entry for an address does not change the first', async (t, database) => {
  t.equal(await suppress(database, 'ann@example.com', { reason: 'complaint' }), true)
  t.equal(await suppress(database, 'ann@example.com', { reason: 'manual' }), false)
  t.equal(await suppress(database, 'ann@example.com', { workspaceId: 'w2' }), true)
  t.match(await listSuppressions(database.reader, 'w1', { limit: 10, offset: 0 }), [{ reason: 'complaint' }])
})

eachDatabase(t, 'an entry is widened from marketing to all mail, and never narrowed', async (t, database) => {
  const put = (more: Partial<Suppression>) =>
    database.write(tx =>
      suppressOrWiden(tx.db, {
        workspaceId: 'w1',
        email: 'ann@example.com',
        reason: 'unsubscribe',
        scope: 'marketing',
        sourceMessageId: null,
        createdAt: NOW,
        ...more,
      }),
    )
  t.equal(await put({}), 'added')
  t.equal(await put({}), 'known')
  t.equal(await put({ workspaceId: 'w2' }), 'added')
  t.equal(await put({ scope: 'all', reason: 'hard_bounce', createdAt: NOW + 1 }), 'widened')
  t.equal(await put({ scope: 'all', reason: 'complaint' }), 'known')
  t.equal(await put({}), 'known')
  const page = { limit: 10, offset: 0 }
  t.match(await listSuppressions(database.reader, 'w1', page), [
    { scope: 'all', reason: 'hard_bounce', createdAt: NOW + 1 },
  ])
  t.match(await listSuppressions(database.reader, 'w2', page), [{ scope: 'marketing' }])
})

eachDatabase(t, 'a removed address is mailed again', async (t, database) => {
  await suppress(database, 'ann@example.com')
  const remove = (email: string) => database.write(tx => deleteSuppression(tx.db, 'w1', email))
  t.equal(await remove('bob@example.com'), false)
  t.equal(await remove('ann@example.com'), true)
  t.same(await suppressed(database, ['ann@example.com']), [])
})

eachDatabase(t, 'entries are listed newest first, in pages', async (t, database) => {
  await suppress(database, 'a@example.com', { sourceMessageId: 'm1', reason: 'hard_bounce' })
  await suppress(database, 'b@example.com')
  await suppress(database, 'c@example.com')
  const page = async (limit: number, offset: number) =>
    (await listSuppressions(database.reader, 'w1', { limit, offset })).map(({ email }) => email)
  t.same(await page(2, 0), ['c@example.com', 'b@example.com'])
  t.same(await page(2, 2), ['a@example.com'])
  t.match(await listSuppressions(database.reader, 'w1', { limit: 1, offset: 2 }), [
    { workspaceId: 'w1', sourceMessageId: 'm1', reason: 'hard_bounce', scope: 'all', createdAt: NOW },
  ])
})

eachDatabase(t, 'a thousand addresses are looked up at once', async (t, database) => {
  await suppress(database, 'person500@example.com')
  const emails = Array.from({ length: 1_000 }, (_, n) => `person${n}@example.com`)
  t.same(await suppressed(database, emails), ['person500@example.com'])
})
