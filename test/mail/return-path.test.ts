import t from 'tap'
import { makeReturnPath, parseReturnPathLocal, verifyReturnPath } from '../../src/mail/return-path.js'

const messageId = '018f3a5c-7b1e-7cc3-98c4-dc0c0c07398f'
const oldKey = { version: 1, secret: Buffer.alloc(32, 1) }
const newKey = { version: 2, secret: Buffer.alloc(32, 2) }
const domain = 'bounce.example.com'
const recipient = 'Ann@example.com'

function localPart(key = newKey, to = recipient): string {
  return makeReturnPath({ messageId, recipient: to, key, domain }).split('@')[0]!
}

t.test('a bounce to a return path identifies its message and verifies', async t => {
  const token = parseReturnPathLocal(localPart())!
  t.match(token, { keyVersion: 2, messageId })
  t.equal(verifyReturnPath(token, recipient, [oldKey, newKey]), true)
  t.equal(verifyReturnPath(token, 'ann@EXAMPLE.com', [newKey]), true)
})

t.test('a return path survives case folding and fits 64 octets', async t => {
  const local = makeReturnPath({ messageId, recipient, key: { ...newKey, version: 999_999 }, domain }).split(
    '@',
  )[0]!
  t.match(local, /^[a-z0-9-]{1,64}$/)
  t.same(parseReturnPathLocal(localPart().toUpperCase()), parseReturnPathLocal(localPart()))
})

t.test('return paths from before a key rotation still verify', async t => {
  const token = parseReturnPathLocal(localPart(oldKey))!
  t.equal(verifyReturnPath(token, recipient, [newKey, oldKey]), true)
  t.equal(verifyReturnPath(token, recipient, [newKey]), false)
})

t.test('every id survives the round trip', async t => {
  for (const id of [
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    messageId,
  ]) {
    const path = makeReturnPath({ messageId: id.toUpperCase(), recipient, key: newKey, domain })
    const token = parseReturnPathLocal(path.split('@')[0]!)!
    t.equal(token.messageId, id)
    t.equal(verifyReturnPath(token, recipient, [newKey]), true)
  }
})

t.test('a return path for another recipient, message or key does not verify', async t => {
  const token = parseReturnPathLocal(localPart())!
  t.equal(verifyReturnPath(token, 'bob@example.com', [newKey]), false)
  t.equal(
    verifyReturnPath({ ...token, messageId: messageId.replace('018f', '018e') }, recipient, [newKey]),
    false,
  )
  t.equal(verifyReturnPath({ ...token, keyVersion: 1 }, recipient, [oldKey, newKey]), false)
  t.equal(verifyReturnPath({ ...token, mac: Buffer.alloc(0) }, recipient, [newKey]), false)
})

t.test('changing any character of the MAC or id is detected', async t => {
  const local = localPart()
  for (let at = 'r1-2-'.length; at < local.length; at++) {
    if (local[at] === '-') continue
    const forged = local.slice(0, at) + (local[at] === 'a' ? 'b' : 'a') + local.slice(at + 1)
    const token = parseReturnPathLocal(forged)
    t.equal(token !== undefined && verifyReturnPath(token, recipient, [newKey]), false, forged)
  }
})

t.test('other local parts are not return paths', async t => {
  const local = localPart()
  for (const text of [
    '',
    'postmaster',
    local.slice(0, -1),
    `${local}a`,
    ` ${local}`,
    `${local}\n`,
    local.replace('r1', 'r2'),
    local.replace('r1-2', 'r1-02'),
    local.replace('r1-2', 'r1-1234567'),
    local.replace(/-([a-z2-7]{25})[a-z2-7]-/, '-$17-'),
    local.replace(/.$/, '1'),
  ])
    t.equal(parseReturnPathLocal(text), undefined, text)
})

t.test('an id that is not a UUID is rejected', async t => {
  t.throws(() => makeReturnPath({ messageId: 'a@b', recipient, key: newKey, domain }), /UUID/)
})
