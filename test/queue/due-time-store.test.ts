/** Walking over a lane whose due times a clock set back has left too far ahead, on both databases. */
import t from 'tap'
import { correctDueTime, selectWaiting, type WaitingPage } from '../../src/queue/queue-store.js'
import { setHeld } from '../../src/queue/operator/queue-admin-store.js'
import { eachDatabase } from '../support/db/database.js'
import { enqueue, laneTo, NOW } from '../support/mailroom.js'

const BEGINNING = { dueAt: 0, messageId: '' }

eachDatabase(
  t,
  'a walk page by page meets each waiting row of its lane once, soonest first',
  async (t, database) => {
    await enqueue(database, [
      { id: 'b', to: 'b@x.example', dueAt: NOW },
      { id: 'a', to: 'a@x.example', dueAt: NOW },
      { id: 'late', to: 'c@x.example', dueAt: NOW + 9 },
      { id: 'held', to: 'd@x.example', dueAt: NOW },
      { id: 'elsewhere', to: 'a@y.example', dueAt: NOW },
    ])
    await database.write(tx => setHeld(tx.db, { messageId: 'held' }, true))
    const seen: string[] = []
    let after: WaitingPage['after'] = BEGINNING
    for (;;) {
      const [row, ...others] = await selectWaiting(database.reader, {
        lane: laneTo('x.example'),
        after,
        limit: 1,
      })
      t.same(others, [], 'no more than asked for')
      if (!row) break
      t.match(row, { attempts: 0, enqueuedAt: NOW, isScheduled: false })
      seen.push(row.messageId)
      after = { dueAt: row.nextAttemptAt, messageId: row.messageId }
    }
    t.same(seen, ['a', 'b', 'late'])
  },
)

eachDatabase(
  t,
  'corrected rows are due when they are said to be, and others as before',
  async (t, database) => {
    await enqueue(database, [
      { id: 'far', to: 'a@x.example', dueAt: NOW + 7_200_000 },
      { id: 'near', to: 'b@x.example', dueAt: NOW + 1 },
    ])
    await database.write(tx => correctDueTime(tx.db, ['far'], NOW))
    const rows = await selectWaiting(database.reader, {
      lane: laneTo('x.example'),
      after: BEGINNING,
      limit: 10,
    })
    t.same(
      rows.map(({ messageId, nextAttemptAt }) => [messageId, nextAttemptAt]),
      [
        ['far', NOW],
        ['near', NOW + 1],
      ],
    )
  },
)
