import t from 'tap'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { simpleParser } from 'mailparser'
import { AppError } from '../../../src/core/errors.js'
import { assertSignable } from '../../../src/mail/dkim/dkim-sign.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { hasLongLine, isSevenBit } from '../../../src/mail/mime/transfer-encoding.js'
import { toSevenBit } from '../../../src/mail/relay/seven-bit.js'
import { base64, mail, part, parts, utf8 } from '../../support/mime-corpus/build.js'
import { mimeCorpus } from '../../support/mime-corpus/corpus.js'
import { readingOf } from '../../support/reading.js'

t.test('the corpus is large and its names are unique', async t => {
  t.ok(mimeCorpus.length >= 100)
  t.equal(new Set(mimeCorpus.map(({ name }) => name)).size, mimeCorpus.length)
  for (const { name, message } of mimeCorpus)
    t.notMatch(message.toString('latin1'), /\r(?!\n)|(?<!\r)\n/, name)
})

for (const { name, message, kept = [], ...reading } of mimeCorpus) {
  t.test(`${name}: is sent as 7-bit and reads the same`, async t => {
    const before = createHash('sha256').update(message).digest('hex')
    const result = toSevenBit(message)
    t.equal(createHash('sha256').update(message).digest('hex'), before, 'the original is not written to')
    t.equal(result.needsSmtpUtf8, false)
    const stays = result.isEightBit || result.hasLongLines
    t.equal(isSevenBit(result.message), !stays, '7-bit unless something protected is not')
    t.notMatch(result.message.toString('latin1'), /\r(?!\n)|(?<!\r)\n/, 'CRLF only')
    if (stays) t.ok(kept.length > 0, 'only what is protected stays 8-bit')
    for (const octets of kept)
      t.ok(result.message.includes(octets, 0, 'latin1'), 'protected content is unchanged')
    if (isSevenBit(message)) t.equal(result.message, message, 'what is 7-bit is not even copied')
    t.equal(toSevenBit(result.message).message, result.message, 'a second time changes nothing')
    if (reading.isMisreadByMailparser) return
    const { subject } = reading
    t.strictSame(await readingOf(result.message), {
      ...(await readingOf(message)),
      ...(subject && { subject }),
    })
  })
}

/** A second reader, which nobody here wrote: Python's. Prints a digest of the decoded content of each leaf. */
const PYTHON_READER = `
import sys, json, base64, email, email.policy, hashlib
def leaves(m):
    if m.is_multipart():
        return [x for p in m.get_payload() for x in leaves(p)]
    c = m.get_payload(decode=True) or b''
    t = m.get_content_type()
    if t.startswith('text/') or t.startswith('message/'): c = c.rstrip()
    # Raw octets in a file name are replaced on reading.
    f = m.get_filename()
    return [[t, f if f and f.isascii() else None, hashlib.sha256(c).hexdigest()]]
print(json.dumps([leaves(email.message_from_bytes(base64.b64decode(l), policy=email.policy.compat32)) for l in sys.stdin]))
`
const python = spawnSync('/usr/bin/python3', ['--version'])

t.test(
  'Python reads the same leaves before and after',
  { skip: python.status === 0 ? false : 'there is no Python' },
  async t => {
    const leaves = (messages: readonly Buffer[]): unknown[] => {
      const input = messages.map(message => `${message.toString('base64')}\n`).join('')
      const { stdout, stderr } = spawnSync('/usr/bin/python3', ['-c', PYTHON_READER], { input })
      t.equal(stderr.toString(), '')
      return JSON.parse(stdout.toString()) as unknown[]
    }
    const before = leaves(mimeCorpus.map(({ message }) => message))
    const after = leaves(mimeCorpus.map(({ message }) => toSevenBit(message).message))
    t.equal(before.length, mimeCorpus.length)
    mimeCorpus.forEach(({ name }, index) => t.strictSame(after[index], before[index], name))
  },
)

