/** Feedback reports: who complained, of what type, and what was redacted. */
import t from 'tap'
import { readReturnedMail } from '../../../src/mail/returned/read-returned-mail.js'
import { multipart, ORIGINAL, RETURN_PATH, wire } from '../../support/returned/returned-mail.js'

function feedback(
  fields: string,
  original = ORIGINAL,
  type = 'multipart/report; report-type=feedback-report',
): Buffer {
  return multipart(type, [
    'Content-Type: text/plain\n\nThis is an email abuse report.',
    `Content-Type: message/feedback-report\n\n${fields}`,
    `Content-Type: message/rfc822\n\n${original}`,
  ])
}

const ABUSE = 'Feedback-Type: abuse\nUser-Agent: reporter/1.0\nVersion: 1\n'

t.test('a complaint yields who complained and about what', async t => {
  t.match(
    readReturnedMail(feedback(`${ABUSE}Original-Rcpt-To: <ann@example.net>\nOriginal-Envelope-Id: env-1\n`)),
    {
      kind: 'feedback',
      form: 'arf',
      recipients: [{ recipient: 'ann@example.net', feedbackType: 'abuse' }],
      original: { messageId: 'm1.abc@sender.example' },
      envelopeId: 'env-1',
    },
  )
})

t.test('a complaint says nothing about the mailbox', async t => {
  const [one] = readReturnedMail(feedback(ABUSE)).recipients
  t.equal(one?.type, undefined)
  t.equal(one?.action, undefined)
})

t.test('types are distinguished in any spelling', async t => {
  const types: Record<string, string> = {
    abuse: 'abuse',
    ABUSE: 'abuse',
    fraud: 'fraud',
    virus: 'virus',
    'not-spam': 'not-spam',
    'Not-Spam': 'not-spam',
    'auth-failure': 'auth-failure',
    'opt-out': 'opt-out',
    'opt-out-list': 'opt-out',
    other: 'other',
    'something-new': 'other',
  }
  for (const [written, expected] of Object.entries(types))
    t.match(readReturnedMail(feedback(`Feedback-Type: ${written}\nVersion: 1\n`)).recipients, [
      { feedbackType: expected },
    ])
})

t.test('without a stated recipient, the returned message identifies it', async t => {
  t.match(readReturnedMail(feedback(ABUSE)).recipients, [{ recipient: 'ann@example.net' }])
})

t.test('several recipients in one report', async t => {
  const fields = `${ABUSE}Original-Rcpt-To: ann@example.net\nOriginal-Rcpt-To: bob@example.org\n`
  t.match(readReturnedMail(feedback(fields)).recipients, [
    { recipient: 'ann@example.net' },
    { recipient: 'bob@example.org' },
  ])
})

t.test('an opt-out names its recipient in a separate field', async t => {
  const fields = 'Feedback-Type: opt-out\nVersion: 0.1\nRemoval-Recipient: ann@example.net\n'
  t.match(readReturnedMail(feedback(fields)).recipients, [
    { recipient: 'ann@example.net', feedbackType: 'opt-out' },
  ])
})

t.test('a redacted recipient is empty, and the message is still identified', async t => {
  const hidden = [
    'redacted@example.net',
    '0123456789abcdef0123456789abcdef@example.net',
    'hashed@example.net',
    'redacted',
  ]
  for (const address of hidden) {
    const original = ORIGINAL.replace('Ann <ann@example.net>', address)
    t.match(
      readReturnedMail(feedback(`${ABUSE}Original-Rcpt-To: ${address}\n`, original)),
      {
        recipients: [{ recipient: '', feedbackType: 'abuse' }],
        original: { messageId: 'm1.abc@sender.example' },
      },
      address,
    )
  }
})

t.test('the report is recognized by its part, whatever the outer type', async t => {
  for (const type of ['multipart/mixed', 'multipart/report'])
    t.match(readReturnedMail(feedback(ABUSE, ORIGINAL, type)), { kind: 'feedback' }, type)
})

t.test('Microsoft sends the message alone, with the recipient in a field', async t => {
  const original = `X-HmXmrOriginalRecipient: ann@example.net\n${ORIGINAL.replace('ann@', 'list@')}`
  const source = multipart('multipart/mixed', [`Content-Type: message/rfc822\n\n${original}`])
  t.match(readReturnedMail(source), {
    kind: 'feedback',
    form: 'jmrp',
    recipients: [{ recipient: 'ann@example.net', feedbackType: 'abuse' }],
  })
  const named = multipart('multipart/mixed', [`Content-Type: message/rfc822\n\n${ORIGINAL}`])
    .toString()
    .replace(/From: .*/, 'From: staff@hotmail.com')
    .replace(/Subject: .*/, 'Subject: complaint about message from 203.0.113.9')
  t.match(readReturnedMail(Buffer.from(named)), {
    kind: 'feedback',
    recipients: [{ recipient: 'ann@example.net' }],
  })
})

t.test('a plain-text report is parsed', async t => {
  const fields = wire(
    `From: fbl@example.net\nSubject: Abuse\n\nA report:\n\n${ABUSE}Original-Rcpt-To: ann@example.net\n\n${ORIGINAL}`,
  )
  t.match(readReturnedMail(fields), {
    kind: 'feedback',
    recipients: [{ recipient: 'ann@example.net', feedbackType: 'abuse' }],
  })
  const words = wire(
    `From: fbl@example.net\nSubject: Abuse\n\nThis is an email abuse report for an email message received from 203.0.113.9.\n\n${ORIGINAL}`,
  )
  t.match(readReturnedMail(words), {
    kind: 'feedback',
    recipients: [{ recipient: 'ann@example.net', feedbackType: 'abuse' }],
  })
})

t.test('an unsubscribe mail from a mail client is an opt-out', async t => {
  const source = wire(
    `From: ann@example.net\nTo: <unsubscribe+token@bounce.sender.example>\nSubject: unsubscribe\nAuto-Submitted: auto-replied\n\n` +
      'The mail program sent this email to unsubscribe from the message "Hello".\n',
  )
  t.match(readReturnedMail(source), {
    kind: 'feedback',
    recipients: [{ recipient: 'ann@example.net', feedbackType: 'opt-out' }],
  })
})

t.test('a bounce that returns a message about reports is a bounce', async t => {
  const source = multipart('multipart/report; report-type=delivery-status', [
    'Content-Type: text/plain\n\nSorry.',
    'Content-Type: message/delivery-status\n\nReporting-MTA: dns; r.example\n\nFinal-Recipient: rfc822; ann@example.net\nAction: failed\nStatus: 5.1.1\n',
    `Content-Type: message/rfc822\n\n${ORIGINAL}\nFeedback-Type: abuse\n`,
  ])
  t.match(readReturnedMail(source), { kind: 'bounce', recipients: [{ recipient: 'ann@example.net' }] })
})

t.test('a person writing about a complaint sends no report', async t => {
  const source = wire(
    `From: bob@example.org\nTo: ${RETURN_PATH}\nSubject: Complaint\n\nI am not happy with my order.\n`,
  )
  t.match(readReturnedMail(source), { kind: 'other', recipients: [] })
})
