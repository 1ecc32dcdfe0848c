import t, { type Test } from 'tap'
import { simpleParser, type ParsedMail } from 'mailparser'
import { composeMessage, type ComposedContent } from '../../src/mail/compose/compose.js'
import { AppError } from '../../src/core/errors.js'

const date = Date.UTC(2026, 0, 5, 7, 8, 9)
const letter = { to: 'bob@example.net', date, messageId: '018f3a5c@mail.example.com' }

function content(changes: Partial<ComposedContent> = {}): ComposedContent {
  return { kind: 'composed', from: { address: 'ann@example.com' }, subject: 'Hello', ...changes }
}

/** Composes, checks what holds for every message, and reads it back with mailparser. */
async function sendAndRead(
  t: Test,
  changes: Partial<ComposedContent>,
  to = letter.to,
): Promise<{ raw: string; read: ParsedMail }> {
  const message = await composeMessage(content(changes), { ...letter, to })
  const raw = message.toString('latin1')
  t.notMatch(raw, /[^\t\r\n\x20-\x7e]/, '7-bit text throughout')
  t.notMatch(raw, /\r(?!\n)|(?<!\r)\n/, 'CRLF only')
  t.notOk(
    raw.split('\r\n').some(line => line.length > 998),
    'no line over 998',
  )
  const head = raw.slice(0, raw.indexOf('\r\n\r\n'))
  t.notMatch(head, /\r\n[ \t]*\r\n/, 'no header line of white space only')
  return { raw, read: await simpleParser(message, { skipHtmlToText: true, skipTextToHtml: true }) }
}

t.test('HTML and text go out as alternatives, the HTML last', async t => {
  const { raw, read } = await sendAndRead(t, {
    html: '<p>Hello Bob</p>',
    text: 'Hello Bob',
    subject: 'Greetings',
  })
  t.match(read, { subject: 'Greetings', html: '<p>Hello Bob</p>', text: 'Hello Bob' })
  t.match(read.from, { text: 'ann@example.com' })
  t.match(read.to, { text: 'bob@example.net' })
  t.equal(read.messageId, '<018f3a5c@mail.example.com>')
  t.match(raw, /^Date: Mon, 05 Jan 2026 07:08:09 \+0000\r$/m)
  t.match(raw, /^Content-Type: multipart\/alternative;/m)
  t.ok(raw.indexOf('text/plain') < raw.indexOf('text/html'))
  t.notMatch(raw, /X-Mailer|format=flowed/i)
})

t.test('a missing text is derived from the HTML, with links and without images', async t => {
  const { read } = await sendAndRead(t, {
    html: '<h1>Sale</h1><p>See <a href="https://example.com/s?a=1&amp;b=2">our shop</a><img src="x.png" alt="x"></p>',
  })
  t.equal(read.text?.trim(), 'Sale\n\nSee our shop <https://example.com/s?a=1&b=2>')
})

t.test('text alone is sent as a single part', async t => {
  const { raw, read } = await sendAndRead(t, { text: 'Just text\nin two lines' })
  t.notMatch(raw, /multipart/)
  t.equal(read.text, 'Just text\nin two lines\n')
  t.equal(read.html, false)
})

t.test('a message without content is valid', async t => {
  const { raw, read } = await sendAndRead(t, {})
  t.ok(raw.endsWith('\r\n\r\n'))
  t.equal(read.text?.trim() ?? '', '')
  const empty = await sendAndRead(t, { html: '', text: '', subject: '' })
  t.equal(empty.read.subject ?? '', '')
})

t.test('difficult text arrives unchanged', async t => {
  const text = [
    '.',
    '..hidden',
    'From the start of a line',
    'trailing space ',
    'trailing tab\t',
    '= equals =3D',
    'no\u00a0break\u00a0space',
    'Ünïcödé \u{1f600}\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
    'x'.repeat(5_000),
    'ö'.repeat(700),
    '',
    '--=_boundary--',
    'the end',
  ].join('\n')
  const html = `<p>${text}</p>`
  const { read } = await sendAndRead(t, { html, text })
  t.equal(read.text, text)
  t.equal(read.html, html)
})

