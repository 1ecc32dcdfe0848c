import t from 'tap'
import { createHash, createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import {
  assertSignable,
  canonicalField,
  fieldName,
  signMessage,
  splitMessage,
  type DkimKey,
} from '../../src/mail/dkim/dkim-sign.js'
import { canonicalBody } from '../support/canonical-body.js'

function canonicalText(body: string): string {
  return canonicalBody(Buffer.from(body, 'latin1')).toString('latin1')
}

t.test('the example of RFC 6376 §3.4.5 canonicalizes as printed', async t => {
  const { fields, body } = splitMessage(
    Buffer.from('A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n'),
  )
  t.same(fields.map(canonicalField), ['a:X', 'b:Y Z'])
  t.equal(canonicalBody(body).toString(), ' C\r\nD E\r\n')
})

t.test('the hash of an empty body is that of no octets', async t => {
  // RFC 6376 §3.4.4 prints this value.
  const hash = createHash('sha256')
    .update(canonicalBody(Buffer.alloc(0)))
    .digest('base64')
  t.equal(hash, '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')
})

const bodies: readonly (readonly [what: string, body: string, canonical: string])[] = [
  ['only empty lines', '\r\n\r\n\r\n', ''],
  ['only white space', ' \t ', ''],
  ['only lines of white space', ' \r\n\t\r\n', ''],
  ['no line end', 'abc', 'abc\r\n'],
  ['white space instead of a line end', 'abc \t', 'abc\r\n'],
  ['trailing empty lines', 'abc\r\n\r\n\r\n', 'abc\r\n'],
  ['trailing lines of white space', 'abc\r\n \r\n\t', 'abc\r\n'],
  ['empty lines in front and between', '\r\n\r\nabc\r\n\r\nd\r\n', '\r\n\r\nabc\r\n\r\nd\r\n'],
  ['a line of white space between', 'a\r\n \t \r\nb\r\n', 'a\r\n\r\nb\r\n'],
  ['white space at a line start', ' \t a\r\n', ' a\r\n'],
  ['runs of white space', 'a \t b  c\td\r\n', 'a b c d\r\n'],
  ['white space at a line end', 'a \t\r\nb\r\n', 'a\r\nb\r\n'],
  ['NBSP, VT and FF, which are text', 'a\xa0\xa0b\v\v\f c\xa0\r\n', 'a\xa0\xa0b\v\v\f c\xa0\r\n'],
  ['dots at line starts', '.\r\n..a\r\n', '.\r\n..a\r\n'],
]
for (const [what, body, canonical] of bodies)
  t.test(`a body with ${what} is canonicalized as the RFC says`, async t => {
    t.equal(canonicalText(body), canonical)
  })

t.test('a long body is canonicalized as a short one is, wherever its pieces begin', async t => {
  const lines = 'x'.repeat(70) + '  y \r\n'
  const canonicalLines = 'x'.repeat(70) + ' y\r\n'
  const emptyLines = '\r\n'.repeat(70_000)
  for (const before of ['', 'a\r\n', `${'b'.repeat(997)}\r\n`]) {
    const [body, canonical] = [before + lines.repeat(3_000), before + canonicalLines.repeat(3_000)]
    t.ok(canonicalText(body) === canonical, 'lines')
    t.ok(canonicalText(body + emptyLines) === canonical, 'and empty lines at the end')
    t.ok(canonicalText(`${body + emptyLines}z`) === `${canonical + emptyLines}z\r\n`, 'and text after them')
  }
  t.ok(canonicalText(emptyLines) === '', 'empty lines alone')
  t.throws(() => canonicalText('x'.repeat(200_000)), /998/)
})

t.test('header canonicalization changes only folding and white space', async t => {
  t.equal(canonicalField('SUBJect \t: a  b\r\n\t c \t'), 'subject:a b c')
  t.equal(canonicalField('X:\r\n y'), 'x:y')
  t.equal(canonicalField('X:'), 'x:')
  t.equal(canonicalField('X: a:b\xa0 \v'), 'x:a:b\xa0 \v')
  t.equal(fieldName('List-ID : x'), 'list-id')
})

t.test('a message is split at its first empty line', async t => {
  const { fields, body } = splitMessage(Buffer.from('A: 1\r\n folded\r\nB: 2\r\n\r\nbody\r\n\r\nmore'))
  t.same(fields, ['A: 1\r\n folded', 'B: 2'])
  t.equal(body.toString(), 'body\r\n\r\nmore')
  t.match(splitMessage(Buffer.from('A: 1\r\n')), { fields: ['A: 1'], body: Buffer.alloc(0) })
  t.match(splitMessage(Buffer.from('\r\nbody')), { fields: [], body: Buffer.from('body') })
})

t.test('a message that relays would alter is not signed', async t => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const key: DkimKey = {
    domain: 'a.example',
    selector: 's',
    algorithm: 'ed25519',
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
  const sign = (message: string) => signMessage(Buffer.from(message, 'latin1'), [key], 0)
  const refused: readonly (readonly [message: string, reason: RegExp])[] = [
    ['A: caf\xe9\r\n\r\n', /neither ASCII nor UTF-8/],
    ['A: caf\xe9\r\n', /7-bit/],
    ['A: \xc3\xa9\r\n\r\n\xc3\xa9', /7-bit/],
    ['A: b\r\n\r\nx\xa0y\r\n', /7-bit/],
    ['A: b\r\n\r\nx\ny\r\n', /bare CR or LF/],
    ['A: b\r\n\r\nx\ry\r\n', /bare CR or LF/],
    ['A: b\r\n\r\nx\r', /bare CR or LF/],
    ['A: b\r\n\r\nx\r\r\n', /bare CR or LF/],
    ['A: b\r\n\r\nx \ry\r\n', /bare CR or LF/],
    ['A: b\r\n\r\nx \t\ny\r\n', /bare CR or LF/],
    ['A: b\nc\r\n\r\nx\r\n', /bare CR or LF/],
    [`A: ${'x'.repeat(996)}\r\n\r\n`, /998/],
    [`A: b\r\n\r\n${'x'.repeat(999)}\r\n`, /998/],
    [`A: b\r\n\r\n${'x'.repeat(999)}`, /998/],
  ]
  for (const [message, reason] of refused) {
    t.throws(() => assertSignable(Buffer.from(message, 'latin1')), reason)
    await t.rejects(sign(`From: a@a.example\r\n${message}`), reason)
  }
  await t.resolves(sign(`From: a@a.example\r\n\r\n${'x '.repeat(499)}\r\n${'y'.repeat(998)}`))
  t.doesNotThrow(() => assertSignable(Buffer.from('A: é\r\n\r\nb')))
  t.doesNotThrow(() => assertSignable(Buffer.from(`A: b\r\n\r\n${'x'.repeat(998)}\r\n${'y'.repeat(998)}`)))
})

t.test('the Ed25519 signature of RFC 8463 A.3 verifies over our canonical form', async t => {
  const signature = [
    'DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;',
    ' d=football.example.com; i=@football.example.com;',
    ' q=dns/txt; s=brisbane; t=1528637909; h=from : to :',
    ' subject : date : message-id : from : subject : date;',
    ' bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;',
    ' b=',
  ].join('\r\n')
  const message = [
    'From: Joe SixPack <joe@football.example.com>',
    'To: Suzie Q <suzie@shopping.example.net>',
    'Subject: Is dinner ready?',
    'Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)',
    'Message-ID: <20030712040037.46341.5F8J@football.example.com>',
    '',
    'Hi.',
    '',
    'We lost the game.  Are you hungry yet?',
    '',
    'Joe.',
    '',
  ].join('\r\n')
  const { fields, body } = splitMessage(Buffer.from(message))
  const bodyHash = createHash('sha256').update(canonicalBody(body)).digest('base64')
  t.equal(bodyHash, '2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=')

  const byName = new Map(fields.map(field => [fieldName(field), canonicalField(field)]))
  const named = ['from', 'to', 'subject', 'date', 'message-id'].map(name => `${byName.get(name)!}\r\n`)
  const hash = createHash('sha256')
    .update(named.join('') + canonicalField(signature))
    .digest()
  const x = Buffer.from('11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=', 'base64').toString('base64url')
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const printed = '/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw=='
  t.equal(verify(null, hash, publicKey, Buffer.from(printed, 'base64')), true)
})
