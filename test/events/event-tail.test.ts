/** The end of the event log, which consumers read together. */
import t from 'tap'
import type { Event } from '../../src/events/event.js'
import { EventTail } from '../../src/events/event-tail.js'
import { appendEvents } from '../../src/events/store.js'
import { sqliteDatabase } from '../support/db/database.js'

const KINDS = ['email.accepted'] as const

const accepted = (messageId: string): Event => ({
  kind: 'email.accepted',
  workspaceId: 'w1',
  messageId,
  isSandbox: false,
  occurredAt: 0,
  payload: { to: 'ann@example.com' },
})

async function world(t: Parameters<typeof sqliteDatabase>[0]) {
  const database = await sqliteDatabase(t)
  const tail = new EventTail(database.reader)
  const append = async (count: number, make = accepted) => {
    const events = Array.from({ length: count }, (_, at) => make(`m${at}`))
    await database.write(tx => appendEvents(tx, events))
    tail.appended()
  }
  /** Positions of all that is read from there on, and in how many reads. */
  const readAll = async (seq: number, limit = 100) => {
    const seqs: number[] = []
    let reads = 0
    for (let isLast = false, after = seq; !isLast; reads += 1) {
      const read = await tail.readAfter(after, KINDS, limit)
      seqs.push(...read.events.map(event => event.seq))
      t.ok(read.end >= after, 'it never goes back')
      after = read.end
      isLast = read.isLast
    }
    return { seqs, reads }
  }
  return { tail, append, readAll }
}

const from = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, at) => first + at)

t.test(
  'readers at the start, in the middle or at the end get all later events once and in order',
  async t => {
    const { append, readAll } = await world(t)
    await append(250)
    t.same((await readAll(0)).seqs, from(1, 250))
    await append(9_000)
    t.same((await readAll(250)).seqs, from(251, 9_250))
    t.same((await readAll(0)).seqs, from(1, 9_250), 'what is no longer kept is read from the log')
    t.same((await readAll(9_200)).seqs, from(9_201, 9_250))
    t.same((await readAll(9_250)).seqs, [])
    await append(1)
    t.same((await readAll(9_250)).seqs, [9_251])
  },
)

t.test('events of other kinds are skipped', async t => {
  const { tail, append, readAll } = await world(t)
  await readAll(0)
  await append(3, messageId => ({ ...accepted(messageId), kind: 'email.sent' }))
  t.same(await tail.readAfter(0, KINDS, 10), { events: [], end: 3, isLast: true })
  await append(1)
  t.same((await readAll(0)).seqs, [4])
})

t.test('reads concurrent with an append miss nothing', async t => {
  const { append, readAll } = await world(t)
  await readAll(0)
  const appending = append(5)
  const before = await Promise.all([readAll(0), readAll(0)])
  await appending
  for (const { seqs } of before) t.same(seqs, from(1, seqs.length))
  const after = await Promise.all([readAll(0), readAll(0)])
  for (const { seqs } of after) t.same(seqs, from(1, 5))
})
