/** What is cached, and for how long. */
import t from 'tap'
import { TtlCache } from '../../src/core/ttl-cache.js'

t.test('a found value is not looked up again until it expires', async t => {
  let now = 0
  let lookUps = 0
  const memory = new TtlCache<number>({ monotonic: () => now, version: () => 0 }, 1_000)
  const find = async () => (lookUps += 1)
  t.equal(await memory.get('a', find), 1)
  now = 999
  t.equal(await memory.get('a', find), 1)
  t.equal(await memory.get('b', find), 2)
  now = 1_000
  t.equal(await memory.get('a', find), 3)
})

t.test('a failed lookup is repeated immediately', async t => {
  const memory = new TtlCache<string>({ monotonic: () => 0, version: () => 0 }, 1_000)
  await t.rejects(
    memory.get('a', () => Promise.reject(new Error('not yet'))),
    /not yet/,
  )
  t.equal(await memory.get('a', async () => 'now'), 'now')
})

t.test('a change takes effect immediately', async t => {
  let version = 1
  const memory = new TtlCache<number>({ monotonic: () => 0, version: () => version }, 1_000)
  let lookUps = 0
  const find = async () => (lookUps += 1)
  t.equal(await memory.get('a', find), 1)
  version = 2
  t.equal(await memory.get('a', find), 2)
  t.equal(await memory.get('a', find), 2)
})

t.test('a value changed during its lookup is not cached', async t => {
  let version = 1
  const memory = new TtlCache<string>({ monotonic: () => 0, version: () => version }, 1_000)
  const before = await memory.get('a', async () => {
    version = 2
    return 'valid'
  })
  t.equal(before, 'valid')
  t.equal(await memory.get('a', async () => 'revoked'), 'revoked')
})
