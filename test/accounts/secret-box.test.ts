/** Seals: they open with the same key at the same place, and with nothing else. */
import t from 'tap'
import { isSealed, plainBox, secretBox } from '../../src/accounts/secret-box.js'
import { SeededRandom } from '../../src/world/fake-random.js'

const random = new SeededRandom()
const box = secretBox(random.bytes(32), random)

t.test('a sealed text opens at its location and reveals nothing', async t => {
  for (const text of ['', 'secret', 'bücher \u{1f4da}', 'x'.repeat(10_000)]) {
    const sealed = box.seal(text, 'a/b/1')
    t.match(sealed, /^sealed:1:[\w-]{16}\.[\w-]*\.[\w-]{22}$/)
    t.ok(isSealed(sealed))
    if (text !== '')
      t.notOk(sealed.includes(text) || sealed.includes(Buffer.from(text).toString('base64url')))
    t.equal(box.open(sealed, 'a/b/1'), text)
  }
})

t.test('the same text sealed twice looks different', async t => {
  t.not(box.seal('secret', 'a/b/1'), box.seal('secret', 'a/b/1'))
})

t.test('a seal does not open in another row, column or table', async t => {
  const sealed = box.seal('secret', 'a/b/1')
  for (const place of ['a/b/2', 'a/c/1', 'c/b/1', ''])
    t.throws(() => box.open(sealed, place), { name: 'SealError', message: /does not open/ })
})

t.test('a seal does not open with another key, and the error reveals nothing', async t => {
  const other = secretBox(random.bytes(32), random)
  const sealed = box.seal('secret', 'a/b/1')
  t.throws(() => other.open(sealed, 'a/b/1'), {
    name: 'SealError',
    message: 'a/b/1 does not open: secrets.key is another key, or the value was modified',
  })
})

t.test('a modified seal does not open', async t => {
  const sealed = box.seal('secret', 'a/b/1')
  for (let at = 'sealed:'.length; at < sealed.length; at++) {
    // The last character of a part may hold bits that stand for nothing.
    if (!/[\w-]/.test(sealed[at + 1] ?? '')) continue
    const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
    t.throws(() => box.open(changed, 'a/b/1'), { name: 'SealError' }, `changed at ${at}`)
  }
  const [nonce, text, tag] = sealed.slice('sealed:1:'.length).split('.')
  for (const parts of [
    [nonce, text],
    [nonce, text, tag, tag],
    [nonce, text, tag?.slice(0, 6)],
    ['', text, tag],
  ])
    t.throws(() => box.open(`sealed:1:${parts.join('.')}`, 'a/b/1'), { message: 'a/b/1 is damaged' })
})

t.test('plain text is returned unchanged', async t => {
  t.equal(box.open('plain', 'a/b/1'), 'plain')
  t.equal(plainBox.open(plainBox.seal('plain', 'a/b/1'), 'a/b/1'), 'plain')
})

t.test('opening a seal without a key is an error that names the setting', async t => {
  const sealed = box.seal('secret', 'a/b/1')
  t.throws(() => plainBox.open(sealed, 'a/b/1'), { name: 'SealError', message: /secrets\.key is not set/ })
})
