/** Delivery status notifications: RFC 3464 as specified and as sent in practice. */
import t from 'tap'
import { readReturnedMail } from '../../../src/mail/returned/read-returned-mail.js'
import {
  deliveryReport,
  group,
  multipart,
  ORIGINAL,
  ORIGINAL_HEADER,
  REPORTER,
  wire,
} from '../../support/returned/returned-mail.js'

t.test('a delivery report yields recipient, status, reply, host and message', async t => {
  const envelope = 'Original-Envelope-Id: env-1\n'
  t.match(readReturnedMail(deliveryReport(envelope + REPORTER + group())), {
    kind: 'bounce',
    form: 'rfc3464',
    envelopeId: 'env-1',
    recipients: [
      {
        recipient: 'ann@example.net',
        action: 'failed',
        status: '5.1.1',
        replyCode: 550,
        diagnosticCode: '550 5.1.1 <ann@example.net>: no such user',
        remoteMta: 'mx.example.net',
        type: 'permanent',
        cause: 'recipient',
        scope: 'address',
        subtype: 'no_such_mailbox',
      },
    ],
    original: { messageId: 'm1.abc@sender.example' },
  })
})

t.test("the original's header is available decoded, by lower-case name", async t => {
  const header = `${ORIGINAL_HEADER}\nX-Note: =?utf-8?B?w6Q=?= =?utf-8?Q?_=C3=B6?=\nX-Folded: one\n two`
  for (const type of ['message/rfc822', 'text/rfc822-headers', 'message/global', 'message/global-headers']) {
    const source = multipart('multipart/report; report-type=delivery-status', [
      'Content-Type: text/plain\n\nfailed',
      `Content-Type: message/delivery-status\n\n${REPORTER}${group()}`,
      `Content-Type: ${type}\n\n${header}\n`,
    ])
    const { original } = readReturnedMail(source)
    t.equal(original?.messageId, 'm1.abc@sender.example', type)
    t.equal(original?.header.get('x-postroad-id'), 'token-1', type)
    t.equal(original?.header.get('x-note'), 'ä ö', type)
    t.equal(original?.header.get('x-folded'), 'one two', type)
  }
})

t.test('a report without a failure is not a bounce; one failure among others is enough', async t => {
  const kinds = {
    failed: 'bounce',
    FAILED: 'bounce',
    'Failed (gave up)': 'bounce',
    expired: 'bounce',
    delayed: 'delay',
    Delayed: 'delay',
    delivered: 'success',
    Relayed: 'success',
    expanded: 'success',
  }
  for (const [action, kind] of Object.entries(kinds)) {
    const status = kind === 'success' ? '2.0.0' : kind === 'delay' ? '4.4.1' : '5.1.1'
    const one = group({ Action: action, Status: status, 'Diagnostic-Code': '' })
    t.equal(readReturnedMail(deliveryReport(REPORTER + one)).kind, kind, action)
    const both = `${REPORTER}${one}\n${group({ 'Final-Recipient': 'rfc822; bob@example.org' })}`
    t.equal(readReturnedMail(deliveryReport(both)).kind, 'bounce', `${action} and failed`)
  }
})

t.test('only failures and delays are classified', async t => {
  const [one] = readReturnedMail(
    deliveryReport(REPORTER + group({ Action: 'relayed', Status: '2.1.9', 'Diagnostic-Code': '' })),
  ).recipients
  t.match(one, { action: 'relayed', status: '2.1.9' })
  t.equal(one?.type, undefined)
  t.equal(one?.cause, undefined)
})

t.test('a delay is transient whatever its text', async t => {
  const fields = { Action: 'delayed', Status: '4.0.0', 'Diagnostic-Code': 'smtp; 550 5.1.1 no such user' }
  t.match(readReturnedMail(deliveryReport(REPORTER + group(fields))), {
    kind: 'delay',
    recipients: [{ action: 'delayed', type: 'transient' }],
  })
})

t.test('several recipients, each with its own verdict', async t => {
  const groups = [
    group(),
    group({
      'Final-Recipient': 'rfc822;bob@example.org',
      Status: '5.2.2 (mailbox full)',
      'Diagnostic-Code': 'smtp; 552 5.2.2 over quota',
    }),
    group({
      'Final-Recipient': 'rfc822; <eve@example.com>',
      Action: 'delayed',
      Status: '4.4.1',
      'Diagnostic-Code': '',
    }),
  ]
  for (const divider of ['\n', '\n\n\n', '']) {
    const { recipients } = readReturnedMail(deliveryReport(REPORTER + groups.join(divider)))
    t.match(
      recipients,
      [
        { recipient: 'ann@example.net', subtype: 'no_such_mailbox', type: 'permanent' },
        { recipient: 'bob@example.org', subtype: 'mailbox_full', type: 'transient', status: '5.2.2' },
        { recipient: 'eve@example.com', action: 'delayed', type: 'transient', status: '4.4.1' },
      ],
      JSON.stringify(divider),
    )
    t.equal(recipients.length, 3)
  }
})

