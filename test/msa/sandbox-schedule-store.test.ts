/** A sandbox's scheduled mail on both databases: what is due, in its order, and when the next is. */
import t from 'tap'
import { insertContent } from '../../src/messages/content-store.js'
import { insertMessages } from '../../src/messages/message-store.js'
import {
  deleteScheduled,
  insertScheduled,
  listDue,
  nextDueAt,
} from '../../src/msa/sandbox/sandbox-schedule-store.js'
import { eachDatabase } from '../support/db/database.js'
import { CONTENT, NOW } from '../support/mailroom.js'

eachDatabase(t, 'what is due comes longest due first, without what was cancelled', async (t, database) => {
  const ids = ['m1', 'm2', 'm3', 'm4']
  await database.write(async tx => {
    await insertContent(tx.db, CONTENT)
    const rows = ids.map(id => ({
      ...{ id, recipient: `${id}@x.example`, status: 'scheduled' as const, reason: null },
    }))
    await insertMessages(tx.db, CONTENT, true, rows)
    await insertScheduled(tx.db, ['m2'], NOW - 5)
    await insertScheduled(tx.db, ['m1', 'm3'], NOW)
    await insertScheduled(tx.db, ['m4'], NOW + 1)
  })
  const due = async (now: number, limit = 10) =>
    (await listDue(database.reader, now, limit)).map(({ to }) => to)
  t.same(await listDue(database.reader, NOW - 1, 10), [
    { messageId: 'm2', workspaceId: 'w1', to: 'm2@x.example', isMarketing: false },
  ])
  t.same(await due(NOW), ['m2@x.example', 'm1@x.example', 'm3@x.example'])
  t.same(await due(NOW, 2), ['m2@x.example', 'm1@x.example'])
  await database.write(tx => deleteScheduled(tx.db, ['m2', 'm3', 'unknown']))
  t.same(await due(NOW + 1), ['m1@x.example', 'm4@x.example'])
  t.equal(await nextDueAt(database.reader), NOW)
  await database.write(tx => deleteScheduled(tx.db, ids))
  t.equal(await nextDueAt(database.reader), undefined)
})
