/** What `POST /email/send` refuses, with which code, naming which field; and that nothing of it is stored. */
import t from 'tap'
import { openTestAppliance } from '../../support/program/appliance.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const { subject: _, ...withoutSubject } = good
const { to: __, ...withoutTo } = good

interface Refusal {
  readonly name: string
  /** JSON, or text sent unchanged. */
  readonly body: unknown
  readonly path?: string
  readonly code?: string
  readonly status?: number
  readonly message?: RegExp
}

const kilobytes = (count: number, unit = 'x') => unit.repeat((count * 1_024) / Buffer.byteLength(unit))

const malformed: Refusal[] = [
  { name: 'an empty body', body: '', path: 'body' },
  { name: 'half a JSON text', body: '{"to": "ann@one.test",', path: 'body', message: /not valid JSON/ },
  { name: 'JSON that is no object', body: '[]', path: 'body' },
  { name: 'null', body: 'null', path: 'body' },
  {
    name: 'a body of 40 MB',
    body: { ...good, html: kilobytes(40_960) },
    path: 'body',
    message: /larger than/,
  },
  { name: 'an unknown field', body: { ...good, bcc2: 'x' }, path: 'bcc2', message: /not a known field/ },
  { name: '__proto__ as a field', body: '{"__proto__": {"to": "a@b.test"}, "subject": "x"}' },
  { name: 'no recipient', body: withoutTo, path: 'to', message: /is required/ },
  { name: 'no subject', body: withoutSubject, path: 'subject', message: /is required/ },
  { name: 'an empty subject', body: { ...good, subject: '' }, path: 'subject' },
  { name: 'a number as recipient', body: { ...good, to: 5 }, path: 'to' },
  { name: 'a number among the recipients', body: { ...good, to: ['ann@one.test', 5] }, path: 'to.1' },
  { name: 'no recipient in the list', body: { ...good, to: [] }, path: 'to' },
  { name: 'a subject that is a number', body: { ...good, subject: 5 }, path: 'subject' },
  { name: 'a subject of null', body: { ...good, subject: null }, path: 'subject' },
  { name: 'a subject of nothing but tags', body: { ...good, subject: '<b></b> <br>' }, path: 'subject' },
  { name: 'a subject of spaces', body: { ...good, subject: '  ' }, path: 'subject' },
  { name: 'NUL in html', body: { ...good, html: 'a\0b' }, path: 'html' },
  { name: 'no recipient but null', body: { ...good, to: null }, path: 'to' },
  { name: 'html as an object', body: { ...good, html: {} }, path: 'html' },
  { name: 'track_opens as text', body: { ...good, track_opens: 'yes' }, path: 'track_opens' },
  { name: 'template_data as a list', body: { ...good, template_data: [] }, path: 'template_data' },
]

const tooLarge: Refusal[] = [
  {
    name: '101 recipients',
    body: { ...good, to: Array.from({ length: 101 }, (_, index) => `user${index}@one.test`) },
    path: 'to',
    message: /at most 100/,
  },
  { name: 'a subject of 999 characters', body: { ...good, subject: 'x'.repeat(999) }, path: 'subject' },
  { name: 'a from_name of 101 characters', body: { ...good, from_name: 'x'.repeat(101) }, path: 'from_name' },
  {
    name: 'html of 256 KB and an octet',
    body: { ...good, html: `${kilobytes(256)}x` },
    path: 'html',
    message: /256 KB|262144/,
  },
  {
    name: 'html of 256 KB and an octet in half as many characters',
    body: { ...good, html: `${kilobytes(256, 'ü')}x` },
    path: 'html',
    message: /256KB/,
  },
  { name: 'text of 1 MB and an octet', body: { ...good, text: `${kilobytes(1_024)}x` }, path: 'text' },
  {
    name: 'text of 1 MB and an octet in half as many characters',
    body: { ...good, text: `${kilobytes(1_024, 'ü')}x` },
    path: 'text',
    message: /1MB/,
  },
]

const notAddresses = [
  ...[
    'ann',
    'ann@',
    '@one.test',
    'ann@one',
    'ann@one..test',
    'ann@-one.test',
    'a b@one.test',
    'ann@one.test,',
  ],
  ...[
    'ann@one.test, bob@one.test',
    'ann@one.test; Bob <bob@two.test>',
    'Ann <ann@one.test',
    'eve@two.test <ann@one.test>',
    'friends: ann@one.test;',
    'ann@[192.0.2.1]',
    'ann@192.0.2.1',
    'ann@one.test.',
  ],
  ...[
    `${'x'.repeat(65)}@one.test`,
    '.ann@one.test',
    'ann\u2028@one.test',
    'ann\u200b@one.test',
    'ann\u{a0}@one.test',
  ],
]

