/** The event log with several writers at once: positions are given in another order than transactions commit in. */
import {
  sql,
  type KyselyPlugin,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  type RootOperationNode,
} from 'kysely'
import t from 'tap'
import type { Database, Tx } from '../../src/db/database.js'
import type { Event } from '../../src/events/event.js'
import { EventTail } from '../../src/events/event-tail.js'
import { SettledEvents } from '../../src/events/settled-store.js'
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

t.test(
  'an event is not missed whose transaction began after another, took its position before it and commits after it',
  async t => {
    const url = await postgresUrl(t)
    const [one, two] = [await realPostgres(t, { url }), await realPostgres(t, { url })]
    await one.write(tx => appendEvents(tx, [accepted('first')]))
    const older = await heldTransaction(one)
    const younger = await heldTransaction(two)
    await younger.append('earlier position')
    await older.append('later position')
    await older.commit()
    const tail = new EventTail(one.reader)
    const seen: (string | null | undefined)[] = []
    let after = 0
    const read = async () => {
      const { events, end } = await tail.readAfter(after, KINDS, 100)
      seen.push(...events.map(({ messageId }) => messageId))
      after = end
    }
    await read()
    await younger.commit()
    await until('the last one', async () => {
      tail.appended()
      await read()
      return seen.includes('later position')
    })
    t.same(seen, ['first', 'earlier position', 'later position'])
  },
)

t.test(
  'a position is not settled while its transaction runs, if that took it while another consumer read the locks',
  async t => {
    const url = await postgresUrl(t)
    const [one, two] = [await realPostgres(t, { url }), await realPostgres(t, { url })]
    const slow = await heldTransaction(two)
    await one.write(tx => appendEvents(tx, [accepted('first')]))
    const locks = new HeldAnswers('oldest')
    const settled = new SettledEvents(one.reader.withPlugin(locks))
    let first: Promise<number> | undefined
    await until('the locks to be read', async () => {
      first = settled.last()
      return Promise.race([first.then(() => false), locks.arrived.then(() => true)])
    })
    await slow.append('slow')
    const second = settled.last()
    // Long enough for a look of its own to have noted the position.
    for (let statement = 0; statement < 5; statement += 1) await sql`select 1`.execute(one.reader)
    locks.release()
    t.same([await first, await second], [1, 1])
    await slow.commit()
    t.equal(await settled.last(), 2)
  },
)

/** Keeps back the answers to statements that have this column. */
class HeldAnswers implements KyselyPlugin {
  private readonly column: string
  private noteArrived: () => void = () => {}
  private readonly mayGo: Promise<void>
  release: () => void = () => {}
  readonly arrived = new Promise<void>(resolve => (this.noteArrived = resolve))

  constructor(column: string) {
    this.column = column
    this.mayGo = new Promise(resolve => (this.release = resolve))
  }

  transformQuery({ node }: PluginTransformQueryArgs): RootOperationNode {
    return node
  }

  async transformResult({ result }: PluginTransformResultArgs) {
    if (result.rows[0] && this.column in result.rows[0]) {
      this.noteArrived()
      await this.mayGo
    }
    return result
  }
}

/** A transaction that has begun, and goes on when told. */
async function heldTransaction(database: Database) {
  let tx: Tx | undefined
  let end: () => void = () => {}
  const ended = new Promise<void>(resolve => (end = resolve))
  const written = database.write(async begun => {
    // The first statement begins it.
    await sql`select 1`.execute(begun.db)
    tx = begun
    await ended
  })
  const held = await until('the transaction', () => tx)
  return {
    append: (messageId: string) => appendEvents(held, [accepted(messageId)]),
    commit: async () => {
      end()
      await written
    },
  }
}

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
