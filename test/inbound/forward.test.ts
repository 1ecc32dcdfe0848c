/** Mail to postmaster@ and abuse@ on its way to a person. */
import { simpleParser } from 'mailparser'
import t from 'tap'
import type { Database, Tx } from '../../src/db/database.js'
import { Forwarder } from '../../src/inbound/effects/forward.js'
import type { InboundMail } from '../../src/inbound/inbound-mail-store.js'
import { findContents } from '../../src/messages/content-store.js'
import { BOUNCE_DOMAIN, crlf, HOSTNAME, openInboundTest } from '../support/inbound.js'

const ADMIN = 'admin@example.com'

/** What waits in the queue for the operator, newest last. */
async function forwarded(database: Database) {
  const rows = await database.reader
    .selectFrom('queue')
    .innerJoin('messages', 'messages.id', 'queue.message_id')
    .select(['messages.recipient', 'messages.content_id', 'messages.workspace_id'])
    .orderBy('messages.id')
    .execute()
  return Promise.all(
    rows.map(async row => {
      const [content] = await findContents(database.reader, [row.content_id])
      return { ...row, content: content!, mail: await simpleParser(content!.relayed!.firstPart) }
    }),
  )
}

const LETTER = crlf(`
From: Zoë <zoe@x.example>
To: abuse@${HOSTNAME}
Subject: =?utf-8?q?Sp=C3=A4m?= from
 your server

Caf\u00e9 au lait
`)

t.test('it is forwarded whole, inside a mail of our own with a null return path', async t => {
  const { database, take, enqueued } = await openInboundTest(t, { forwardTo: ADMIN })
  const mail = await take(`abuse@${HOSTNAME}`, LETTER, 'zoe@x.example')
  t.match(mail, { result: 'forwarded', findings: [{ detail: 'to admin@example.com' }] })
  const [one] = await forwarded(database)
  t.equal(one!.recipient, ADMIN)
  t.equal(one!.content.relayed!.submitter, undefined, 'its failure is not reported')
  t.equal(one!.mail.from?.text, `"Postroad" <postmaster@${HOSTNAME}>`)
  t.equal(one!.mail.subject, '[abuse] Späm from your server')
  t.equal(one!.mail.headers.get('auto-submitted'), 'auto-generated')
  t.match(one!.mail.text, /Sender: +<zoe@x\.example>/)
  t.match(one!.mail.text, /mx\.example\.com \[192\.0\.2\.1\]/)
  t.match(one!.mail.attachments, [{ filename: 'original.eml' }])
  t.equal(one!.mail.attachments[0]!.content.toString(), LETTER)
  const raw = one!.content.relayed!.firstPart.toString('latin1')
  t.notMatch(raw, /[\x80-\xff]/, '7-bit')
  t.match(raw, /^X-Loop: postmaster@/m)
  t.ok(raw.split('\r\n').every(line => line.length <= 998 && !line.includes('\n')))
  t.equal(enqueued.length, 1, 'the queue was notified')
})

t.test('without an address it is kept', async t => {
  const { database, take } = await openInboundTest(t)
  t.equal((await take('postmaster', LETTER)).result, 'kept')
  t.same(await forwarded(database), [])
})

t.test('a mail that was forwarded before is not forwarded again', async t => {
  const { database, take } = await openInboundTest(t, { forwardTo: `postmaster@${HOSTNAME}` })
  await take('postmaster', LETTER)
  const [one] = await forwarded(database)
  const mail = await take(`postmaster@${HOSTNAME}`, one!.content.relayed!.firstPart)
  t.match(mail, { result: 'kept', findings: [{ detail: 'already forwarded once' }] })
  t.equal((await forwarded(database)).length, 1)
})

t.test('a mail to both is forwarded once', async t => {
  const { database, take } = await openInboundTest(t, { forwardTo: ADMIN })
  await take([`postmaster@${HOSTNAME}`, `abuse@${BOUNCE_DOMAIN}`], LETTER)
  t.equal((await forwarded(database)).length, 1)
})

t.test('of a long mail the beginning is forwarded, and where the rest is', async t => {
  const { database, take } = await openInboundTest(t, { forwardTo: ADMIN })
  const mail = await take('postmaster', `${LETTER}${'x'.repeat(70)}\r\n`.repeat(6_000))
  const [one] = await forwarded(database)
  t.ok(one!.content.relayed!.firstPart.length <= 256 * 1_024)
  t.equal(one!.mail.attachments[0]!.content.length, 180_000)
  t.match(one!.mail.text, new RegExp(`postroad inbound show ${mail.seq}`))
})

t.test('a flood is not passed on, and an hour later mail is forwarded again', async t => {
  const { database, receive, settled, take, clock } = await openInboundTest(t, { forwardTo: ADMIN })
  await Promise.all(Array.from({ length: 105 }, () => receive('postmaster', LETTER)))
  await settled()
  t.equal((await forwarded(database)).length, 100)
  await clock.advance(3_600_001)
  t.equal((await take('postmaster', LETTER)).result, 'forwarded')
})

t.test('mail whose transaction is rolled back does not count against the hourly limit', async t => {
  const { database } = await openInboundTest(t)
  let ids = 0
  const forwarder = new Forwarder({
    hostname: HOSTNAME,
    forwardTo: ADMIN,
    newId: () => `id${(ids += 1)}`,
    expireMs: 1_000,
    onEnqueued: () => {},
  })
  const mail: InboundMail = {
    seq: 1,
    bodyId: 'b1',
    receivedAt: 0,
    session: 's1',
    peerAddress: '192.0.2.1',
    heloName: 'mx.example.com',
    envelopeSender: 'zoe@x.example',
    recipients: [{ address: 'postmaster', purpose: 'contact' }],
    size: LETTER.length,
    tries: 0,
    processedAt: null,
    result: null,
    findings: [],
  }
  const head = { subject: 'Hello', from: 'zoe@x.example', loops: [] }
  const composed = await forwarder.compose(mail, head, 1, async () => Buffer.from(LETTER))
  if (!('message' in composed)) throw new Error(composed.detail)
  const forward = (tx: Tx) => forwarder.forward(tx, composed, 1)
  for (let failed = 0; failed < 100; failed += 1)
    await t.rejects(
      database.write(async tx => {
        await forward(tx)
        throw new Error('rolled back')
      }),
    )
  t.equal((await database.write(forward)).result, 'forwarded')
})

t.test('a subject cannot bring a header field along', async t => {
  const { database, take } = await openInboundTest(t, { forwardTo: ADMIN })
  await take('postmaster', crlf('\nSubject: =?utf-8?q?a=0D=0ABcc:_eve@x.example?=\n\nx\n'))
  const [one] = await forwarded(database)
  t.equal(one!.mail.bcc, undefined)
  t.equal(one!.mail.subject, '[postmaster] a Bcc: eve@x.example')
})
