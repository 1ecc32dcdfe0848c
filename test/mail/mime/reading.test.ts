/** Header fields, charsets and transfer encodings of other programs. */
import t from 'tap'
import { decodeCharset, decodeOctets } from '../../../src/mail/mime/charset.js'
import { decodeUnknownText, decodeWords } from '../../../src/mail/mime/encoded-word.js'
import { headerDate } from '../../../src/mail/mime/write-header-field.js'
import {
  HeaderSection,
  readFields,
  readHeaderSection,
  readMessageHeader,
  unfoldedValue,
} from '../../../src/mail/mime/header-fields.js'
import { decodeTransfer } from '../../../src/mail/mime/transfer-encoding.js'

t.test('fields keep every octet, whatever their line endings', t => {
  for (const end of ['\r\n', '\n']) {
    const text = ['A: one', ' two', 'no field', 'B : three', ''].join(end)
    const fields = readFields(text, 10)
    t.equal(fields.map(({ start, end }) => text.slice(start, end)).join(''), text)
    t.same(
      fields.map(({ name }) => name),
      ['a', '', 'b'],
    )
    t.equal(unfoldedValue(fields[0]?.raw ?? ''), 'one two')
  }
  t.equal(readFields('a: b\n'.repeat(50), 10).length, 11)
  t.end()
})

t.test('a section is looked up by name, with folding reduced to single spaces', t => {
  const section = readHeaderSection(
    'Subject: one\n\t two\n  \n three\nTo:\n ann@example.net\nTo: bob@example.net',
  )
  t.equal(section.raw('subject'), 'one two  three')
  t.same(section.all('to'), ['ann@example.net', 'bob@example.net'])
  t.equal(readMessageHeader('\n\nSubject: x\r\n\r\nTo: body').size, 1)
  t.equal(new HeaderSection(readFields('a: b\n'.repeat(5_000), 5_000)).size, 500)
  t.end()
})

t.test('encoded-words that split a character are joined', t => {
  t.equal(decodeWords('=?utf-8?Q?Gr=C3?= =?UTF-8?Q?=BC=C3=9Fe?= now'), 'Grüße now')
  t.equal(decodeWords('=?utf-8?B?R3LD?=\r\n =?utf-8?B?vMOfZQ==?='), 'Grüße')
  // Each begins and ends in ASCII (RFC 2047 §3): put together, the escapes between them would be an error.
  t.equal(decodeWords('=?ISO-2022-JP?B?GyRCJCIbKEI=?= =?ISO-2022-JP?B?GyRCJCQbKEI=?='), 'あい')
  t.equal(decodeWords('=?iso-8859-1*de?Q?Gr=FC=DFe?='), 'Grüße')
  t.equal(decodeWords('=?utf-8?Q?no end'), '=?utf-8?Q?no end')
  t.end()
})

t.test('text with no charset or a wrong one is decoded as what it is', t => {
  t.equal(decodeCharset(Buffer.from('Grüße'), 'us-ascii'), 'Grüße')
  t.equal(decodeCharset(Buffer.from('Grüße', 'latin1'), 'utf-8'), 'Grüße')
  t.equal(decodeCharset(Buffer.from('Grüße', 'latin1'), 'x-martian'), 'Grüße')
  t.equal(decodeCharset(Buffer.from('plain'), 'utf-16'), 'plain')
  t.equal(decodeCharset(Buffer.from('plain', 'utf16le'), 'utf-16le'), 'plain')
  t.equal(decodeUnknownText('\x1b$B$"\x1b(B'), 'あ')
  t.equal(decodeUnknownText('Grüße 漢'), 'Grüße 漢')
  for (const label of ['utf-8', 'us-ascii', 'utf-16', 'shift_jis', 'iso-2022-jp', 'x-martian', ''])
    t.equal(decodeOctets('Gr\xfc\xdfe', label), 'Grüße', `declared as ${label}`)
  t.equal(decodeOctets('\xf0\xd2\xc9', 'koi8-r'), 'При', 'as the text of the message')
  t.end()
})

t.test('a thousand unknown charsets are not all looked up', t => {
  const words = Array.from({ length: 5_000 }, (_, index) => `=?x-${index}?Q?=E4?=`).join(' ')
  const text = decodeWords(words)
  t.ok(text.startsWith('ääää'))
  t.ok(text.length < words.length)
  t.end()
})

t.test('transfer encodings are decoded, and unknown ones left alone', t => {
  const decode = (text: string, encoding: string) =>
    decodeTransfer(Buffer.from(text, 'latin1'), encoding).toString('latin1')
  for (const end of ['\r\n', '\n'])
    t.equal(decode(`a=${end}b \t${end}=41=zz=`, 'quoted-printable'), `ab${end}A=zz`)
  t.equal(decode('Z3\r\nLDvA==', 'base64'), 'gr\xc3\xbc')
  t.equal(decode('=41', 'x-unknown'), '=41')
  t.end()
})

t.test('dates are written with a numeric zone', t => {
  t.equal(headerDate(Date.UTC(2026, 0, 5, 7, 8, 9)), 'Mon, 05 Jan 2026 07:08:09 +0000')
  t.end()
})
