/** Kept answers in the database. */
import t from 'tap'
import { answerFinder, keepAnswer } from '../../src/accounts/idempotency-store.js'
import { eachDatabase } from '../support/db/database.js'

const HOUR = 3_600_000
const claim = (id: string, madeAt = 0, bodyHash = 'body') => ({ id, bodyHash, madeAt })

eachDatabase(t, 'an answer is found for an hour and replaced after it', async (t, database) => {
  let now = 1_000
  const find = answerFinder(database.reader)
  const keep = (id: string, value: unknown, bodyHash?: string) =>
    database.write(tx => keepAnswer(tx.db, claim(id, now, bodyHash), { status: 202, value }))
  t.equal(await find(claim('a', now)), undefined)
  await keep('a', { list: [1, 'ü', null] })
  now += HOUR - 1
  t.same(await find(claim('a', now, 'other')), {
    status: 202,
    value: { list: [1, 'ü', null] },
    bodyHash: 'body',
  })
  now += 1
  t.equal(await find(claim('a', now)), undefined)
  await keep('a', 2, 'other')
  t.same(await find(claim('a', now)), { status: 202, value: 2, bodyHash: 'other' })
})

eachDatabase(t, 'what has expired goes faster than it came, and nothing else', async (t, database) => {
  const count = async () => (await database.reader.selectFrom('kept_answers').select('id').execute()).length
  const keep = (id: string, now: number) =>
    database.write(tx => keepAnswer(tx.db, claim(id, now), { status: 200, value: id }))
  for (let index = 0; index < 20; index += 1) await keep(`old${index}`, index)
  await keep('young', HOUR - 1)
  t.equal(await count(), 21)
  for (let index = 0; index < 3; index += 1) await keep(`new${index}`, HOUR + 100)
  t.equal(await count(), 4)
  t.ok(await answerFinder(database.reader)(claim('young', HOUR + 100)))
})

eachDatabase(t, 'an answer is kept with the work it tells of, or not at all', async (t, database) => {
  const failing = database.write(async tx => {
    await keepAnswer(tx.db, claim('a'), { status: 200, value: 1 })
    throw new Error('the work failed')
  })
  await t.rejects(failing, /the work failed/)
  t.equal(await answerFinder(database.reader)(claim('a')), undefined)
  await database.write(tx => keepAnswer(tx.db, undefined, { status: 200, value: 1 }))
  t.same(await database.reader.selectFrom('kept_answers').selectAll().execute(), [])
})
