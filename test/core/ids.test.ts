/** Identifiers: UUID version 7. */
import t from 'tap'
import { isUuid, uuidv7 } from '../../src/core/ids.js'

t.test('the example of RFC 9562 appendix A.6 comes out', async t => {
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

t.test('an identifier made later sorts later', async t => {
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