t.test('text without a charset is labelled UTF-8 if valid, else unknown-8bit', async t => {
  const bare = { 'Content-Type': undefined, 'MIME-Version': undefined }
  const known = toSevenBit(mail('', bare, [utf8('Grüße')]).message).message.toString('latin1')
  t.match(known, /^Content-Type: text\/plain; charset=utf-8\r$/m)
  t.match(known, /^MIME-Version: 1\.0\r$/m)
  const unknown = toSevenBit(
    mail('', { 'Content-Type': 'text/plain' }, ['Gr\xfc\xdfe aus dem S\xfcden']).message,
  ).message
  t.match(unknown.toString('latin1'), /^Content-Type: text\/plain;\s+charset=unknown-8bit\r$/m)
  t.match(unknown.toString('latin1'), 'Gr=FC=DFe aus dem S=FCden')
  const html = toSevenBit(
    mail('', { 'Content-Type': 'text/html' }, ['<meta charset=latin1>\xfc']).message,
  ).message
  t.notMatch(html.toString('latin1'), /unknown-8bit/, 'HTML may say it itself')
})

t.test('multiparts around an encoded part are no longer labelled 8bit, nor their 7-bit parts', async t => {
  const text = part(
    ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
    utf8('die Bälle rollen'),
  )
  const plain = part(['Content-Type: text/plain', 'Content-Transfer-Encoding: binary'], 'a')
  const header = { 'Content-Type': 'multipart/mixed; boundary=m', 'Content-Transfer-Encoding': '8bit' }
  const { message } = toSevenBit(mail('', header, parts('m', text, plain)).message)
  t.strictSame(message.toString('latin1').match(/(?<=Transfer-Encoding: )\S+/g), [
    '7bit',
    'quoted-printable',
    '7bit',
  ])
})

t.test('an 8-bit signed part is unchanged, and the result requires 8BITMIME', async t => {
  const found = mimeCorpus.find(({ name }) => name === 'signed with PGP although 8-bit')
  const result = toSevenBit(found?.message ?? Buffer.alloc(0))
  t.match(result, { isEightBit: true, hasLongLines: false, needsSmtpUtf8: false })
  t.equal(result.message, found?.message, 'nothing else was to change')
  const long = mimeCorpus.find(({ name }) => name === 'signed with PGP with a long line')
  t.match(toSevenBit(long?.message ?? Buffer.alloc(0)), { isEightBit: false, hasLongLines: true })
})

const textInUtf8 = { 'Content-Type': 'text/plain; charset=utf-8' }
const toJürgen = {
  To: utf8('Jürgen <jürgen@example.net>, Friends: ann@example.net, jörg@example.net;'),
  Subject: utf8('Grüße'),
  ...textInUtf8,
}

t.test('for an ASCII recipient, non-ASCII addresses in the header become groups', async t => {
  const result = toSevenBit(mail('', toJürgen, [utf8('Köln')]).message)
  t.equal(result.needsSmtpUtf8, false)
  const text = result.message.toString('latin1').replaceAll('\r\n ', ' ')
  t.match(
    text,
    /^To: =\?UTF-8\?Q\?j=C3=BCrgen=40example=2Enet\?=:;, Friends: ann@example\.net;, =\?UTF-8\?Q\?j=C3=B6rg=40example=2Enet\?=:;\r$/m,
  )
  t.notMatch(text, /[\x80-\xff]/)
})

t.test('for an SMTPUTF8 recipient, addresses stay UTF-8; everything else is 7-bit', async t => {
  const international = { isInternational: true }
  const result = toSevenBit(mail('', toJürgen, [utf8('Köln')]).message, international)
  t.equal(result.needsSmtpUtf8, true)
  const text = result.message.toString().replaceAll('\r\n ', ' ')
  t.match(
    text,
    /^To: =\?UTF-8\?.*\?= <jürgen@example\.net>, Friends: ann@example\.net, jörg@example\.net;\r$/m,
  )
  t.notMatch(text.replace(/^To:.*$/m, ''), /[^\t\r\n -~]/)
  t.equal(toSevenBit(result.message, international).message, result.message, 'a second time changes nothing')
})

t.test('a non-ASCII author requires SMTPUTF8 for every recipient', async t => {
  const header = { From: utf8('Jürgen <jürgen@example.com>'), To: utf8('jörg@example.net'), ...textInUtf8 }
  const result = toSevenBit(mail('', header, ['x']).message)
  t.equal(result.needsSmtpUtf8, true)
  t.match(result.message.toString(), /^From: =\?UTF-8\?.*\?= <jürgen@example\.com>\r$/m)
  t.match(result.message.toString(), /^To: jörg@example\.net\r$/m)
})

