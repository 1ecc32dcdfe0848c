/** Kept answers in the database. */
import t from 'tap'
import { keepAnswer, keptAnswers } from '../../src/accounts/idempotency-store.js'
import { plainBox, secretBox } from '../../src/accounts/secret-box.js'
import { systemRandom } from '../../src/world/random.js'
import { eachDatabase } from '../support/db/database.js'

const HOUR = 3_600_000
const claim = (id: string, madeAt = 0, bodyHash = 'body') => ({ id, bodyHash, madeAt })

eachDatabase(
  t,
  'a stored response is found for an hour and can be replaced afterwards',
  async (t, database) => {
    let now = 1_000
    const answers = keptAnswers(database, plainBox)
    const keep = (id: string, value: unknown, bodyHash?: string) =>
      database.write(tx => keepAnswer(tx.db, claim(id, now, bodyHash), { status: 202, value }))
    t.equal(await answers.find(claim('a', now)), undefined)
    await keep('a', { list: [1, 'ü', null] })
    now += HOUR - 1
    t.same(await answers.find(claim('a', now, 'other')), {
      bodyHash: 'body',
      answer: { status: 202, value: { list: [1, 'ü', null] } },
    })
    now += 1
    t.equal(await answers.find(claim('a', now)), undefined)
    await keep('a', 2, 'other')
    t.same(await answers.find(claim('a', now)), { bodyHash: 'other', answer: { status: 202, value: 2 } })
  },
)

eachDatabase(t, 'what has expired goes faster than it came, and nothing else', async (t, database) => {
  const count = async () => (await database.reader.selectFrom('kept_answers').select('id').execute()).length
  const keep = (id: string, now: number) =>
    database.write(tx => keepAnswer(tx.db, claim(id, now), { status: 200, value: id }))
  for (let index = 0; index < 20; index += 1) await keep(`old${index}`, index)
  await keep('young', HOUR - 1)
  t.equal(await count(), 21)
  for (let index = 0; index < 3; index += 1) await keep(`new${index}`, HOUR + 100)
  t.equal(await count(), 4)
  t.ok(await keptAnswers(database, plainBox).find(claim('young', HOUR + 100)))
})

eachDatabase(t, 'a response is stored in the transaction of its work, or not at all', async (t, database) => {
  const failing = database.write(async tx => {
    await keepAnswer(tx.db, claim('a'), { status: 200, value: 1 })
    throw new Error('the work failed')
  })
  await t.rejects(failing, /the work failed/)
  t.equal(await keptAnswers(database, plainBox).find(claim('a')), undefined)
  await database.write(tx => keepAnswer(tx.db, undefined, { status: 200, value: 1 }))
  t.same(await database.reader.selectFrom('kept_answers').selectAll().execute(), [])
})

eachDatabase(t, 'a reserved key has no answer until one is kept', async (t, database) => {
  const answers = keptAnswers(database, plainBox)
  await answers.reserve(claim('a'))
  t.same(await answers.find(claim('a')), { bodyHash: 'body', answer: undefined })
  await answers.release(claim('a'))
  t.equal(await answers.find(claim('a')), undefined)
  await answers.reserve(claim('a'))
  await answers.keep(claim('a'), { status: 201, value: { id: 1 } }, false)
  await answers.release(claim('a'))
  t.same(await answers.find(claim('a')), { bodyHash: 'body', answer: { status: 201, value: { id: 1 } } })
})

eachDatabase(
  t,
  'an answer with a secret is sealed, and opens with the same key alone',
  async (t, database) => {
    const box = secretBox(Buffer.alloc(32, 1), systemRandom)
    const answers = keptAnswers(database, box)
    await answers.reserve(claim('a'))
    await answers.keep(claim('a'), { status: 201, value: { secret: 'whsec_x' } }, true)
    t.notMatch(
      JSON.stringify(await database.reader.selectFrom('kept_answers').selectAll().execute()),
      /whsec/,
    )
    t.match(await answers.find(claim('a')), { answer: { value: { secret: 'whsec_x' } } })
    const other = keptAnswers(database, secretBox(Buffer.alloc(32, 2), systemRandom))
    t.same(await other.find(claim('a')), { bodyHash: 'body', answer: undefined })
  },
)