t.test('encoded bodies stay within 76 columns, in base64 too', async t => {
  for (const text of [
    'word '.repeat(2_000),
    '日本語のメール。'.repeat(500),
    'x'.repeat(3_000),
    'é=\t '.repeat(999),
  ]) {
    const { raw, read } = await sendAndRead(t, { text })
    t.equal(read.text?.replace(/\n$/, ''), text)
    t.notOk(raw.split('\r\n').some(line => line.length > 76))
  }
  const { raw } = await sendAndRead(t, { text: '日本語のメール。'.repeat(500) })
  t.match(raw, /^Content-Transfer-Encoding: base64\r$/m)
})

t.test('every kind of line ending is sent as CRLF', async t => {
  const { read } = await sendAndRead(t, { text: 'a\r\nb\nc\rd' })
  t.equal(read.text, 'a\nb\nc\nd\n')
})

const texts = [
  'Plain',
  'Grüße aus Köln',
  'Say "hello", Ann; (now) <here> @ noon',
  'back\\slash',
  '\u{1f600} smile \u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
  'no\u00a0break',
  '日本語の件名'.repeat(20),
  'ascii words that go on '.repeat(20).trim(),
  'x'.repeat(998),
  'é'.repeat(998),
  `two  spaces${' '.repeat(200)}and many`,
  ' in front and behind ',
  '=?utf-8?Q?not_an_encoded_word?=',
  'see =?utf-8?B?Zm9v?= here',
  '=?broken',
]
for (const text of texts) {
  t.test(`the subject "${text.slice(0, 40)}" arrives unchanged`, async t => {
    const { read } = await sendAndRead(t, { subject: text, text: 'x' })
    t.equal(read.subject, text)
  })
  t.test(`the sender name "${text.slice(0, 40)}" arrives unchanged`, async t => {
    const { read } = await sendAndRead(t, { from: { name: text, address: 'ann@example.com' }, text: 'x' })
    t.same(read.from?.value, [{ name: text, address: 'ann@example.com' }])
  })
}

t.test('header fields are folded to 76 columns at spaces', async t => {
  const { raw } = await sendAndRead(t, {
    subject: 'Ünïcödé and ascii '.repeat(50),
    from: { name: 'Ann, "the" boss '.repeat(14), address: 'ann@example.com' },
    text: 'x',
  })
  for (const line of raw.split('\r\n')) t.ok(line.length <= 76, line)
})

t.test('domains are sent as A-labels', async t => {
  const { raw } = await sendAndRead(
    t,
    { from: { name: 'Ann', address: 'ann@bücher.example' }, replyTo: { address: 'r@bücher.example' } },
    'bob@BÜCHER.example',
  )
  t.match(raw, /^From: Ann <ann@xn--bcher-kva\.example>\r$/m)
  t.match(raw, /^Reply-To: r@xn--bcher-kva\.example\r$/m)
  t.match(raw, /^To: bob@xn--bcher-kva\.example\r$/m)
})

t.test('a quoted local part stays one address', async t => {
  const { read } = await sendAndRead(t, { text: 'x' }, '"a,b@c"@example.net')
  t.match(read.to, { value: [{ address: '"a,b@c"@example.net' }] })
})

t.test('a recipient who needs SMTPUTF8 is shown in UTF-8', async t => {
  const message = await composeMessage(content({ text: 'x' }), { ...letter, to: 'jörg@example.net' })
  t.match(message.toString('utf8'), /^To: jörg@example\.net\r$/m)
  t.match(await simpleParser(message), { to: { value: [{ address: 'jörg@example.net' }] } })
})

t.test(
  'with copies, such an address is UTF-8 for SMTPUTF8 recipients and an ASCII group for the others',
  async t => {
    const addressees = {
      to: [{ address: 'ann@example.net' }, { address: 'jörg@example.net' }],
      cc: [{ address: 'jürgen@example.net' }],
      hasCopies: true,
    }
    const compose = (to: string) => composeMessage(content({ text: 'x', addressees }), { ...letter, to })
    const seven = (await compose('ann@example.net')).toString('latin1')
    t.match(seven, /^To: ann@example\.net, =\?UTF-8\?Q\?j=C3=B6rg=40example=2Enet\?=:;\r$/m)
    t.match(seven, /^Cc: =\?UTF-8\?Q\?j=C3=BCrgen=40example=2Enet\?=:;\r$/m)
    t.notMatch(seven, /[\x80-\xff]/)
    const international = (await compose('jürgen@example.net')).toString('utf8')
    t.match(international, /^To: ann@example\.net, jörg@example\.net\r\nCc: jürgen@example\.net\r$/m)
  },
)

