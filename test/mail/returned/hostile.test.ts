/** The parser gives a result for any input: malformed, hostile and endless mail. `make fuzz-bounces` does more of the same. */
import t from 'tap'
import { readReturnedMail } from '../../../src/mail/returned/read-returned-mail.js'
import { assertLinear } from '../../support/count-steps.js'
import { notice, multipart, wire } from '../../support/returned/returned-mail.js'
import { brokenMail, hostileMails, seededNumbers } from '../../support/returned/returned-mail-fuzz.js'

const KINDS = ['bounce', 'delay', 'success', 'feedback', 'auto_reply', 'other']

t.test('two thousand malformed mails each give a bounded result', async t => {
  const below = seededNumbers(20260302)
  const mails = Array.from({ length: 2_000 }, () => readReturnedMail(brokenMail(below)))
  const beyond = mails.filter(
    ({ kind, recipients, original }) =>
      !KINDS.includes(kind) ||
      recipients.length > 200 ||
      (original?.header.size ?? 0) > 100 ||
      recipients.some(one => one.recipient.length > 320 || (one.diagnosticCode?.length ?? 0) > 1_000),
  )
  t.same(beyond, [])
  t.ok(mails.filter(({ recipients }) => recipients.length > 0).length > 100, 'many have recipients')
})

t.test('mail made only of parser triggers is parsed', async t => {
  const mails = [...hostileMails(20_000)]
  t.ok(mails.length > 400)
  t.same(
    mails.filter(({ source }) => !KINDS.includes(readReturnedMail(source).kind)).map(({ name }) => name),
    [],
  )
})

t.test('notices and reports made only of parser triggers take linear time', async t => {
  const mailsOf = (length: number) =>
    [...hostileMails(length)].filter(({ name }) => /^(notice|report) /.test(name))
  const sources = new Map([500, 1_000].map(length => [length, mailsOf(length).map(({ source }) => source)]))
  const read = (length: number, at: number) => readReturnedMail(sources.get(length)?.[at] ?? Buffer.of())
  for (const [at, { name }] of mailsOf(500).entries()) assertLinear(t, length => read(length, at), 500, name)
})

t.test('empty and nearly empty mail is parsed', async t => {
  for (const text of ['', '\r\n', '\0', 'x', ':', 'Subject:', '\r\n\r\n\r\n', '--', '\ufeff'])
    t.match(readReturnedMail(Buffer.from(text)), { kind: 'other', recipients: [] }, JSON.stringify(text))
})

t.test('nested parts are parsed a few levels deep, not a thousand', async t => {
  const nested = (depth: number) => {
    let head = 'From: MAILER-DAEMON@relay.example\nSubject: Undeliverable\n'
    for (let level = 0; level < depth; level++)
      head += `Content-Type: multipart/mixed; boundary=n${level}\n\n--n${level}\n`
    return wire(`${head}\nUser unknown: <ann@example.net>\n`)
  }
  t.equal(readReturnedMail(nested(5)).kind, 'bounce')
  t.equal(readReturnedMail(nested(1_000)).kind, 'other')
})

t.test('a plain Uint8Array is parsed like a Buffer', async t => {
  const source = notice({ text: 'qmail-send program\n\n<ann@example.net>:\n550 5.1.1 no such user\n' })
  t.same(readReturnedMail(new Uint8Array(source)), readReturnedMail(source))
})

t.test('a thousand parts are not all parsed', async t => {
  const parts = Array.from({ length: 1_000 }, () => 'Content-Type: text/plain\n\nnothing')
  t.equal(readReturnedMail(multipart('multipart/mixed', parts)).kind, 'other')
})

t.test('megabytes of returned message after the notice do not matter', async t => {
  const text = `This is the mail system at host relay.example.

<ann@example.net>: host mx.example.net said: 550 5.1.1 no such user

--- Below this line is a copy of the message.

Message-ID: <m1.abc@sender.example>

`
  const source = Buffer.concat([notice({ text }), Buffer.alloc(5_000_000, 'x')])
  t.match(readReturnedMail(source), {
    recipients: [{ recipient: 'ann@example.net', status: '5.1.1' }],
    original: { messageId: 'm1.abc@sender.example' },
  })
})

t.test('encodings and charsets are decoded, and wrong ones ignored', async t => {
  const text = '<ann@example.net>: 550 5.1.1 no such user, Grüße\n'
  const part = (field: string, body: Buffer) => {
    const head = `From: MAILER-DAEMON@relay.example\r\nSubject: Undeliverable\r\n${field}\r\n\r\n`
    return Buffer.concat([Buffer.from(head), body])
  }
  const sources = {
    base64: part(
      'Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: BASE64',
      Buffer.from(Buffer.from(text).toString('base64')),
    ),
    'quoted-printable': part(
      'Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable',
      Buffer.from('<ann=40example.net>: 550 =\r\n5.1.1 no such user, Gr=C3=BC=C3=9Fe\r\n'),
    ),
    latin1: part('Content-Type: text/plain; charset=iso-8859-1', Buffer.from(text, 'latin1')),
    unlabelled: part('X-Nothing: 1', Buffer.from(text)),
    'latin1 said to be ASCII': part(
      'Content-Type: text/plain; charset=us-ascii',
      Buffer.from(text, 'latin1'),
    ),
    'an unknown charset': part('Content-Type: text/plain; charset=x-martian', Buffer.from(text, 'latin1')),
  }
  for (const [name, source] of Object.entries(sources))
    t.match(
      readReturnedMail(source).recipients,
      [{ recipient: 'ann@example.net', status: '5.1.1', diagnosticCode: /no such user, Grüße/ }],
      name,
    )
})

t.test('HTML is used only without plain text', async t => {
  const html =
    '<html><style>p{}</style><p>Undeliverable:</p><p>&lt;ann@example.net&gt;: 550 5.1.1 no <b>such</b> user</p></html>'
  const source = notice({ subject: 'Undeliverable', header: 'Content-Type: text/html', text: html })
  t.match(readReturnedMail(source).recipients, [{ recipient: 'ann@example.net', status: '5.1.1' }])
})

t.test('control characters do not reach the result', async t => {
  const text = 'qmail-send program\n\n<ann@example.net>:\n550 5.1.1 no \u001b[31msuch\u0007 user\n'
  const [one] = readReturnedMail(notice({ text })).recipients
  t.equal(one?.diagnosticCode, '550 5.1.1 no [31msuch user')
})

t.test('a report of ten thousand recipients is cut off, not refused', async t => {
  const groups = Array.from(
    { length: 10_000 },
    (_, index) => `Final-Recipient: rfc822; user${index}@example.net\nAction: failed\nStatus: 5.1.1\n\n`,
  )
  const source = multipart('multipart/report; report-type=delivery-status', [
    `Content-Type: message/delivery-status\n\nReporting-MTA: dns; r.example\n\n${groups.join('')}`,
  ])
  t.equal(readReturnedMail(source).recipients.length, 200)
})
