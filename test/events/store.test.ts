/** The event log on both databases: append, read on, move the cursor. */
import t from 'tap'
import type { ContactEvents, Event, EventKind } from '../../src/events/event.js'
import {
  appendEvents,
  findCursor,
  moveCursor,
  readEventsAfter,
  readTail,
  type StoredEvent,
} from '../../src/events/store.js'
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

const tagged = (contact_id: string): ContactEvents['tag.added'] => ({
  kind: 'tag.added',
  workspaceId: 'w1',
  messageId: null,
  isSandbox: false,
  occurredAt: 1_767_607_200_000,
  payload: { tag_id: 't1', tag_name: 'vip', contact_id, email: `${contact_id}@example.com`, source: 'api' },
})
const untagged = (contact_id: string): ContactEvents['tag.removed'] => ({
  ...tagged(contact_id),
  kind: 'tag.removed',
})

/** With what it says, which it reads only when asked. */
function whole(events: readonly StoredEvent<EventKind>[]): unknown[] {
  return events.map(event => ({ ...event, payload: event.payload }))
}

eachDatabase(t, 'an event reads back as appended, with its position', async (t, database) => {
  await database.write(tx => appendEvents(tx, [accepted('m1'), failed('m2')]))
  t.same(whole(await readEventsAfter(database.reader, 0, ['email.accepted', 'email.failed'], 10)), [
    { seq: 1, ...accepted('m1') },
    { seq: 2, ...failed('m2') },
  ])
})

eachDatabase(t, 'payloads are correct, whatever lies between the events', async (t, database) => {
  const events = [tagged('c1'), accepted('m1'), untagged('c1'), tagged('c2'), failed('m2'), tagged('c3')]
  await database.write(tx => appendEvents(tx, events))
  const read = await readTail(database.reader, 1, 4)
  t.same(
    whole(read),
    events.slice(1, 5).map((event, at) => ({ seq: at + 2, ...event })),
  )
  const [first, second, third] = await readEventsAfter(database.reader, 0, ['tag.added'], 10)
  // In any order, and once more.
  for (const [event, id] of [
    [third, 'c3'],
    [first, 'c1'],
    [second, 'c2'],
    [third, 'c3'],
  ] as const)
    t.equal(event?.payload.contact_id, id)
})

eachDatabase(
  t,
  'only the requested kinds are read, after the cursor, up to the limit',
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

eachDatabase(t, 'appending no events does nothing', async (t, database) => {
  await database.write(tx => appendEvents(tx, []))
  t.same(await readEventsAfter(database.reader, 0, ['email.accepted'], 10), [])
})

eachDatabase(t, 'events of a failed transaction are not in the log', async (t, database) => {
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
