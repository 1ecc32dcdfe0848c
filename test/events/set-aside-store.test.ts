/** Events that a consumer could not take, on both databases: kept whole, tried again when somebody wants it, dropped. */
import t from 'tap'
import {
  countSetAside,
  dropSetAside,
  listSetAside,
  listRetryRequested,
  setAside,
  requestRetry,
  type SetAsideEvent,
} from '../../src/events/set-aside-store.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'
import { walkPages } from '../support/walk-pages.js'

const setAsideBy = (consumer: string, seq: number, error = 'no such contact: "ann"'): SetAsideEvent => ({
  consumer,
  event: {
    ...{ seq, kind: 'email.failed', workspaceId: 'w1', messageId: `m${seq}`, isSandbox: false },
    ...{ occurredAt: NOW, payload: { to: 'ünï@example.com', reason: "it's broken" } },
  },
  error,
  setAsideAt: NOW,
})

eachDatabase(t, 'set-aside events are listed in full, oldest first, up to the limit', async (t, database) => {
  const all = [setAsideBy('contacts', 2), setAsideBy('statistics', 2), setAsideBy('contacts', 9)]
  await database.write(async tx => {
    for (const one of [...all].reverse()) await setAside(tx.db, one)
  })
  t.same((await listSetAside(database.reader, { limit: 10, offset: 0 })).items, all)
  t.same((await listSetAside(database.reader, { limit: 1, offset: 0 })).items, all.slice(0, 1))
  t.same(await walkPages(page => listSetAside(database.reader, page)), all, 'by cursor')
  t.equal(await countSetAside(database.reader), 3)
})

eachDatabase(
  t,
  'an event that fails again is listed once, with its last error and no retry request',
  async (t, database) => {
    await database.write(async tx => {
      await setAside(tx.db, setAsideBy('contacts', 2))
      await requestRetry(tx.db, { isAll: true })
      await setAside(tx.db, setAsideBy('contacts', 2, 'x'.repeat(5_000)))
    })
    const [kept] = (await listSetAside(database.reader, { limit: 10, offset: 0 })).items
    t.equal(await countSetAside(database.reader), 1)
    t.equal(kept?.error, 'x'.repeat(2_000), 'cut to what a reader needs')
    t.same(await listRetryRequested(database.reader), [])
  },
)

eachDatabase(t, 'a retry or drop selects one event of a consumer, or all', async (t, database) => {
  const [one, other] = [setAsideBy('contacts', 2), setAsideBy('statistics', 2)]
  await database.write(async tx => {
    await setAside(tx.db, one)
    await setAside(tx.db, other)
  })
  t.equal(await database.write(tx => requestRetry(tx.db, { consumer: 'contacts', seq: 3 })), 0)
  t.equal(await database.write(tx => requestRetry(tx.db, { consumer: 'contacts', seq: 2 })), 1)
  t.same(await listRetryRequested(database.reader), [one])
  t.equal(await database.write(tx => dropSetAside(tx.db, { consumer: 'contacts', seq: 2 })), 1)
  t.same((await listSetAside(database.reader, { limit: 10, offset: 0 })).items, [other])
  t.equal(await database.write(tx => dropSetAside(tx.db, { isAll: true })), 1)
  t.equal(await countSetAside(database.reader), 0)
})
