/** Visible recipients and attachments of a letter. */
import t from 'tap'
import { simpleParser } from 'mailparser'
import { composeMessage, headerFault, type ComposedContent } from '../../src/mail/compose/compose.js'

const letter = { to: 'bob@example.net', date: 0, messageId: 'm1@mail.example.com' }

async function compose(changes: Partial<ComposedContent>, to = letter.to) {
  const content = {
    kind: 'composed',
    from: { address: 'ann@example.com' },
    subject: 'Hello',
    ...changes,
  } as const
  const message = await composeMessage(content, { ...letter, to })
  const raw = message.toString('latin1')
  t.notMatch(raw, /[^\t\r\n\x20-\x7e]|\r(?!\n)|(?<!\r)\n/, '7-bit text, CRLF only')
  t.notOk(
    raw.split('\r\n').some(line => line.length > 998),
    'no line over 998',
  )
  return { raw, read: await simpleParser(message, { skipHtmlToText: true, skipTextToHtml: true }) }
}

const fieldOf = (raw: string, name: string) =>
  new RegExp(`^${name}: ((?:.|\r\n[ \t])*)`, 'm').exec(raw)?.[1]?.replace(/\r\n/g, '').trim()

t.test('To and Cc show the visible recipients', async t => {
  const many = Array.from({ length: 99 }, (_, index) => `somebody.number${index}@example.org`)
  for (const [addressees, to, shownTo, shownCc] of [
    [{ to: ['a@b.test', 'c@d.test'], cc: ['e@f.test'] }, 'a@b.test', 'a@b.test, c@d.test', 'e@f.test'],
    [{ to: ['a@b.test', 'c@d.test'], cc: ['e@f.test'] }, 'e@f.test', 'a@b.test, c@d.test', 'e@f.test'],
    [{ to: ['a@b.test', 'c@d.test'], cc: [] }, 'a@b.test', 'a@b.test', undefined],
    [{ to: ['a@b.test', 'c@d.test'], cc: [] }, 'blind@b.test', 'a@b.test, c@d.test', undefined],
    [{ to: [], cc: ['e@f.test'] }, 'e@f.test', 'undisclosed-recipients:;', 'e@f.test'],
    [{ to: many, cc: ['e@f.test'] }, 'e@f.test', many.join(', '), 'e@f.test'],
  ] as const) {
    const named = (list: readonly string[]) => list.map(address => ({ address }))
    const both = { to: named(addressees.to), cc: named(addressees.cc), hasCopies: true }
    const { raw } = await compose({ text: 'x', addressees: both }, to)
    t.equal(fieldOf(raw, 'To'), shownTo)
    t.equal(fieldOf(raw, 'Cc'), shownCc)
    t.notMatch(raw, /blind/)
  }
})

t.test('To and Cc have the given names, quoted or encoded as needed', async t => {
  const addressees = {
    to: [
      { name: 'Ann', address: 'a@b.test' },
      { name: 'Jörg', address: 'c@d.test' },
    ],
    cc: [{ name: 'Doe, "J"', address: 'e@f.test' }],
    hasCopies: true,
  }
  const { raw } = await compose({ text: 'x', addressees }, 'a@b.test')
  t.equal(fieldOf(raw, 'To'), 'Ann <a@b.test>, =?UTF-8?Q?J=C3=B6rg?= <c@d.test>')
  t.equal(fieldOf(raw, 'Cc'), '"Doe, \\"J\\"" <e@f.test>')
  const alone = await compose({ text: 'x', addressees: { ...addressees, cc: [] } }, 'c@d.test')
  t.equal(fieldOf(alone.raw, 'To'), '=?UTF-8?Q?J=C3=B6rg?= <c@d.test>')
})

t.test('an attached message is kept as 7-bit lines, or sent as a file if it does not fit', async t => {
  const attached = async (octets: Buffer) => {
    const { raw, read } = await compose({
      text: 'x',
      attachments: [{ filename: 'a.eml', contentType: 'message/rfc822', octets }],
    })
    return { raw, one: read.attachments[0]! }
  }
  const plain = await attached(Buffer.from('From: a@b.test\nSubject: Hi\n\nHello.\n'))
  t.match(plain.raw, /Content-Type: message\/rfc822\r\nContent-Transfer-Encoding: 7bit\r\n/)
  t.match(plain.raw, '\r\n\r\nFrom: a@b.test\r\nSubject: Hi\r\n\r\nHello.\r\n')
  t.match(plain.one, { filename: 'a.eml', contentType: 'message/rfc822' })
  const eightBit = await attached(Buffer.from('Subject: Grüße\r\n\r\nGrüße.\r\n'))
  t.match(eightBit.raw, '\r\nSubject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\r\n')
  t.match(eightBit.raw, `\r\n\r\n${Buffer.from('Grüße.\r\n').toString('base64')}\r\n`)
  for (const [name, octets] of Object.entries({
    'no message at all': Buffer.from([0, 255, 1, 2]),
    'an address only UTF-8 can hold': Buffer.from('From: jörg@b.test\r\n\r\nx'),
    'nested too deep': Buffer.from(`${'Content-Type: message/rfc822\n\n'.repeat(200)}ü`),
  })) {
    const { raw, one } = await attached(octets)
    t.match(raw, /Content-Type: application\/octet-stream\r\nContent-Transfer-Encoding: base64/, name)
    t.ok(one.content.equals(octets), name)
  }
})

