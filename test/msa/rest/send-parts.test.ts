/** Copies, attachments, own header fields and tags. */
import t from 'tap'
import { simpleParser, type ParsedMail } from 'mailparser'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

const INVITATION = {
  filename: 'invite.ics',
  content: Buffer.from('BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n').toString('base64'),
  content_type: 'text/calendar; method=REQUEST; charset=utf-8',
}

interface Result {
  readonly to: string
  readonly message_id: string
  readonly success: boolean
  readonly reason?: string
}

/** Sends, waits for each copy, and reads it. */
async function receive(postroad: TestAppliance, fields: object) {
  const { status, body } = await postroad.send(postroad.key, { ...good, ...fields })
  if (status !== 200) throw new Error(JSON.stringify(body))
  const results = body.data.results as Result[]
  const mails = new Map<string, ParsedMail & { raw: string }>()
  for (const { to, message_id: id, success } of results) {
    if (!success) continue
    await postroad.messageOnce(postroad.key, id, 'delivered')
    const raw = String((await postroad.get(`/capture/${id}`)).body.data.raw)
    mails.set(to, { ...(await simpleParser(Buffer.from(raw, 'latin1'))), raw })
  }
  return { data: body.data, results, mails }
}

const namesOf = (field: ParsedMail['to']) =>
  [field ?? []].flat().flatMap(({ value }) => value.map(({ address }) => address))

// proves: Email > 6; decisions: Email > to array one message (own
t.test('each recipient of to sees itself alone', async t => {
  const postroad = await openTestAppliance(t)
  const { mails } = await receive(postroad, { to: ['ann@one.test', 'bob@two.test'] })
  for (const [to, mail] of mails) t.same([namesOf(mail.to), mail.cc], [[to], undefined])
})

// proves: decisions: Email > cc bcc attachments [{filename content | Every mail has one Message-ID
t.test('with copies all see to and cc, and nobody sees a blind copy', async t => {
  const postroad = await openTestAppliance(t)
  const { data, mails } = await receive(postroad, {
    to: ['ann@one.test', 'bob@two.test', 'nobody'],
    cc: ['carl@one.test', 'ANN@one.test'],
    bcc: 'dora@two.test',
  })
  t.match(data, { sent: 4, skipped: 2, total: 6 })
  t.same([...mails.keys()], ['ann@one.test', 'bob@two.test', 'carl@one.test', 'dora@two.test'])
  for (const [to, mail] of mails) {
    t.same(namesOf(mail.to), ['ann@one.test', 'bob@two.test'], to)
    t.same(namesOf(mail.cc), ['carl@one.test', 'ANN@one.test'], to)
    t.same(mail.messageId, mails.get('ann@one.test')?.messageId, 'one mail')
    t.notMatch(mail.raw, /^bcc:/im)
    if (to !== 'dora@two.test') t.notMatch(mail.raw, /dora/i)
  }
  const alone = await receive(postroad, { to: ['ann@one.test', 'bob@two.test'] })
  const ids = [...mails.values(), ...alone.mails.values()].map(({ messageId }) => messageId)
  t.equal(new Set(ids).size, 3, 'without copies each recipient gets a separate mail')
})

// proves: decisions: Email > cc bcc attachments [{filename content
t.test('with blind copies alone the recipients stay unknown to each other', async t => {
  const postroad = await openTestAppliance(t)
  const { mails } = await receive(postroad, { to: ['ann@one.test', 'bob@two.test'], bcc: ['dora@two.test'] })
  t.same(namesOf(mails.get('ann@one.test')?.to), ['ann@one.test'])
  t.same(namesOf(mails.get('bob@two.test')?.to), ['bob@two.test'])
  t.same(namesOf(mails.get('dora@two.test')?.to), ['ann@one.test', 'bob@two.test'])
})

