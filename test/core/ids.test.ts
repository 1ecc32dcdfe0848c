/** Identifiers: UUID version 7. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { isUuid, orderedIds, uuidv7 } from '../../src/core/ids.js'

const momentOf = (id = '') => Number.parseInt(id.replace('-', '').slice(0, 12), 16)

t.test('the example of RFC 9562 appendix A.6 is reproduced', async t => {
  const random = Buffer.from('0cc318c4dc0c0c07398f', 'hex')
  t.equal(uuidv7(0x017f22e279b0, random), '017f22e2-79b0-7cc3-98c4-dc0c0c07398f')
})

t.test('version and variant are set whatever the random bytes are', async t => {
  for (const byte of [0x00, 0xff])
    t.match(
      uuidv7(1_767_600_000_000, Buffer.alloc(10, byte)),
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/,
    )
})

t.test('later identifiers sort later', async t => {
  const moments = [0, 1, 255, 256, 1_767_600_000_000, 1_767_600_000_001, 2 ** 48 - 1]
  const ids = moments.map(moment => uuidv7(moment, Buffer.alloc(10, 0xff)))
  t.same([...ids].sort(), ids)
  t.ok(ids.every(isUuid))
})

t.test('only whole UUIDs count as such', async t => {
  t.ok(isUuid('017F22E2-79B0-7CC3-98C4-DC0C0C07398F'))
  for (const text of [
    '',
    '017f22e2',
    '017f22e279b07cc398c4dc0c0c07398f',
    ' 017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
    'x'.repeat(36),
  ])
    t.notOk(isUuid(text), text)
})

t.test('ids created within a millisecond sort in creation order', async t => {
  let now = 1_767_600_000_000
  const newId = orderedIds(
    () => now,
    count => randomBytes(count),
  )
  const ids = Array.from({ length: 10_000 }, newId)
  t.same([...ids].sort(), ids)
  t.equal(new Set(ids).size, ids.length)
  t.ok(ids.every(id => isUuid(id) && id[14] === '7' && /[89ab]/.test(id[19] ?? '')))
  t.ok(momentOf(ids.at(-1)) - now <= 5, 'it runs hardly ahead of the clock')
  now += 1_000
  t.equal(momentOf(newId()), now)
  now -= 999
  t.equal(momentOf(newId()), now + 999, 'a small step back is passed over')
  now -= 3_600_000
  t.equal(momentOf(newId()), now, 'a clock that is set is believed')
})
