import t from 'tap'
import { AppError } from '../../../src/core/errors.js'
import {
  fieldText,
  findField,
  readRelayedHeader,
  assertNoFaults,
} from '../../../src/mail/relay/relayed-header.js'
import { hasDkimSignature, protectionOf } from '../../../src/mail/relay/readable-parts.js'
import { assertLinear } from '../../support/count-steps.js'
import { mail, raw, utf8 } from '../../support/mime-corpus/build.js'
import { mimeCorpus } from '../../support/mime-corpus/corpus.js'

function header(...lines: readonly string[]) {
  return readRelayedHeader(Buffer.from(`${lines.join('\r\n')}\r\n\r\nbody`, 'latin1'))
}

function faultOf(...lines: readonly string[]): string | undefined {
  return header(...lines).faults[0]?.message
}

const FROM = 'From: ann@example.com'

t.test('a plain header yields author, recipients, subject and the start of the body', async t => {
  const { message } = mail('', { Cc: 'cy@example.org', 'Reply-To': 'Desk <desk@example.com>' }, ['Hi'])
  const read = readRelayedHeader(message)
  t.match(read, {
    from: [{ name: 'Ann Example', address: { address: 'ann@example.com', domain: 'example.com' } }],
    replyTo: [{ name: 'Desk', address: { address: 'desk@example.com' } }],
    to: 'Bob <bob@example.net>',
    cc: 'cy@example.org',
    subject: 'Minutes of the meeting',
    date: 'Mon, 5 Jan 2026 07:08:09 +0100',
    messageId: '20260105.1@ann.example.com',
    hasMimeVersion: true,
    isEightBit: false,
    faults: [],
  })
  t.equal(message.toString('latin1', read.bodyStart), 'Hi\r\n')
  t.equal(read.fields.map(({ raw: field }) => `${field}\r\n`).join(''), read.text)
  t.doesNotThrow(() => {
    assertNoFaults(read)
  })
})

t.test('every mail of the corpus is accepted, and its fields add up to its header', async t => {
  for (const { name, message } of mimeCorpus) {
    const { text, fields, bodyStart, faults } = readRelayedHeader(message)
    t.strictSame(faults, [], name)
    t.equal(fields.map(({ start, end }) => text.slice(start, end)).join(''), text, name)
    t.ok(message.toString('latin1').startsWith(text), name)
    t.ok(
      bodyStart === message.length || message.toString('latin1', bodyStart - 4, bodyStart) === '\r\n\r\n',
      name,
    )
  }
})

t.test('names and subjects are decoded from any charset', async t => {
  t.equal(header(FROM, utf8('Subject: Grüße')).subject, 'Grüße')
  t.equal(header(FROM, 'Subject: Caf\xe9').subject, 'Café')
  t.equal(header(FROM, 'Subject: \xf0\xd2', 'Content-Type: text/plain; charset=koi8-r').subject, 'Пр')
  t.equal(
    header(FROM, 'Subject: =?utf-8?B?R3LDvA==?= =?utf-8?Q?=C3?=\r\n =?utf-8?Q?=9Fe_x?= y').subject,
    'Grüße x y',
  )
  t.equal(header(FROM, 'Subject: =?utf-8*de?q?=C3=BC?= =?no-such?q?a?= =?broken').subject, 'üa =?broken')
  t.match(header('From: =?utf-8?Q?J=C3=BCrgen?= <a@example.com>').from, [{ name: 'Jürgen' }])
  t.match(header('From: "Doe, \\"Ann\\"" <a@example.com>').from, [{ name: 'Doe, "Ann"' }])
  t.match(header('From: a@example.com (Ann (the) Doe)').from, [{ name: 'Ann (the) Doe' }])
  t.match(header('From: <@relay.example,@b.example:a@example.com>').from, [
    { address: { address: 'a@example.com' } },
  ])
  t.match(header(utf8('From: Ö <o@bücher.example>')).from, [
    { name: 'Ö', address: { address: 'o@xn--bcher-kva.example' } },
  ])
  t.match(header('From: a@example.com <a@example.com>').from, [{ address: { address: 'a@example.com' } }])
  const other = header(FROM, 'X-Other: =?utf-8?q?=C3=BC?=\r\n\tx')
  const field = findField(other, 'x-other')
  t.equal(field && fieldText(other, field), 'ü\tx')
})

t.test('several authors require a Sender, and all are returned', async t => {
  const authors = 'From: ann@example.com, "Bob" <bob@example.com>'
  t.match(faultOf(authors), /several addresses, which requires a Sender/)
  const read = header(authors, 'Sender: ann@example.com')
  t.strictSame(read.faults, [])
  t.equal(read.from.length, 2)
  t.match(read.sender, { address: { address: 'ann@example.com' } })
})