t.test('attachments of any size arrive octet for octet', async t => {
  for (const size of [0, 1, 56, 57, 58, 114, 100_000]) {
    const octets = Buffer.alloc(size, 0xfe)
    const { read } = await compose({
      text: 'x',
      attachments: [{ filename: 'a', contentType: 'a/b', octets }],
    })
    t.equal(read.attachments.length, 1)
    t.ok(read.attachments[0]?.content.equals(octets), `${size} octets`)
  }
})

t.test('the body has only the structure it needs', async t => {
  const octets = Buffer.from('x')
  const file = { filename: 'a.txt', contentType: 'text/plain', octets }
  const shown = { ...file, contentId: 'logo' }
  const structure = async (changes: Partial<ComposedContent>) =>
    [...(await compose(changes)).raw.matchAll(/^Content-Type: ([a-z/]+)/gm)].map(([, type]) => type).join(' ')
  t.equal(await structure({ text: 'x', attachments: [] }), 'text/plain')
  t.equal(await structure({ text: 'x', attachments: [file] }), 'multipart/mixed text/plain text/plain')
  t.equal(
    await structure({ html: 'x', attachments: [shown] }),
    'multipart/related multipart/alternative text/plain text/html text/plain',
  )
  t.equal(
    await structure({ html: 'x', attachments: [file, shown] }),
    'multipart/mixed multipart/related multipart/alternative text/plain text/html text/plain text/plain',
  )
  const { read } = await compose({ text: 'x', attachments: [shown] })
  t.match(read.attachments, [{ contentDisposition: 'attachment', cid: 'logo' }], 'nothing could show it')
})

const EVENT = ['BEGIN:VCALENDAR', 'METHOD:REQUEST', 'SUMMARY:Caf\u00e9', 'END:VCALENDAR', '']
const invitation = {
  filename: 'invite.ics',
  contentType: 'text/calendar; method=REQUEST',
  octets: Buffer.from(EVENT.join('\n')),
}

t.test(
  'an invitation is the last alternative of the text, with CRLF and a charset, and a file besides',
  async t => {
    for (const [texts, parts] of [
      [{ text: 'x' }, ['text/plain', 'text/calendar']],
      [{ html: '<p>x</p>' }, ['text/plain', 'text/html', 'text/calendar']],
    ] as const) {
      const { raw, read } = await compose({ ...texts, attachments: [invitation] })
      const types = [...raw.matchAll(/^Content-Type: ([a-z/]+)/gm)].map(([, type]) => type)
      t.same(types, ['multipart/mixed', 'multipart/alternative', ...parts, 'application/ics'])
      const [, part = ''] =
        /Content-Type: text\/calendar;\r\n method=REQUEST;\r\n charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n([A-Za-z0-9+/=\r\n]+)\r\n--/.exec(
          raw,
        ) ?? []
      t.equal(Buffer.from(part, 'base64').toString(), EVENT.join('\r\n'))
      const file = read.attachments.find(({ filename }) => filename === 'invite.ics')
      t.match(file, { contentType: 'application/ics', contentDisposition: 'attachment' })
      t.ok(file?.content.equals(invitation.octets), 'the file is as it was given')
    }
  },
)

t.test('a calendar without a method is an ordinary file', async t => {
  const file = { ...invitation, contentType: 'text/calendar; charset=utf-8' }
  const { raw, read } = await compose({ html: '<p>x</p>', attachments: [file] })
  t.equal(read.attachments.length, 1)
  t.match(raw, /^Content-Type: text\/calendar; charset=utf-8\r\n[^]*^Content-Disposition: attachment/m)
})

t.test('any file name survives', async t => {
  for (const filename of [
    'plain.pdf',
    'with "quotes" \\ and; spaces.pdf',
    'Übung 1.pdf',
    `${'长'.repeat(250)}.pdf`,
    'a'.repeat(255),
    "it's 100%.txt",
  ]) {
    const octets = Buffer.from('x')
    const { read } = await compose({ text: 'x', attachments: [{ filename, contentType: 'a/b', octets }] })
    t.equal(read.attachments[0]?.filename, filename)
  }
})

t.test('composing the same letter again gives the same octets', async t => {
  const attachments = [{ filename: 'a', contentType: 'a/b', octets: new Uint8Array([1, 2, 3]) }]
  const [one, two] = [await compose({ html: 'x', attachments }), await compose({ html: 'x', attachments })]
  t.equal(one.raw, two.raw)
})

t.test('an unsendable header field is reported on submission', async t => {
  t.equal(headerFault({ name: 'X-Order', value: '7' }), undefined)
  t.equal(headerFault({ name: 'X-Town', value: 'Zürich' }), undefined)
  for (const [name, value] of [
    ['', 'x'],
    ['A b', 'x'],
    ['X:', 'x'],
    ['Date', 'x'],
    ['Cc', 'x'],
    ['X', 'a\nb'],
    ['X', 'x'.repeat(1_000)],
  ] as const)
    t.type(headerFault({ name, value }), 'string', `${name}: ${value.slice(0, 10)}`)
})
