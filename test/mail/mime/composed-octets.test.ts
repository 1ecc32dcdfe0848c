/**
 * A retry sends what the first attempt sent, also where the server was updated between them: what is composed must not change by
 * an octet without need. The digest is that of nodemailer's words and quoted-printable text, but for where soft line breaks stand
 * since lines are broken by our own code (`encoded-text.ts`).
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { composeMessage } from '../../../src/mail/compose/compose.js'
import { decodeWords, encodeWords } from '../../../src/mail/mime/encoded-word.js'
import { encodeQuotedPrintable } from '../../../src/mail/mime/transfer-encoding.js'

const DIGEST = '04b0934963543b2ad45c33603c1af490a988ed898b4f94211b461557cd69a4a2'

const PIECES = [
  ...[
    'a',
    'b ',
    'c',
    ' ',
    '  ',
    'é',
    'ö',
    '漢',
    '字',
    '😀',
    '=',
    '?',
    '_',
    '.',
    ',',
    '!',
    '=?',
    '?=',
    '"',
    '\\',
  ],
  ...['word ', 'longerword', '\u00a0', '-', '\r\n', '\n', 'The quick brown fox. ', '\t', 'x@y.example '],
  ...['<p>', '</p>'],
]

/** Letters of every mixture, the same each time. */
function letters() {
  let state = 20260105
  const below = (count: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state % count
  }
  const text = (length: number, kinds: number) =>
    Array.from({ length }, () => PIECES[below(kinds)] ?? '').join('')
  const line = (length: number, kinds: number) => text(below(length), kinds).replace(/[\r\n\t]+/g, ' ')
  return Array.from({ length: 400 }, (_, index) => {
    const kinds = 1 + below(PIECES.length)
    const content = {
      kind: 'composed' as const,
      from: { name: line(30, kinds), address: 'desk@example.com' },
      subject: line(60, kinds),
      text: text(below(400), kinds),
      html: text(below(300), kinds),
      headers: [{ name: 'X-Note', value: line(40, kinds) }],
      attachments: [
        {
          filename: line(30, kinds) || 'file',
          contentType: 'application/pdf',
          octets: Buffer.from(text(below(500), kinds)),
        },
      ],
    }
    const date = Date.UTC(2026, 0, 5, 7, 8, 9) + index * 1_000
    return { content, letter: { to: 'ann@example.net', date, messageId: `m${index}@example.com` } }
  })
}

t.test('four hundred letters compose to the same octets as ever', async t => {
  const digest = createHash('sha256')
  for (const { content, letter } of letters()) digest.update(await composeMessage(content, letter))
  t.equal(digest.digest('hex'), DIGEST)
})

t.test('encoded-words split no character and fit after a field name', t => {
  t.equal(encodeWords('Grüße aus Köln'), '=?UTF-8?Q?Gr=C3=BC=C3=9Fe_aus_K=C3=B6ln?=')
  t.equal(encodeWords('ends in a blank '), '=?UTF-8?Q?ends_in_a_blank=20?=')
  t.equal(encodeWords('漢字'), '=?UTF-8?B?5ryi5a2X?=')
  for (const text of ['ü'.repeat(100), '漢'.repeat(100), '😀x'.repeat(60)])
    for (const word of encodeWords(text).split(' ')) {
      t.ok(word.length <= 52, word)
      t.notMatch(decodeWords(word), '\ufffd')
    }
  t.end()
})

t.test('quoted-printable without soft breaks keeps the line breaks of the text', t => {
  const encode = (text: string) => encodeQuotedPrintable(Buffer.from(text), Infinity).toString('latin1')
  t.equal(encode(`${'x'.repeat(200)}\r\nblank \r\n=ü\t`), `${'x'.repeat(200)}\r\nblank=20\r\n=3D=C3=BC=09`)
  t.end()
})