t.test('additional fields are sent in order, List-Unsubscribe unchanged', async t => {
  const { raw, read } = await sendAndRead(t, {
    text: 'x',
    headers: [
      {
        name: 'List-Unsubscribe',
        value: `<https://example.com/u/${'a'.repeat(200)}>, <mailto:u@example.com>`,
      },
      { name: 'List-Unsubscribe-Post', value: 'List-Unsubscribe=One-Click' },
      { name: 'X-Note', value: 'Grüße' },
      { name: 'X-Empty', value: '' },
    ],
  })
  t.match(raw, `List-Unsubscribe: <https://example.com/u/${'a'.repeat(200)}>,\r\n <mailto:u@example.com>\r\n`)
  t.match(raw, 'List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n')
  t.match(raw, 'X-Note: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\r\n')
  t.equal(read.subject, 'Hello')
})

t.test('composing again gives the same octets, and another message another boundary', async t => {
  const both = content({ html: '<p>x</p>' })
  const first = await composeMessage(both, letter)
  t.ok(first.equals(await composeMessage(both, letter)))
  const boundaryOf = (message: Buffer) => /boundary="([^"]+)"/.exec(message.toString())?.[1]
  t.not(
    boundaryOf(await composeMessage(both, { ...letter, messageId: 'other@example.com' })),
    boundaryOf(first),
  )
})

t.test('a part that contains the boundary does not end early', async t => {
  const first = (await composeMessage(content({ html: '<p>x</p>' }), letter)).toString()
  const boundary = /boundary="([^"]+)"/.exec(first)![1]!
  const text = `--${boundary}\n--${boundary}--\nthe end`
  const { read } = await sendAndRead(t, { html: '<p>x</p>', text })
  t.equal(read.text, text)
})

const injections: Readonly<Record<string, readonly [Partial<ComposedContent>, string]>> = {
  subject: [{ subject: 'a\r\nBcc: eve@example.com' }, 'subject'],
  'sender name': [{ from: { name: 'a\nBcc: eve@example.com', address: 'ann@example.com' } }, 'from_name'],
  'sender address': [{ from: { address: 'ann@example.com\r\nBcc: eve@example.com' } }, 'from'],
  'reply address': [{ replyTo: { address: 'a@example.com>, <b@example.com' } }, 'reply_to'],
  'reply name': [{ replyTo: { name: 'a\0', address: 'a@example.com' } }, 'reply_to_name'],
  'header value': [{ headers: [{ name: 'X-A', value: 'a\r\nBcc: eve@example.com' }] }, 'headers.X-A'],
  'header name': [{ headers: [{ name: 'X-A: b\r\nBcc', value: 'c' }] }, 'headers.X-A: b\r\nBcc'],
  'second From': [{ headers: [{ name: 'FROM', value: 'eve@example.com' }] }, 'headers.FROM'],
  'second Content-Type': [
    { headers: [{ name: 'Content-Type', value: 'text/html' }] },
    'headers.Content-Type',
  ],
  'header without a place to fold': [{ headers: [{ name: 'X-A', value: 'a'.repeat(999) }] }, 'headers.X-A'],
  'sender that no ASCII header can hold': [{ from: { address: 'jörg@example.com' } }, 'from'],
}
for (const [what, [changes, path]] of Object.entries(injections))
  t.test(`a ${what} that is invalid in a header is rejected, naming the field`, async t => {
    const refusal = await composeMessage(content({ text: 'x', ...changes }), letter).catch(
      (error: unknown) => error,
    )
    t.ok(refusal instanceof AppError)
    t.match(refusal, { code: 'validation_error', path })
  })