// proves: decisions: Email > cc bcc attachments [{filename content
t.test('attachments arrive as they were, those that the HTML shows within it', async t => {
  const postroad = await openTestAppliance(t)
  const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 10, 13])
  const table = Buffer.from('a,b\n'.repeat(200_000))
  const { mails, results } = await receive(postroad, {
    to: ['ann@one.test', 'bob@two.test'],
    html: '<p>See <img src="cid:logo@here"></p>',
    attachments: [
      {
        filename: 'logo.png',
        content: picture.toString('base64'),
        content_type: 'image/png',
        content_id: '<logo@here>',
      },
      { filename: 'Übersicht "2026".csv', content: table.toString('base64'), content_type: 'text/csv' },
      { filename: 'empty', content: '' },
    ],
  })
  for (const mail of mails.values()) {
    t.match(mail.raw, /multipart\/mixed[^]*multipart\/related[^]*multipart\/alternative/)
    t.same(
      mail.attachments.map(one => [one.filename, one.contentType, one.contentDisposition, one.cid]),
      [
        ['logo.png', 'image/png', 'inline', 'logo@here'],
        ['Übersicht "2026".csv', 'text/csv', 'attachment', undefined],
        ['empty', 'application/octet-stream', 'attachment', undefined],
      ],
    )
    t.ok(mail.attachments[0]?.content.equals(picture))
    t.ok(mail.attachments[1]?.content.equals(table))
    t.equal(mail.text?.trim(), 'Hello.')
  }
  const { body } = await postroad.get(`/api/v1/email/${results[0]!.message_id}`, { key: postroad.key })
  t.match(body.data.attachments, [
    { filename: 'logo.png', content_type: 'image/png', size: 8 },
    { size: table.length },
    { size: 0 },
  ])
  t.equal(postroad.rowCounts()['message_parts'], 4, 'kept once for both')
})

t.test('a calendar invitation arrives as an alternative of the text, and as a file', async t => {
  const postroad = await openTestAppliance(t)
  const { mails, results } = await receive(postroad, {
    html: '<p>Lunch?</p>',
    attachments: [INVITATION, { filename: 'menu.txt', content: 'YQ==' }],
  })
  const { raw, attachments } = mails.get('ann@one.test')!
  t.match(
    raw,
    /multipart\/mixed[^]*multipart\/alternative[^]*text\/plain[^]*text\/html[^]*text\/calendar;\r\n method=REQUEST;\r\n charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n/,
  )
  t.same(
    attachments.slice(-2).map(one => [one.filename, one.contentType, one.contentDisposition]),
    [
      ['invite.ics', 'application/ics', 'attachment'],
      ['menu.txt', 'text/plain', 'attachment'],
    ],
  )
  const { body } = await postroad.get(`/api/v1/email/${results[0]!.message_id}`, { key: postroad.key })
  t.match(body.data.attachments, [{ filename: 'invite.ics', content_type: INVITATION.content_type }, {}])
})

t.test('the parameters of a type arrive as they were written', async t => {
  const postroad = await openTestAppliance(t)
  const type = 'text/csv ; charset="utf-8";\theader=present; x-note="a \\"b\\"; c"'
  const { mails } = await receive(postroad, {
    attachments: [{ filename: 'a.csv', content: 'YQ==', content_type: type }],
  })
  t.match(mails.get('ann@one.test')!.raw, `Content-Type: ${type}\r\n`)
})

// proves: decisions: Email > cc bcc attachments [{filename content
t.test('attachments are taken as clients write them', async t => {
  const postroad = await openTestAppliance(t)
  const message = Buffer.from('From: a@b.test\nSubject: Hi\n\nHello.\n')
  const { mails } = await receive(postroad, {
    attachments: [
      { filename: 'report.pdf', content: 'aGVsbG8' },
      { filename: '/srv/files/Table.CSV', content: 'aGVs\r\n bG8=\n' },
      { filename: 'C:\\files\\picture.jpeg', content: '-_-_-w' },
      { filename: 'invoice\u202efdp.exe', content: '' },
      { filename: 'unknown.zzz', content: '' },
      { filename: 'letter.eml', content: message.toString('base64url') },
    ],
  })
  const { attachments, raw } = mails.get('ann@one.test')!
  t.same(
    attachments.map(one => [one.filename, one.contentType, one.content.toString('latin1')]),
    [
      ['report.pdf', 'application/pdf', 'hello'],
      ['Table.CSV', 'text/csv', 'hello'],
      ['picture.jpeg', 'image/jpeg', '\xfb\xff\xbf\xfb'],
      ['invoicefdp.exe', 'application/x-msdos-program', ''],
      ['unknown.zzz', 'application/octet-stream', ''],
      ['letter.eml', 'message/rfc822', message.toString().replaceAll('\n', '\r\n')],
    ],
  )
  t.match(raw, /message\/rfc822\r\nContent-Transfer-Encoding: 7bit/)
})

