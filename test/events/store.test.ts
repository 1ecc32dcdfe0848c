/** The event log on both databases: append, read on, move the cursor. */
import t from 'tap'
import type { Event } from '../../src/events/event.js'
import { appendEvents, findCursor, moveCursor, readEventsAfter } from '../../src/events/store.js'
import { eachDatabase } from '../support/db/database.js'

const accepted = (messageId: string): Event => ({
  kind: 'email.accepted',
  workspaceId: 'w1',
  messageId,
  isSandbox: false,
  occurredAt: 1_767_607_200_000,
  payload: { to: `${messageId}@example.com` },
})
const failed = (messageId: string): Event => ({
  ...accepted(messageId),
  kind: 'email.failed',
  isSandbox: true,
  payload: { to: 'ann@example.com', reason: 'broken: "quotes" and ünïcode' },
})

eachDatabase(t, 'an event reads back as it was appended, with its place in the log', async (t, database) => {
  await database.write(tx => appendEvents(tx, [accepted('m1'), failed('m2')]))
  t.same(await readEventsAfter(database.reader, 0, ['email.accepted', 'email.failed'], 10), [
    { seq: 1, ...accepted('m1') },
    { seq: 2, ...failed('m2') },
  ])
})

eachDatabase(
  t,
  'only the kinds asked for are read, after the cursor, up to the limit',
  async (t, database) => {
    await database.write(tx =>
      appendEvents(tx, [accepted('m1'), failed('m2'), accepted('m3'), accepted('m4'), accepted('m5')]),
    )
    const events = await readEventsAfter(database.reader, 1, ['email.accepted'], 2)
    t.same(
      events.map(event => event.messageId),
      ['m3', 'm4'],
    )
  },
)

eachDatabase(t, 'thousands of events are appended at once, in order', async (t, database) => {
  const ids = Array.from({ length: 2_345 }, (_, n) => `m${n}`)
  await database.write(tx => appendEvents(tx, ids.map(accepted)))
  const events = await readEventsAfter(database.reader, 0, ['email.accepted'], 10_000)
  t.same(
    events.map(event => event.messageId),
    ids,
  )
})

eachDatabase(t, 'no event at all can be appended', async (t, database) => {
  await database.write(tx => appendEvents(tx, []))
  t.same(await readEventsAfter(database.reader, 0, ['email.accepted'], 10), [])
})

eachDatabase(t, 'events of a transaction that failed are not in the log', async (t, database) => {
  await t.rejects(
    database.write(async tx => {
      await appendEvents(tx, [accepted('m1')])
      throw new Error('no')
    }),
  )
  await database.write(tx => appendEvents(tx, [accepted('m2')]))
  const events = await readEventsAfter(database.reader, 0, ['email.accepted'], 10)
  t.same(
    events.map(event => event.messageId),
    ['m2'],
  )
})

eachDatabase(t, 'each consumer has its own cursor, 0 before its first move', async (t, database) => {
  t.equal(await findCursor(database.reader, 'stats'), undefined)
  await database.write(tx => moveCursor(tx, 'stats', 5))
  await database.write(tx => moveCursor(tx, 'stats', 7))
  await database.write(tx => moveCursor(tx, 'webhooks', 2))
  t.equal(await findCursor(database.reader, 'stats'), 7)
  t.equal(await findCursor(database.reader, 'webhooks'), 2)
})
