/** The event log with several writers at once: positions are given in another order than transactions commit in. */
import t from 'tap'
import type { Event } from '../../src/events/event.js'
import { EventTail } from '../../src/events/event-tail.js'
import { appendEvents } from '../../src/events/store.js'
import { postgresUrl, realPostgres } from '../support/db/real-postgres.js'
import { until } from '../support/until.js'

const KINDS = ['email.accepted'] as const

const accepted = (messageId: string): Event => ({
  kind: 'email.accepted',
  workspaceId: 'w1',
  messageId,
  isSandbox: false,
  occurredAt: 0,
  payload: { to: 'ann@example.com' },
})

for (const isFarBehind of [false, true])
  t.test(
    `an event whose transaction commits last is not missed (${isFarBehind ? 'from the database' : 'from memory'})`,
    async t => {
      const url = await postgresUrl(t)
      const [one, two] = [await realPostgres(t, { url }), await realPostgres(t, { url })]
      const tail = new EventTail(one.reader)
      await one.write(tx => appendEvents(tx, [accepted('first')]))
      tail.appended()
      // A tail that begins at the end of the log has nothing of it in memory.
      let after = isFarBehind ? 0 : (await readAll(0)).after

      async function readAll(from: number) {
        const read = await tail.readAfter(from, KINDS, 100)
        return { ids: read.events.map(({ messageId }) => messageId), after: read.end }
      }

      let commit: () => void = () => {}
      const mayCommit = new Promise<void>(resolve => (commit = resolve))
      let hasAppended: () => void = () => {}
      const appended = new Promise<void>(resolve => (hasAppended = resolve))
      const slow = two.write(async tx => {
        await appendEvents(tx, [accepted('slow')])
        hasAppended()
        await mayCommit
      })
      await appended
      await one.write(tx => appendEvents(tx, [accepted('quick')]))
      tail.appended()
      const seen: (string | null | undefined)[] = []
      for (let looks = 0; looks < 5; looks += 1) {
        const { ids, after: end } = await readAll(after)
        seen.push(...ids)
        after = end
      }
      t.notOk(seen.includes('quick'), 'it waits for the one before it')
      commit()
      await slow
      tail.appended()
      await until('both', async () => {
        const { ids, after: end } = await readAll(after)
        seen.push(...ids)
        after = end
        return seen.includes('quick')
      })
      t.same(
        seen.filter(id => id !== 'first'),
        ['slow', 'quick'],
      )
    },
  )

t.test('a transaction of another database that stays open holds up nobody', async t => {
  const url = await postgresUrl(t)
  const elsewhere = await realPostgres(t)
  const one = await realPostgres(t, { url })
  const tail = new EventTail(one.reader)
  let end: () => void = () => {}
  const ended = new Promise<void>(resolve => (end = resolve))
  let hasBegun: () => void = () => {}
  const begun = new Promise<void>(resolve => (hasBegun = resolve))
  const long = elsewhere.write(async tx => {
    await appendEvents(tx, [accepted('elsewhere')])
    hasBegun()
    await ended
  })
  await begun
  await one.write(tx => appendEvents(tx, [accepted('first')]))
  tail.appended()
  await until('the event', async () => {
    const { events } = await tail.readAfter(0, KINDS, 100)
    return events.some(({ messageId }) => messageId === 'first')
  })
  end()
  await long
})