t.test('fields separated by empty lines, and groups in unusual order, are joined', async t => {
  const scattered = 'Final-Recipient: rfc822; ann@example.net\n\nAction: failed\n\nStatus: 5.1.1\n'
  t.match(readReturnedMail(deliveryReport(REPORTER + scattered)).recipients, [
    { recipient: 'ann@example.net', action: 'failed', status: '5.1.1' },
  ])
  const reversed =
    'Action: failed\nStatus: 5.1.1\nFinal-Recipient: rfc822;ann@example.net\n\n' +
    'Action: failed\nStatus: 5.2.1\nFinal-Recipient: rfc822;bob@example.org\n'
  t.match(readReturnedMail(deliveryReport(REPORTER + reversed)).recipients, [
    { recipient: 'ann@example.net', status: '5.1.1' },
    { recipient: 'bob@example.org', status: '5.2.1' },
  ])
})

t.test('status: the stated code, unless a quoted one is more specific', async t => {
  const cases: [status: string, diagnostic: string, expected: string][] = [
    ['5.1.1', 'smtp; 550 5.7.1 something else', '5.1.1'],
    ['5.0.0', 'smtp; 550 5.7.1 no', '5.7.1'],
    ['5.0.0', 'smtp; 550 5.0.0 no', '5.0.0'],
    ['5.0.0', 'smtp; 550 no (#5.2.1)', '5.2.1'],
    ['5.0.0', 'smtp; 550 no', '5.0.0'],
    ['5.0.0', 'smtp; 450 4.2.0 other class', '5.0.0'],
    ['4.4.7', 'smtp; 452 4.3.1 disk full', '4.3.1'],
    ['4.4.7', 'smtp; 554 4.4.7 message expired <421 4.4.2 connection timed out>', '4.4.2'],
    ['', 'smtp; 550 5.2.1 disabled', '5.2.1'],
    ['', 'smtp; 550 no such user', '5.1.1'],
    ['', 'smtp; 552 mailbox full', '5.2.2'],
    ['', 'smtp; mailbox full', '4.2.2'],
    ['550 5.1.1', '', '5.1.1'],
    ['5.1.1 (bad mailbox)', '', '5.1.1'],
  ]
  for (const [status, diagnostic, expected] of cases) {
    const source = deliveryReport(
      REPORTER + group({ Status: status, 'Diagnostic-Code': diagnostic }),
      'Sorry.',
    )
    t.equal(readReturnedMail(source).recipients[0]?.status, expected, `${status} | ${diagnostic}`)
  }
})

t.test('an expired 4yz does not count against the mailbox', async t => {
  const cases = [
    group({ Status: '4.1.1', 'Diagnostic-Code': 'smtp; 450 4.1.1 user unknown' }),
    group({ Status: '4.0.0', 'Diagnostic-Code': 'smtp; 550 user unknown' }),
    group({ Status: '5.0.0', 'Diagnostic-Code': 'smtp; 450 user unknown' }),
    group({ Status: '4.4.7', 'Diagnostic-Code': 'smtp; 550 4.4.7 QUEUE.Expired; message expired' }),
  ]
  for (const fields of cases)
    t.match(readReturnedMail(deliveryReport(REPORTER + fields)).recipients, [{ type: 'transient' }], fields)
})

t.test('without a diagnostic the reason comes from the notice', async t => {
  const fields = group({ Status: '5.0.0', 'Diagnostic-Code': '', 'Remote-MTA': '' })
  const text = '<ann@example.net>: host mx.example.net said: 550 5.2.1 mailbox disabled\n'
  t.match(readReturnedMail(deliveryReport(REPORTER + fields, text)).recipients, [
    { status: '5.2.1', replyCode: 550, subtype: 'mailbox_disabled' },
  ])
})

t.test('the UTF-8 forms of RFC 6533 are parsed', async t => {
  const fields = group({ 'Final-Recipient': 'utf-8; \\x{E4}nn@example.net', 'Diagnostic-Code': '' })
  const source = multipart('multipart/report; report-type=delivery-status', [
    'Content-Type: text/plain\n\nfailed',
    `Content-Type: message/global-delivery-status\nContent-Transfer-Encoding: base64\n\n${Buffer.from(
      REPORTER + fields,
    ).toString('base64')}`,
    `Content-Type: message/global\n\n${ORIGINAL}`,
  ])
  t.match(readReturnedMail(source), { form: 'rfc3464', recipients: [{ recipient: 'änn@example.net' }] })
  const plain = group({ 'Final-Recipient': 'utf-8; jörg@exämple.net', 'Diagnostic-Code': '' })
  t.match(readReturnedMail(deliveryReport(REPORTER + plain)).recipients, [{ recipient: 'jörg@exämple.net' }])
})