// proves: decisions: Email > cc bcc attachments [{filename content
// at and past limit: Postroad > size of a message with its attachments
t.test('attachments that cannot be are refused, and nothing of them stays', async t => {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_LIMITS_MESSAGE_SIZE: '1MB' } })
  const file = { filename: 'a.txt', content: 'YQ==' }
  const large = { filename: 'a.bin', content: Buffer.alloc(770_000).toString('base64') }
  const before = postroad.rowCounts()
  for (const [attachments, path] of [
    [[{ filename: 'a.txt' }], 'attachments.0.content'],
    [[file, { ...file, content: 'YQ=' }], 'attachments.1.content'],
    [[{ ...file, content: 'Y?==' }], 'attachments.0.content'],
    [[{ ...file, content: 'YQ==YQ==' }], 'attachments.0.content'],
    [[{ ...file, content: 'YQABC' }], 'attachments.0.content'],
    [[{ ...file, content: 'data:text/plain;base64,YQ==' }], 'attachments.0.content'],
    [[{ ...file, filename: '..' }], 'attachments.0.filename'],
    [[{ ...file, filename: 'files/' }], 'attachments.0.filename'],
    [[{ ...file, filename: '\u202e' }], 'attachments.0.filename'],
    [[{ ...file, filename: '' }], 'attachments.0.filename'],
    [[{ ...file, filename: 'a\r\nBcc: x@y.test' }], 'attachments.0.filename'],
    [[{ ...file, content_type: 'text/plain\r\nX: y' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'message/partial' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'multipart/mixed' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain;' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain; charset' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain; charset=a b' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain; name="a' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain; name="a\r\n b"' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain; name=b\u00fc' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain; a=1; A=2' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/plain (comment)' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: 'text/calendar; method="a b"' }], 'attachments.0.content_type'],
    [[{ ...file, content_type: `text/plain; a=${'x'.repeat(255)}` }], 'attachments.0.content_type'],
    [[INVITATION, INVITATION], 'attachments.1.content_type'],
    [[{ ...INVITATION, content: large.content }], 'attachments'],
    [[{ ...file, content_id: 'a b' }], 'attachments.0.content_id'],
    [[{ ...file, content_id: 'a>\r\nX: y' }], 'attachments.0.content_id'],
    [[{ ...file, url: 'file:///etc/passwd' }], 'attachments.0.url'],
    [Array.from({ length: 51 }, () => file), 'attachments'],
    [[large, file], 'attachments'],
  ] as const) {
    const answer = await postroad.send(postroad.key, { ...good, attachments })
    t.match(answer, { status: 400, body: { error: { code: 'validation_error', path } } }, path)
  }
  t.same(postroad.rowCounts(), before, 'nothing was stored')
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=1')
  const limited = postroad.rowCounts()
  const two = { ...good, to: ['a@one.test', 'b@one.test'] }
  const fits = { ...large, content: Buffer.alloc(700_000).toString('base64') }
  t.match(await postroad.send(postroad.key, { ...two, attachments: [fits] }), { status: 403 })
  t.same(postroad.rowCounts(), limited, 'nor beyond a limit')
  t.match(await postroad.send(postroad.key, { ...good, attachments: [fits] }), { status: 200 })
})

