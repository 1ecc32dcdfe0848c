import t from 'tap'
import { simpleParser } from 'mailparser'
import { writeDsn, type DsnFacts } from '../../src/mail/compose/dsn-write.js'
import { isSevenBit } from '../../src/mail/mime/transfer-encoding.js'
import { mimeCorpus } from '../support/mime-corpus/corpus.js'

const date = Date.UTC(2026, 0, 5, 7, 8, 9)
const original = Buffer.from(
  'From: ann@example.com\r\nSubject: Hello\r\nMessage-ID: <1@example.com>\r\n\r\n--=_x\r\nHello Bob\r\n',
)
const failure = {
  finalRecipient: 'bob@example.net',
  action: 'failed',
  status: '5.1.1',
  remoteMta: 'mx.example.net',
  diagnostic: '550 5.1.1 <bob@example.net>:\r\n no such user',
  lastAttemptAt: date,
} as const

function facts(changes: Partial<DsnFacts> = {}): DsnFacts {
  return {
    hostname: 'mail.example.com',
    to: 'ann@example.com',
    messageId: 'dsn1@mail.example.com',
    date,
    recipients: [failure],
    original,
    returns: 'FULL',
    ...changes,
  }
}

/** @returns raw text, and the parts by media type */
async function written(changes: Partial<DsnFacts> = {}) {
  const message = writeDsn(facts(changes))
  if (!isSevenBit(message)) throw new Error('not 7-bit')
  const raw = message.toString('latin1')
  const read = await simpleParser(message, { skipTextToHtml: true })
  // mailparser shows a report as one text; the parts are checked in the octets.
  const parts = raw.split(`\r\n--${/boundary="([^"]+)"/.exec(raw)?.[1] ?? ''}`)
  const part = (type: string): string | undefined => {
    const found = parts.find(each => each.startsWith(`\r\nContent-Type: ${type}`))
    return found?.slice(found.indexOf('\r\n\r\n') + 4).replace(/\r\n[ \t]+/g, ' ')
  }
  return { raw, read, part }
}

t.test('a failure is reported with explanation, codes and the message', async t => {
  const { raw, read, part } = await written({ arrivedAt: date - 60_000, envelopeId: 'QQ314159' })
  t.match(raw, /^From: Mail Delivery System <mailer-daemon@mail\.example\.com>\r$/m)
  t.match(raw, /^Auto-Submitted: auto-replied\r$/m)
  t.match(raw, /^Content-Type: multipart\/report; report-type=delivery-status;\r\n boundary="[^"]+"\r$/m)
  t.match(read, {
    subject: 'Undelivered mail',
    inReplyTo: '<1@example.com>',
    to: { text: 'ann@example.com' },
  })
  t.match(
    read.text,
    /could not be delivered.*<bob@example\.net>\s+mx\.example\.net said: 550 5\.1\.1 <bob@example\.net>: no such user/s,
  )
  t.equal(
    part('message/delivery-status')?.trimEnd(),
    [
      'Original-Envelope-Id: QQ314159',
      'Reporting-MTA: dns; mail.example.com',
      'Arrival-Date: Mon, 05 Jan 2026 07:07:09 +0000',
      '',
      'Final-Recipient: rfc822; bob@example.net',
      'Action: failed',
      'Status: 5.1.1',
      'Remote-MTA: dns; mx.example.net',
      'Diagnostic-Code: smtp; 550 5.1.1 <bob@example.net>: no such user',
      'Last-Attempt-Date: Mon, 05 Jan 2026 07:08:09 +0000',
    ].join('\r\n'),
  )
  t.equal(part('message/rfc822'), original.toString())
})

t.test('RET=HDRS and long messages return the header only', async t => {
  const head = /^From: ann@example\.com\r?\nSubject: Hello\r?\nMessage-ID: <1@example\.com>\r?\n\s*$/
  for (const changes of [
    { returns: 'HDRS' },
    { original: Buffer.concat([original, Buffer.alloc(70_000, 'x\r\n')]) },
  ] as const) {
    const { part } = await written(changes)
    t.equal(part('message/rfc822'), undefined)
    t.match(part('text/rfc822-headers'), head)
  }
})

t.test('a delay notice says until when delivery is retried', async t => {
  const delayed = {
    finalRecipient: 'cy@example.org',
    action: 'delayed',
    status: '4.4.1',
    willRetryUntil: date + 86_400_000,
  } as const
  const { read, part } = await written({ recipients: [delayed] })
  t.match(read.subject, /^Delayed mail/)
  t.match(read.text, /do not need to resend it.*until Tue, 06 Jan 2026/s)
  t.match(
    part('message/delivery-status'),
    /Action: delayed\r\nStatus: 4\.4\.1\r\nWill-Retry-Until: Tue, 06 Jan 2026 07:08:09 \+0000/,
  )
})

t.test('each recipient has a group, and the worst action determines the subject', async t => {
  const others = [
    {
      finalRecipient: 'cy@example.org',
      action: 'delivered',
      status: '2.0.0',
      originalRecipient: 'rfc822;CY@example.org',
    },
    { finalRecipient: 'di@example.org', action: 'relayed', status: '2.0.0', willRetryUntil: date },
  ] as const
  const { read, part } = await written({ recipients: [...others, failure] })
  t.equal(read.subject, 'Undelivered mail')
  const groups = part('message/delivery-status')?.trimEnd().split('\r\n\r\n') ?? []
  t.equal(groups.length, 4)
  t.match(
    groups[1],
    /^Original-Recipient: rfc822; CY@example\.org\r\nFinal-Recipient: rfc822; cy@example\.org/,
  )
  t.notMatch(groups[2], /Will-Retry-Until/)
  t.equal((await written({ recipients: others })).read.subject?.startsWith('Mail relayed'), true)
})

t.test('non-ASCII addresses are written without requiring SMTPUTF8', async t => {
  const recipients = [{ ...failure, finalRecipient: 'jürgen+x@example.net' }]
  const { raw, read, part } = await written({ recipients, to: 'änn@example.com' })
  t.match(part('message/delivery-status'), 'Final-Recipient: utf-8; j\\x{FC}rgen\\x{2B}x@example.net')
  t.match(read.text, '<jürgen+x@example.net>')
  t.match(raw, /^To: =\?UTF-8\?.*\?=:;\r$/m)
})

t.test('texts of servers and addresses cannot add fields or parts', async t => {
  const hostile = {
    ...failure,
    finalRecipient: 'a@b\r\nAction: delivered',
    remoteMta: 'mx\r\n\r\nX: y',
    diagnostic: `550 ${'novel '.repeat(5_000)}\r\nAction: delivered\r\n${'x'.repeat(3_000)}`,
  }
  const { raw, part } = await written({ recipients: [hostile], envelopeId: 'a\r\nb', to: 'x\r\nBcc: y@z' })
  t.notMatch(raw, /^(?:Action: delivered|X: y|Bcc:)/m)
  t.equal(part('message/delivery-status')?.match(/^Action:/gm)?.length, 1)
  t.ok(raw.length < 10_000)
})

t.test('every mail of the corpus can be returned as 7-bit', async t => {
  for (const { name, message } of mimeCorpus) {
    const { raw } = await written({ original: message })
    t.match(raw, /Content-Type: (?:message\/rfc822|text\/rfc822-headers)/, name)
  }
})

t.test('a report without recipients throws', async t => {
  t.throws(() => writeDsn(facts({ recipients: [] })), /needs a recipient/)
})
