import t from 'tap'
import { simpleParser } from 'mailparser'
import {
  editRelayedHeader,
  type HeaderEdits,
  receivedField,
  transmissionProtocol,
} from '../../../src/mail/relay/edit-header.js'
import { readRelayedHeader } from '../../../src/mail/relay/relayed-header.js'
import { utf8 } from '../../support/mime-corpus/build.js'
import { mimeCorpus } from '../../support/mime-corpus/corpus.js'

const date = Date.UTC(2026, 0, 5, 7, 8, 9)
const facts = {
  helo: 'laptop.example.com',
  peerAddress: '192.0.2.7',
  hostname: 'mail.example.com',
  protocol: 'ESMTPSA',
  id: '018f3a5c',
  date,
} as const
const received = receivedField(facts)

function edit(lines: readonly string[], edits: HeaderEdits): string {
  const message = Buffer.from(`${lines.join('\r\n')}\r\n\r\nbody`, 'latin1')
  return editRelayedHeader(readRelayedHeader(message), edits).toString('latin1')
}

t.test('every mail of the corpus keeps its header octet for octet below Received', async t => {
  for (const { name, message } of mimeCorpus) {
    const header = readRelayedHeader(message)
    const edited = editRelayedHeader(header, { received }).toString('latin1')
    const before = message.toString('latin1', 0, header.bodyStart)
    const end = before.endsWith('\r\n\r\n') ? '' : before.endsWith('\r\n') ? '\r\n' : '\r\n\r\n'
    t.equal(edited, `${received}\r\n${before}${end}`, name)
  }
})

t.test('submission-only fields are removed, all others keep their order', async t => {
  const kept = [
    'From:  ann@example.com',
    'X-Postroadish: 1',
    'To: bob@example.net,\r\n\tcy@example.org',
    'x-other:y ',
  ]
  const gone = [
    'Bcc: secret@example.net,\r\n other@example.net',
    'X-Postroad-Tag: a',
    'x-postroad-data: {}',
    'Return-Path: <a@b>',
    'Resent-Bcc: x@y',
  ]
  const mixed = [gone[0], kept[0], gone[1], gone[2], kept[1], kept[2], gone[3], kept[3], gone[4]].map(String)
  t.equal(edit(mixed, {}), `${kept.join('\r\n')}\r\n\r\n`)
  t.equal(
    edit([...kept, 'X-Mine: 1'], { removals: ['x-mine', 'x-other'] }),
    `${kept.slice(0, 3).join('\r\n')}\r\n\r\n`,
  )
})

t.test('Date and Message-ID are added only if missing', async t => {
  const edits = { dateToAdd: date, messageIdToAdd: 'new@mail.example.com' }
  const added = 'Date: Mon, 05 Jan 2026 07:08:09 +0000\r\nMessage-ID: <new@mail.example.com>\r\n'
  t.equal(edit(['From: a@example.com'], edits), `From: a@example.com\r\n${added}\r\n`)
  t.equal(
    edit(['Date:', 'From: a@example.com', 'Message-ID: <>'], edits),
    `From: a@example.com\r\n${added}\r\n`,
  )
  const complete = ['From: a@example.com', 'date: some day', 'MESSAGE-ID: <old@example.com>']
  t.equal(edit(complete, edits), `${complete.join('\r\n')}\r\n\r\n`)
})

t.test('a shared address replaces From, and the author becomes Reply-To', async t => {
  const fromToSet = { name: 'Ann, by Example', address: 'shared@mail.example.com' }
  t.equal(
    edit(
      ['To: bob@example.net', utf8('From: Änn <ann@own.example>'), 'Sender: x@own.example', 'Subject: Hi'],
      { fromToSet },
    ),
    'To: bob@example.net\r\nFrom: "Ann, by Example" <shared@mail.example.com>\r\nSubject: Hi\r\n' +
      'Reply-To: =?UTF-8?Q?=C3=84nn?= <ann@own.example>\r\n\r\n',
  )
  t.equal(
    edit(['From: ann@own.example', 'Reply-To: desk@own.example'], { fromToSet }),
    'From: "Ann, by Example" <shared@mail.example.com>\r\nReply-To: desk@own.example\r\n\r\n',
  )
  t.equal(
    edit(['Subject: x'], { fromToSet: { address: 's@example.com' } }),
    'Subject: x\r\nFrom: s@example.com\r\n\r\n',
  )
  t.match(
    edit(['From: a@own.example, b@own.example', 'Sender: a@own.example'], { fromToSet }),
    /^Reply-To: a@own.example, b@own.example\r$/m,
  )
  t.notMatch(edit([utf8('From: ö@own.example')], { fromToSet }), /Reply-To/)
  t.throws(
    () => edit(['From: a@b.example'], { fromToSet: { name: 'a\r\nBcc: x', address: 'a@b.example' } }),
    { code: 'validation_error' },
  )
})

t.test('Received records how the message arrived, but no recipient', async t => {
  t.equal(
    receivedField({ ...facts, tls: { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' } }),
    'Received: from laptop.example.com ([192.0.2.7])\r\n' +
      ' (using TLSv1.3 with cipher TLS_AES_256_GCM_SHA384)\r\n' +
      ' by mail.example.com with ESMTPSA id 018f3a5c;\r\n' +
      ' Mon, 05 Jan 2026 07:08:09 +0000',
  )
  const { peerAddress, ...unnamed } = facts
  t.match(receivedField(unnamed), /^Received: from laptop\.example\.com\r\n by/)
  t.match(receivedField({ ...facts, helo: '' }), /^Received: from \[192\.0\.2\.7\]\r\n by/)
  t.match(receivedField({ ...facts, helo: `[${peerAddress}]` }), /^Received: from \[192\.0\.2\.7\]\r\n by/)
  t.match(receivedField({ ...facts, peerAddress: 'fe80::1%eth0' }), /\(\[IPv6:fe80::1\]\)/)
})

t.test('no EHLO argument can inject a header field', async t => {
  const field = receivedField({
    ...facts,
    helo: `a\r\nBcc: x (y) <z> ;${'h'.repeat(5_000)}`,
    id: 'a\r\n\r\nb',
  })
  t.ok(field.split('\r\n').every((line, index) => index === 0 || line.startsWith(' ')))
  t.ok(field.length < 500)
  t.notMatch(field, /Bcc: |\(y\)|<z>/)
  const read = await simpleParser(`${field}\r\nSubject: x\r\n\r\n`)
  t.equal(read.bcc, undefined)
  t.equal(read.subject, 'x')
})

t.test('the protocol name reflects EHLO, TLS, AUTH and SMTPUTF8', async t => {
  const plain = { isEsmtp: true, hasTls: false, isAuthenticated: false, smtpUtf8: false }
  t.equal(transmissionProtocol({ ...plain, isEsmtp: false }), 'SMTP')
  t.equal(transmissionProtocol(plain), 'ESMTP')
  t.equal(transmissionProtocol({ ...plain, hasTls: true }), 'ESMTPS')
  t.equal(transmissionProtocol({ ...plain, isAuthenticated: true }), 'ESMTPA')
  t.equal(transmissionProtocol({ ...plain, hasTls: true, isAuthenticated: true }), 'ESMTPSA')
  t.equal(
    transmissionProtocol({ isEsmtp: true, hasTls: true, isAuthenticated: true, smtpUtf8: true }),
    'UTF8SMTPSA',
  )
})
