/** Queue depth and age by destination, as monitoring reports them. */
import t from 'tap'
import { setHeld } from '../../src/queue/operator/queue-admin-store.js'
import {
  countHeldAndDue,
  measureLiveQueue,
  measureQueue,
} from '../../src/queue/operator/queue-status-store.js'
import { eachDatabase } from '../support/db/database.js'
import { enqueue, letters, NOW } from '../support/mailroom.js'

eachDatabase(t, 'the queue is measured in total, held, and for named destinations', async (t, database) => {
  await enqueue(database, [...letters('gmail.com', 3, 'g'), ...letters('x.example', 2, 'x')])
  await database.write(tx => setHeld(tx.db, { messageIds: ['x1'] }, true))
  const depth = await measureQueue(database.reader, ['gmail.com', 'gmx.de'])
  t.match(depth, { all: { messages: 5 }, held: 1, others: { messages: 2, oldestAt: NOW } })
  t.same([...depth.named.keys()], ['gmail.com'])
  t.match(depth.named.get('gmail.com'), { messages: 3, oldestAt: NOW })
})

eachDatabase(t, 'an empty queue has no oldest message', async (t, database) => {
  t.same(await measureQueue(database.reader, ['gmail.com']), {
    all: { messages: 0, oldestAt: undefined },
    held: 0,
    named: new Map(),
    others: { messages: 0, oldestAt: undefined },
  })
})

eachDatabase(t, 'live figures count what is held and due', async (t, database) => {
  t.match(await measureLiveQueue(database.reader), { accepted: 0, waiting: 0, oldestAt: undefined })
  t.same(await countHeldAndDue(database.reader, NOW), { held: 0, due: 0 })
  await enqueue(database, [...letters('x.example', 3), { id: 'later', to: 'a@x.example', dueAt: NOW + 1 }])
  await database.write(tx => setHeld(tx.db, { messageIds: ['m1'] }, true))
  t.match(await measureLiveQueue(database.reader), { accepted: 4, waiting: 4, oldestAt: NOW })
  t.same(await countHeldAndDue(database.reader, NOW), { held: 1, due: 2 })
  t.same(await countHeldAndDue(database.reader, NOW + 1), { held: 1, due: 3 })
})
