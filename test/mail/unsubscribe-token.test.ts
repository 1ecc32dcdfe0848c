/** Unsubscribe tokens identify a subscriber and cannot be forged. */
import t from 'tap'
import { makeReturnPath } from '../../src/mail/return-path.js'
import {
  makeUnsubscribeToken,
  parseUnsubscribeToken,
  UNSUBSCRIBE_PREFIX,
  verifyUnsubscribeToken,
} from '../../src/mail/unsubscribe-token.js'

const KEY = { version: 1, secret: Buffer.alloc(32, 1) }
const ANN = {
  workspaceId: 'w1',
  messageId: '01900000-0000-7000-8000-000000000001',
  recipient: 'Ann@x.example',
}

const read = (text: string) => {
  const token = parseUnsubscribeToken(text)
  if (!token) throw new Error('not read')
  return token
}

t.test('a token identifies its message in any letter case, under every key ever used', t => {
  const token = makeUnsubscribeToken(ANN, KEY)
  t.match(read(token.toUpperCase()), { keyVersion: 1, messageId: ANN.messageId })
  const keys = [{ version: 2, secret: Buffer.alloc(32, 2) }, KEY]
  t.equal(verifyUnsubscribeToken(read(token), ANN, keys), true)
  t.equal(verifyUnsubscribeToken(read(token), { ...ANN, recipient: 'ann@X.example' }, keys), true)
  t.equal(verifyUnsubscribeToken(read(token), ANN, keys.slice(0, 1)), false)
  t.end()
})

t.test('a token does not verify for anybody else', t => {
  const token = read(makeUnsubscribeToken(ANN, KEY))
  const verify = (more: object) => verifyUnsubscribeToken(token, { ...ANN, ...more }, [KEY])
  t.equal(verify({ recipient: 'bob@x.example' }), false)
  t.equal(verify({ workspaceId: 'w2' }), false)
  t.equal(verify({ messageId: '01900000-0000-7000-8000-000000000002' }), false)
  t.equal(verifyUnsubscribeToken(token, ANN, [{ version: 1, secret: Buffer.alloc(32, 9) }]), false)
  t.end()
})

t.test('a return path is not an unsubscribe token', t => {
  const returnPath = makeReturnPath({ ...ANN, key: KEY, domain: 'bounce.example' })
  const disguised = returnPath.split('@')[0]!.replace(/^r1/, 'u1')
  t.equal(verifyUnsubscribeToken(read(disguised), ANN, [KEY]), false)
  t.end()
})

t.test('a prefixed token fits a local part, and other text is not a token', t => {
  const longest = makeUnsubscribeToken(ANN, { ...KEY, version: 99_999 })
  t.ok(`${UNSUBSCRIBE_PREFIX}${longest}`.length <= 64)
  t.match(parseUnsubscribeToken(longest), { keyVersion: 99_999 })
  const token = makeUnsubscribeToken(ANN, KEY)
  for (const text of [
    '',
    'u1',
    token.slice(1),
    `${token}a`,
    token.replace('u1-1-', 'u1-01-'),
    token.replace('u1', 'u2'),
  ])
    t.equal(parseUnsubscribeToken(text), undefined, text)
  t.throws(() => makeUnsubscribeToken({ ...ANN, messageId: 'm1' }, KEY))
  t.end()
})