t.test('the original recipient is reported if it differs', async t => {
  const moved = group({ 'Original-Recipient': 'rfc822; alias@example.net' })
  t.match(readReturnedMail(deliveryReport(REPORTER + moved)).recipients, [
    { recipient: 'ann@example.net', originalRecipient: 'alias@example.net' },
  ])
  const same = group({ 'Original-Recipient': 'rfc822; ANN@example.net' })
  t.equal(readReturnedMail(deliveryReport(REPORTER + same)).recipients[0]?.originalRecipient, undefined)
  const alone = group({ 'Final-Recipient': '', 'Original-Recipient': '<ann@example.net>' })
  t.match(readReturnedMail(deliveryReport(REPORTER + alone)).recipients, [{ recipient: 'ann@example.net' }])
})

t.test('a file or pipe is replaced by the address in the notice', async t => {
  const fields = group({ 'Final-Recipient': 'rfc822;/var/mail/ann', 'Diagnostic-Code': '' })
  const text = `This message was created automatically by mail delivery software.
The following address(es) failed:

  save to /var/mail/ann
    generated by ann@example.net
    mailbox is full: retry timeout exceeded
`
  t.match(readReturnedMail(deliveryReport(REPORTER + fields, text)).recipients, [
    { recipient: 'ann@example.net' },
  ])
})

t.test('any line ending is accepted', async t => {
  const source = deliveryReport(REPORTER + group()).toString()
  for (const end of ['\n', '\r', '\r\r\n'])
    t.match(
      readReturnedMail(Buffer.from(source.replaceAll('\r\n', end))),
      { kind: 'bounce', recipients: [{ recipient: 'ann@example.net', status: '5.1.1' }] },
      JSON.stringify(end),
    )
})

t.test('a mislabelled multipart/report is parsed as one', async t => {
  const expected = { kind: 'bounce', recipients: [{ recipient: 'ann@example.net', status: '5.1.1' }] }
  const whole = deliveryReport(REPORTER + group()).toString()
  const variants = {
    'another multipart': whole.replace('multipart/report', 'multipart/mixed'),
    'a misspelt multipart': whole.replace('multipart/report', 'multipart/rep0rt'),
    'a boundary that is not stated': whole.replace('; boundary="=_limit"', ''),
    'a boundary stated wrongly': whole.replace('boundary="=_limit"', 'boundary="=_other"'),
    'delimiters moved in': whole.replaceAll('\r\n--=_limit', '\r\n --=_limit'),
    'parts never closed': whole.replace('--=_limit--', ''),
    'fields in a text part': whole.replace('message/delivery-status', 'text/plain'),
    'no parts at all': wire(
      `From: MAILER-DAEMON@relay.example\nContent-Type: multipart/report; boundary=x\n\nFailed.\n\n${REPORTER}${group()}`,
    ).toString(),
  }
  for (const [name, source] of Object.entries(variants))
    t.match(readReturnedMail(Buffer.from(source)), expected, name)
})

t.test('a report inside a forwarded mail is found, two levels deep', async t => {
  const inner = deliveryReport(REPORTER + group())
    .toString()
    .replaceAll('=_limit', '=_inner')
    .replaceAll('\r\n', '\n')
  const forwarded = multipart('multipart/mixed', [
    'Content-Type: text/plain\n\nA message for you was held.',
    `Content-Type: message/rfc822\n\n${inner}`,
  ])
  t.match(readReturnedMail(forwarded), { kind: 'bounce', recipients: [{ recipient: 'ann@example.net' }] })
})

t.test('Amazon SES notifications are parsed', async t => {
  const bounce = {
    notificationType: 'Bounce',
    bounce: {
      bounceType: 'Permanent',
      bouncedRecipients: [
        {
          emailAddress: 'ann@example.net',
          action: 'failed',
          status: '5.1.1',
          diagnosticCode: 'smtp; 550 5.1.1 user unknown',
        },
      ],
    },
    mail: { messageId: '0100', commonHeaders: { messageId: '<m1@sender.example>' } },
  }
  const complaint = {
    notificationType: 'Complaint',
    complaint: {
      complaintFeedbackType: 'abuse',
      complainedRecipients: [{ emailAddress: 'ann@example.net' }],
    },
  }
  const delivery = {
    notificationType: 'Delivery',
    delivery: { recipients: ['ann@example.net'], smtpResponse: '250 2.6.0 ok' },
  }
  const mail = (json: unknown) =>
    wire(
      `From: no-reply@sns.amazonaws.com\nSubject: AWS Notification Message\n\n${JSON.stringify(json)}\n\n--\nfooter`,
    )
  t.match(readReturnedMail(mail(bounce)), {
    kind: 'bounce',
    recipients: [{ recipient: 'ann@example.net', status: '5.1.1', subtype: 'no_such_mailbox' }],
    original: { messageId: 'm1@sender.example' },
  })
  const wrapped = { Type: 'Notification', Message: JSON.stringify(bounce) }
  t.match(readReturnedMail(mail(wrapped)), { kind: 'bounce', recipients: [{ recipient: 'ann@example.net' }] })
  t.match(readReturnedMail(mail(complaint)), { kind: 'feedback', recipients: [{ feedbackType: 'abuse' }] })
  t.match(readReturnedMail(mail(delivery)), { kind: 'success', recipients: [{ status: '2.6.0' }] })
})