t.test('a name in a legacy charset is re-encoded, and its address with it', async t => {
  const header = { To: 'J\xfcrgen <j\xfcrgen@example.net>', 'Content-Type': 'text/plain; charset=iso-8859-1' }
  const { message } = toSevenBit(mail('', header, ['x']).message, { isInternational: true })
  t.match(message.toString(), /^To: =\?UTF-8\?.*\?= <jürgen@example\.net>\r$/m)
})

t.test('in a forwarded message such an address may become display-only', async t => {
  const inner = part([utf8('From: jürgen@example.net'), 'Subject: Hi'], 'Hi')
  const outer = part(['Content-Type: message/rfc822'], inner)
  const result = toSevenBit(
    mail('', { 'Content-Type': 'multipart/mixed; boundary=m' }, parts('m', outer)).message,
  )
  t.equal(result.needsSmtpUtf8, false)
  t.match(result.message.toString('latin1'), /^From: =\?UTF-8\?.*\?=:;\r$/m)
})

t.test('nesting and parts have limits, named in the error', async t => {
  let nested = part(['Content-Type: text/plain'], utf8('ä'))
  for (let level = 0; level < 1_000; level++)
    nested = part([`Content-Type: multipart/mixed; boundary=l${level}`], parts(`l${level}`, nested))
  const message = Buffer.from(`From: ann@example.com\r\n${nested}`, 'latin1')
  t.throws(
    () => toSevenBit(message),
    new AppError('validation_error', 'the message has parts nested more than 100 levels deep', {
      path: 'body',
    }),
  )
  const many = mail(
    '',
    { 'Content-Type': 'multipart/mixed; boundary=m' },
    parts('m', ...Array.from({ length: 10_001 }, () => '\r\n\xe4')),
  )
  t.throws(() => toSevenBit(many.message), { code: 'validation_error', message: /more than 10000 parts/ })
  const header = part([`X-Long: ${'x'.repeat(70_000)}`], utf8('ä'))
  const long = mail('', { 'Content-Type': 'multipart/mixed; boundary=m' }, parts('m', header))
  t.throws(() => toSevenBit(long.message), { code: 'validation_error', message: /header of a part/ })
})

t.test(
  'fields have a limit over all parts, and beyond some hundred KB those of parts are reduced to ASCII',
  async t => {
    const header = { 'Content-Type': 'multipart/mixed; boundary=m', Subject: utf8('Grüße') }
    const fields = (count: number, line: string) => Array.from({ length: count }, () => line)
    const many = mail(
      '',
      header,
      parts('m', ...Array.from({ length: 60 }, () => part(fields(900, 'A: \xe4'), 'x'))),
    )
    t.throws(() => toSevenBit(many.message), {
      code: 'validation_error',
      message: /more than 50000 header fields/,
    })
    const long = `Subject: ${'\xe4'.repeat(50_000)}`
    const large = mail('', header, parts('m', ...Array.from({ length: 40 }, () => part([long], 'x'))))
    const { message } = toSevenBit(large.message)
    t.ok(isSevenBit(message))
    const text = message.toString('latin1')
    t.match(
      text,
      /^Subject: =\?UTF-8\?Q\?Gr=C3=BC=C3=9Fe\?=\r$/m,
      'the header of the message itself keeps its meaning',
    )
    t.match(text, /^Subject: \?+\r$/m)
    t.ok(message.length < 3 * large.message.length)
  },
)

t.test('preamble and epilogue become 7-bit line by line', async t => {
  const header = { 'Content-Type': 'multipart/mixed; boundary=m' }
  const filler = `${'\xe4'.repeat(5_000)}\r\nshort \0\r\n`
  const { message } = toSevenBit(mail('', header, `${filler}${parts('m', part([], 'x'))}`).message)
  t.ok(isSevenBit(message))
  t.match(message.toString('latin1'), /\?{900}\r\n\?{500}\r\nshort \?\r\n/)
})

t.test('a multipart without parts is rejected if it contains 8-bit octets', async t => {
  const header = { 'Content-Type': 'multipart/mixed; boundary=m' }
  t.throws(() => toSevenBit(mail('', header, [utf8('ä')]).message), { code: 'validation_error' })
  const none = { 'Content-Type': 'multipart/mixed' }
  t.throws(() => toSevenBit(mail('', none, [utf8('ä')]).message), { code: 'validation_error' })
  t.equal(toSevenBit(mail('', none, ['a']).message).isEightBit, false)
})