const addresses: Refusal[] = (['to', 'from_email'] as const).flatMap(field =>
  notAddresses.map(text => ({
    name: `${field} ${encodeURI(text)}`,
    body: { ...good, [field]: text },
    path: field,
  })),
)

const breaks = {
  CR: 'a\rb',
  LF: 'a\nb',
  CRLF: 'a\r\nBcc: eve@evil.test',
  NUL: 'a\0b',
  'a folded line': 'a\r\n b',
  DEL: 'a\x7fb',
}

const injections: Refusal[] = Object.entries(breaks).flatMap(([name, text]) => [
  { name: `${name} in subject`, body: { ...good, subject: text }, path: 'subject' },
  { name: `${name} in from_name`, body: { ...good, from_name: text }, path: 'from_name' },
  { name: `${name} in to`, body: { ...good, to: `${text}@one.test` }, path: 'to' },
  { name: `${name} at the end of to`, body: { ...good, to: `ann@one.test${text}` }, path: 'to' },
  { name: `${name} in from_email`, body: { ...good, from_email: `${text}@sender.test` }, path: 'from_email' },
  { name: `${name} in reply_to`, body: { ...good, reply_to: `${text}@sender.test` }, path: 'reply_to' },
  {
    name: `${name} in the name of reply_to`,
    body: { ...good, reply_to: `${text} <me@sender.test>` },
    path: 'reply_to',
  },
])

/** Nobody could answer, and no header holds it. */
const beyondAscii: Refusal[] = ['jörg@sender.test', 'Jörg <jörg@sender.test>', '用户@sender.test'].flatMap(
  text =>
    (['from_email', 'reply_to'] as const).map(field => ({
      name: `${field} ${text}`,
      body: { ...good, [field]: text },
      path: field,
      message: /ASCII before the @/,
    })),
)

const two = 'me@sender.test, Ann <ann@sender.test>'
/** Only `to` can be a list. */
const several: Refusal[] = [
  { name: 'two in to', body: { ...good, to: two }, path: 'to', message: /send them as a list/ },
  ...(['from_email', 'reply_to'] as const).map(field => ({
    name: `two in ${field}`,
    body: { ...good, [field]: two },
    path: field,
    message: /only one is allowed/,
  })),
]

const business: Refusal[] = [
  { name: 'no body', body: { ...good, text: undefined }, code: 'no_content' },
  { name: 'empty html and text', body: { ...good, html: '', text: '' }, code: 'no_content' },
  {
    name: 'no sender',
    body: { ...good, from_email: undefined },
    code: 'missing_from_email',
    path: 'from_email',
  },
  {
    name: 'an unknown template',
    body: { ...good, text: undefined, template_id: '00000000-0000-4000-8000-000000000000' },
    code: 'template_not_found',
    status: 404,
  },
  {
    name: 'a template_id that is no UUID',
    body: { ...good, template_id: 'x' },
    code: 'template_not_found',
    status: 404,
  },
]

/** Each request breaks the rule named and every later one. */
const inOrder: Refusal[] = [
  {
    name: 'a field before no_content',
    body: { to: 'ann@one.test', subject: 'x', from_name: 'a\nb' },
    path: 'from_name',
  },
  {
    name: 'reply_to before no_content',
    body: { to: 'ann@one.test', subject: 'x', reply_to: 'x' },
    path: 'reply_to',
  },
  {
    name: 'no_content before missing_from_email',
    body: { to: 'ann@one.test', subject: 'x' },
    code: 'no_content',
  },
  {
    name: 'missing_from_email before template_not_found',
    body: { to: 'ann@one.test', subject: 'x', template_id: 'x' },
    code: 'missing_from_email',
  },
  {
    name: 'template_not_found before domain_invalid',
    body: { ...good, from_email: 'me@pending.test', template_id: 'x' },
    code: 'template_not_found',
    status: 404,
  },
]

