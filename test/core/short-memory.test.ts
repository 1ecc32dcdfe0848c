/** What is remembered for a moment, and what is not. */
import t from 'tap'
import { ShortMemory } from '../../src/core/short-memory.js'

t.test('what was found is not looked up again until the time is over', async t => {
  let now = 0
  let lookUps = 0
  const memory = new ShortMemory<number>(() => now, 1_000)
  const find = async () => (lookUps += 1)
  t.equal(await memory.get('a', find), 1)
  now = 999
  t.equal(await memory.get('a', find), 1)
  t.equal(await memory.get('b', find), 2)
  now = 1_000
  t.equal(await memory.get('a', find), 3)
})

t.test('a refusal is looked up again at once', async t => {
  const memory = new ShortMemory<string>(() => 0, 1_000)
  await t.rejects(
    memory.get('a', () => Promise.reject(new Error('not yet'))),
    /not yet/,
  )
  t.equal(await memory.get('a', async () => 'now'), 'now')
})