t.test('NUL octets are encoded like other octets that 7bit forbids', async t => {
  const { message } = toSevenBit(mail('', {}, ['a\0b and more']).message)
  t.match(message.toString('latin1'), 'a=00b and more')
  t.equal(isSevenBit(message), true)
})

t.test('lines are measured to the octet', async t => {
  for (const last of ['', '\r\n', '\r\nshort']) {
    t.equal(hasLongLine(Buffer.from(`a\r\n${'x'.repeat(998)}${last}`)), false)
    t.equal(hasLongLine(Buffer.from(`a\r\n${'x'.repeat(999)}${last}`)), true)
  }
  t.equal(hasLongLine(Buffer.from('short\r\n'.repeat(1_000))), false)
  t.equal(
    hasLongLine(Buffer.from(`${'short\r\n'.repeat(999)}${'x'.repeat(999)}\r\n${'short\r\n'.repeat(999)}`)),
    true,
  )
})

t.test('base64 on one line is rewrapped, not decoded: data after padding stays', async t => {
  const header = { 'Content-Transfer-Encoding': 'base64' }
  const text = base64('abcd').repeat(200)
  const { message } = toSevenBit(mail('', header, [text]).message)
  const body = message.toString('latin1').split('\r\n\r\n')[1] ?? ''
  t.equal(body.replaceAll('\r\n', ''), text)
  t.ok(body.split('\r\n').every(line => line.length <= 76))
})

t.test('file names of any length and form survive', async t => {
  const long = `${'Bücher '.repeat(150)}.pdf`
  const encoded = encodeURIComponent(long)
  for (const [name, written] of [
    [long, utf8(`filename="${long}"`)],
    [long, `filename*=utf-8''${encoded}`],
    [`${'x'.repeat(1_200)}.pdf`, `filename="${'x'.repeat(1_200)}.pdf"`],
    ['a "b" \\ c;ü.pdf', utf8('filename="a \\"b\\" \\\\ c;ü.pdf"')],
  ] as const) {
    const disposition = `Content-Disposition: attachment; ${written}`
    const file = part(['Content-Type: application/pdf', disposition], utf8('Köln'))
    const { message } = toSevenBit(
      mail('', { 'Content-Type': 'multipart/mixed; boundary=m' }, parts('m', file)).message,
    )
    t.equal(isSevenBit(message), true)
    const { attachments } = await simpleParser(message)
    t.equal(attachments[0]?.filename, name)
  }
})

t.test('every result can be signed', async t => {
  for (const { name, message } of mimeCorpus) {
    const result = toSevenBit(message)
    if (result.isEightBit || result.hasLongLines) continue
    t.doesNotThrow(() => {
      assertSignable(result.message)
    }, name)
  }
})

t.test('malformed mail becomes 7-bit or is rejected, nothing else', async t => {
  const random = new SeededRandom(7)
  const below = (limit: number): number => Math.floor(random.fraction() * limit)
  const pieces = [
    '\r\n',
    '\r\n\r\n',
    '--m--',
    '"',
    '\xe4',
    '\0',
    utf8('ä'),
    '=?utf-8?q?=C3?=',
    '(',
    '<',
    ':',
    '=',
    'x'.repeat(1_000),
  ]
  let taken = 0
  for (let round = 0; round < 1_500; round++) {
    let text = mimeCorpus[below(mimeCorpus.length)]?.message.toString('latin1') ?? ''
    for (let breaks = below(5); breaks >= 0; breaks--) {
      const at = below(text.length)
      text = text.slice(0, at) + (pieces[below(pieces.length)] ?? '') + text.slice(at + below(10))
    }
    const message = Buffer.from(text.replace(/\r?\n|\r/g, '\r\n'), 'latin1')
    try {
      const result = toSevenBit(message)
      const stays = result.isEightBit || result.hasLongLines || result.needsSmtpUtf8
      if (!stays && !isSevenBit(result.message)) t.fail(`not 7-bit: ${text}`)
      if (toSevenBit(result.message).message !== result.message) t.fail(`changed twice: ${text}`)
      taken += 1
    } catch (thrown) {
      if (!(thrown instanceof AppError)) throw thrown
    }
  }
  t.ok(taken > 1_000, `${taken} of 1,500 broken mails were taken`)
})
