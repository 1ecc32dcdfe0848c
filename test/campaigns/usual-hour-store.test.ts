/** Usual hours and due recipients mean the same on both databases. */
import t from 'tap'
import {
  addContactHours,
  findUsualHours,
  listContactHours,
} from '../../src/audience/contacts/contact-hours-store.js'
import {
  insertDueRecipients,
  insertRecipients,
  markHanded,
  nextDueAt,
  nextDuePending,
} from '../../src/campaigns/model/recipient-store.js'
import { eachDatabase } from '../support/db/database.js'

eachDatabase(
  t,
  'the hour with most visits is the usual one, the earliest of several',
  async (t, database) => {
    await database.write(async ({ db }) => {
      const at = (contact: number, hour: number, visits: number) => ({ contact, hour, visits })
      await addContactHours(db, [at(1, 20, 1), at(1, 7, 2), at(2, 23, 1), at(2, 5, 1)])
      await addContactHours(db, [at(1, 20, 2), at(3, 0, 1)])
    })
    t.same([...(await findUsualHours(database.reader, [1, 2, 3, 4]))].sort(), [
      [1, 20],
      [2, 5],
      [3, 0],
    ])
    t.same(await listContactHours(database.reader, 1), [
      { contact: 1, hour: 7, visits: 2 },
      { contact: 1, hour: 20, visits: 3 },
    ])
  },
)

eachDatabase(t, 'recipients are taken when they are due, longest due first', async (t, database) => {
  await database.write(async ({ db }) => {
    await insertDueRecipients(db, 1, [
      [1, 300],
      [2, 100],
      [3, 200],
    ])
    await insertRecipients(db, 2, [1, 2])
  })
  const due = async (now: number, limit = 10) =>
    (await nextDuePending(database.reader, 1, limit, now)).map(({ contact }) => contact)
  t.same(await due(99), [])
  t.same(await due(250, 1), [2])
  t.same(await due(250), [2, 3])
  t.equal(await nextDueAt(database.reader, 1), 100)
  await database.write(({ db }) => markHanded(db, 1, [[2, 'two']]))
  t.same(await due(300), [1, 3])
  t.equal(await nextDueAt(database.reader, 1), 200)
  t.equal(await nextDueAt(database.reader, 2), undefined)
})