// proves: decisions: Email > cc bcc attachments [{filename content
t.test('own header fields are written, those of the server are refused', async t => {
  const postroad = await openTestAppliance(t)
  const { mails } = await receive(postroad, {
    headers: {
      'X-Order': '7',
      References: '<a@b.test> <c@d.test>',
      'X-Grüße': undefined,
      'X-Town': 'Zürich',
    },
  })
  const mail = mails.get('ann@one.test')!
  t.match(mail.raw, /^X-Order: 7\r$/m)
  t.match(mail.raw, /^X-Town: =\?UTF-8\?Q\?Z=C3=BCrich\?=\r$/m)
  t.same(mail.references, ['<a@b.test>', '<c@d.test>'])
  const refused = { status: 400, body: { error: { code: 'validation_error' } } }
  for (const name of [
    'From',
    'to',
    'CC',
    'Bcc',
    'Date',
    'Message-ID',
    'DKIM-Signature',
    'Received',
    'Return-Path',
    'List-Unsubscribe',
    'list-unsubscribe-post',
    'Content-Type',
    'Reply-To',
    'Sender',
    'X-Postroad-ID',
    'Bad Name',
    'Bad:Name',
    'X\r\nBcc',
    '',
  ]) {
    const answer = await postroad.send(postroad.key, { ...good, headers: { [name]: 'x' } })
    t.match(answer, refused, name)
    t.equal(answer.body.error.path, `headers.${name}`)
  }
  for (const headers of [
    { X: 'a\r\nBcc: b@c.test' },
    { X: 'x'.repeat(1_500) },
    { X: 'x '.repeat(1_500) },
    { References: '<größe@one.test>' },
    { 'in-reply-to': '<größe@one.test>' },
    { X: '1', x: '2' },
    { X: 1 },
    [],
  ])
    t.match(
      await postroad.send(postroad.key, { ...good, headers }),
      refused,
      JSON.stringify(headers).slice(0, 40),
    )
})

t.test('of a long thread the first and last ten message ids are referred to', async t => {
  const postroad = await openTestAppliance(t)
  const ids = Array.from({ length: 300 }, (_, at) => `<message-${at}-of-a-long-thread@mail.customer.test>`)
  const { mails } = await receive(postroad, {
    headers: { References: ids.join(' '), 'In-Reply-To': ids.at(-1) },
  })
  const mail = mails.get('ann@one.test')!
  t.same(mail.references, [...ids.slice(0, 10), ...ids.slice(-10)])
  t.equal(mail.inReplyTo, ids.at(-1))
  t.ok(mail.raw.split('\r\n').every(line => line.length <= 78))
})

// proves: decisions: Email > cc bcc attachments [{filename content
t.test('tags are kept with the message and sent to nobody', async t => {
  const postroad = await openTestAppliance(t)
  const { results, mails } = await receive(postroad, { tags: ['welcome', 'Größe'] })
  const { body } = await postroad.get(`/api/v1/email/${results[0]!.message_id}`, { key: postroad.key })
  t.same(body.data.tags, ['welcome', 'Größe'])
  t.notMatch(mails.get('ann@one.test')!.raw, /welcome/)
  for (const tags of [[''], ['a\nb'], ['x'.repeat(101)], Array.from({ length: 21 }, () => 'x'), 'x'])
    t.match(
      await postroad.send(postroad.key, { ...good, tags }),
      { status: 400 },
      JSON.stringify(tags).slice(0, 40),
    )
})

// proves: decisions: Email > cc bcc attachments [{filename content
// at and past limit: Limits > Recipients in one send
t.test('to, cc and bcc together have at most a hundred addresses', async t => {
  const postroad = await openTestAppliance(t)
  const people = (count: number, name: string) =>
    Array.from({ length: count }, (_, index) => `${name}${index}@one.test`)
  const refused = await postroad.send(postroad.key, { ...good, to: people(60, 'a'), bcc: people(41, 'b') })
  t.match(refused, { status: 400, body: { error: { code: 'validation_error', path: 'to' } } })
  t.match(await postroad.send(postroad.key, { ...good, to: people(60, 'a'), bcc: people(40, 'b') }), {
    status: 200,
    body: { data: { sent: 100 } },
  })
  t.match(await postroad.send(postroad.key, { ...good, cc: 'nobody' }), {
    status: 400,
    body: { error: { path: 'cc' } },
  })
})