t.test('an ambiguous header is rejected with the reason', async t => {
  t.match(faultOf('Subject: x'), /no From field/)
  t.match(faultOf(FROM, 'From: bob@example.com'), /more than one From/)
  t.match(faultOf(FROM, 'Subject: a', 'SUBJECT: b'), /more than one SUBJECT/)
  t.match(faultOf(FROM, 'Date: a', 'Date: b'), /more than one Date/)
  t.match(faultOf(FROM, 'Content-Type: text/plain', 'Content-Type: text/html'), /more than one Content-Type/)
  t.equal(faultOf(FROM, 'Received: a', 'Received: b'), undefined)
  t.match(faultOf('From:'), /From field has no address/)
  t.match(faultOf('From: undisclosed:;'), /From field has no address/)
  t.match(faultOf('From: Ann'), /has no @/)
  t.match(faultOf('From: Ann <ann@example.com'), /unclosed angle bracket/)
  t.match(faultOf('From: "Ann <ann@example.com>'), /unclosed quote/)
  t.match(faultOf('From: Ann (x <ann@example.com>'), /unclosed comment/)
  t.match(faultOf('From: <ann@example.com> <bob@example.com>'), /two addresses/)
  t.match(faultOf('From: <ann@example.com> bob'), /text after/)
  t.match(faultOf('From: ann@example.com> x'), /unmatched closing bracket/)
  t.match(faultOf('From: boss@bank.example <ann@example.com>'), /display name that is a different address/)
  t.match(faultOf('From: a: b: c@example.com;;'), /nested groups/)
  t.match(faultOf(FROM, 'no colon here'), /without a colon/)
  t.match(faultOf(' folded', FROM), /begins with a folded line/)
  t.match(faultOf(FROM, 'Subject : x'), /invalid characters/)
  t.match(faultOf('From ann@example.com Mon Jan 5 07:08:09 2026', FROM), /invalid characters/)
  t.match(faultOf(FROM, ': nameless'), /invalid characters/)
  t.match(faultOf(FROM, utf8('Größe: x')), /invalid characters/)
  t.match(faultOf(FROM, 'Subject: a\0b'), /NUL/)
  t.match(faultOf(FROM, 'Subject: =?utf-8?Q?a=00b?='), /the Subject field has a NUL/)
  t.match(faultOf(FROM, 'To: =?utf-8?B?AA==?= <bob@example.com>'), /the To field has a NUL/)
  t.match(faultOf('From: =?utf-8?Q?=00?= <ann@example.com>'), /the From field has a NUL/)
  t.match(faultOf(FROM, 'Reply-To: =?utf-8?Q?=00?= <ann@example.com>'), /the Reply-To field has a NUL/)
})

t.test('an invalid header is rejected with the field as path', async t => {
  t.throws(
    () => {
      assertNoFaults(header('Subject: x'))
    },
    new AppError('missing_from_email', 'the header has no From field', { path: 'From' }),
  )
  t.throws(
    () => {
      assertNoFaults(header('From: Ann'))
    },
    { code: 'validation_error', path: 'From' },
  )
})

t.test('headers have a size limit and a field limit', async t => {
  t.match(faultOf(FROM, `X-Long: ${'x'.repeat(70_000)}`), /longer than 65536/)
  t.match(faultOf(FROM, ...Array.from({ length: 1_000 }, () => 'a: b')), /more than 1000 fields/)
  t.equal(faultOf(FROM, ...Array.from({ length: 999 }, () => 'a: b')), undefined)
})

t.test('empty fields that will be added count as missing', async t => {
  const read = header(FROM, 'Date: ', 'Message-ID: <>')
  t.equal(read.date, undefined)
  t.equal(read.messageId, undefined)
})

t.test('hostile headers are parsed in linear time', async t => {
  for (const value of [
    '=?',
    '=?a?q?',
    '(',
    '<',
    '"\\',
    '"',
    ' ',
    ',',
    ':',
    'a@',
    '\\',
    '=?utf-8?q?a?= ',
    '@ ',
    '; a',
    ';a="',
  ])
    for (const name of ['From', 'To', 'Subject', 'Content-Type'])
      assertLinear(t, count => header(`${name}: ${value.repeat(count)}`), 500, `${name}: ${value}`)
})

t.test('mail signed or encrypted by its author is detected', async t => {
  const expected: Record<string, string> = {
    'signed with PGP': 'signed',
    'signed with S/MIME': 'signed',
    'encrypted with PGP': 'encrypted',
    'encrypted with S/MIME': 'smime',
    'encrypted with S/MIME as binary': 'smime',
    'PGP in the text': 'pgp-text',
    'signed in the text, as 8bit': 'pgp-text',
  }
  for (const { name, message } of mimeCorpus) {
    const isSigned = name.startsWith('signed with PGP')
    t.equal(protectionOf(readRelayedHeader(message), message), isSigned ? 'signed' : expected[name], name)
    t.equal(hasDkimSignature(readRelayedHeader(message)), name === 'signed with DKIM by another party', name)
  }
  const armour = '-----BEGIN PGP MESSAGE-----\r\n\r\nhQEM\r\n-----END PGP MESSAGE-----\r\n'
  const encoded = mail('', { 'Content-Transfer-Encoding': 'base64' }, Buffer.from(armour).toString('base64'))
  t.equal(protectionOf(readRelayedHeader(encoded.message), encoded.message), 'pgp-text')
  const quoted = raw('', `${FROM}\r\n\r\n> ${armour}`)
  t.equal(protectionOf(readRelayedHeader(quoted.message), quoted.message), undefined)
})

t.test('a long field is cut for display between characters', async t => {
  for (const before of ['', 'x', 'xx']) {
    const text = `${before}${'é€'.repeat(2_000)}`
    const to = Buffer.from(text).toString('latin1')
    t.equal(
      readRelayedHeader(Buffer.from(`From: a@b.example\r\nTo: ${to}\r\n\r\n`, 'latin1')).to,
      text.slice(0, 1_000),
    )
  }
})