// proves: Email > to | subject | html | text | template_id | template_data | from_name | reply_to | track_opens
// proves: Email > track_clicks | 1 | 2 | 3
// proves: Errors > 400 | validation_error | missing_from_email | template_not_found | no_content
// proves: decisions: Email > html and template_id both given | A mail's addresses may have
// answers: POST /email/send: validation_error, no_content, missing_from_email, template_not_found
// past limit: Limits > Recipients in one send | Subject length | from_name length | HTML size; Postroad > size of text
t.test('every refused request names its fault and leaves nothing behind', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('domain', 'add', 'pending.test', '--workspace', postroad.workspaceId)
  const before = postroad.rowCounts()
  for (const refusal of [
    ...malformed,
    ...tooLarge,
    ...addresses,
    ...injections,
    ...beyondAscii,
    ...several,
    ...business,
    ...inOrder,
  ]) {
    const { name, body, path, code = 'validation_error', status = 400, message = /./ } = refusal
    const answer = await postroad.send(postroad.key, body)
    t.match(answer, { status, body: { error: { code, message } } }, name)
    if (path !== undefined) t.equal(answer.body.error.path, path, `${name}: path`)
    t.same(Object.keys(answer.body), ['error'], `${name}: nothing but the error`)
  }
  t.same(postroad.rowCounts(), before, 'nothing was stored')
  t.match(await postroad.send(postroad.key, good), { status: 200 }, 'the server keeps running')
  t.same(
    postroad.log.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

// proves: What the service does > Transactional email one message to
// proves: Email > POST /email/send | to | subject | html | text | template_data | from_name
// proves: decisions: Email > html and template_id both given
// at limit: Limits > Recipients in one send | Subject length | from_name length | HTML size; Postroad > size of text
t.test('what is as large as allowed is accepted', async t => {
  const postroad = await openTestAppliance(t)
  for (const [name, body] of Object.entries({
    'a subject of 998 characters': { ...good, subject: 'x'.repeat(998) },
    'a from_name of 100 characters': { ...good, from_name: 'ü'.repeat(100) },
    'html of 256 KB': { ...good, html: kilobytes(256) },
    'html and text of 256 KB in two-octet characters': {
      ...good,
      html: kilobytes(256, 'ü'),
      text: kilobytes(256, 'ü'),
    },
    '100 recipients': { ...good, to: Array.from({ length: 100 }, (_, index) => `user${index}@one.test`) },
    'a line separator and a TAB in the subject': { ...good, subject: 'a\u2028b\tc' },
    'tags in the subject': { ...good, subject: '<b>Hi</b>' },
    'text of 1 MB': { ...good, text: kilobytes(1_024, 'ü') },
    'an address beyond ASCII': { ...good, to: 'jörg@bücher.test' },
    'a domain beyond ASCII': { ...good, from_email: 'Me <me@büro.test>', reply_to: 'me@büro.test' },
    'template_data of any JSON': { ...good, template_data: { items: [1, { two: null }] } },
  }))
    t.match(await postroad.send(postroad.key, body), { status: 200 }, name)
})

// proves: decisions: Email > Optional fields null is as
t.test('null for an optional field is as if it were left out', async t => {
  const postroad = await openTestAppliance(t)
  const optional = [
    ...['html', 'template_id', 'template_data', 'from_name', 'reply_to', 'track_opens', 'track_clicks'],
    ...['cc', 'bcc', 'attachments', 'headers', 'tags'],
  ]
  const nulls = Object.fromEntries(optional.map(name => [name, null]))
  const file = { filename: 'a.txt', content: 'aGk=', content_type: null, content_id: null }
  t.match(await postroad.send(postroad.key, { ...good, ...nulls, send_at: null }), { status: 200 })
  t.match(await postroad.send(postroad.key, { ...good, attachments: [file] }), { status: 200 })
  t.match(await postroad.send(postroad.key, { ...good, cc: [], bcc: [] }), {
    status: 200,
    body: { data: { total: 1 } },
  })
  t.match(
    await postroad.post('/api/v1/email/batch', { messages: [{ ...good, ...nulls }] }, { key: postroad.key }),
    { status: 202, body: { data: { sent: 1 } } },
  )
  const key = { key: postroad.key, headers: { 'Idempotency-Key': 'k' } }
  const { body } = await postroad.post('/api/v1/email/send', { ...good, cc: null }, key)
  t.same((await postroad.post('/api/v1/email/send', good, key)).body, body, 'and is the same request')
  t.match(await postroad.send(postroad.key, { ...good, from_email: null }), {
    status: 400,
    body: { error: { code: 'missing_from_email' } },
  })
})

// proves: Email > subject
t.test('tags are stripped from the subject', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await postroad.send(postroad.key, { ...good, subject: '<b>5 < 6</b> & <i>more</i>' })
  const message = await postroad.messageOnce(
    postroad.key,
    String(body.data.results[0].message_id),
    'delivered',
  )
  t.equal(message.subject, '5 < 6 & more')
})
