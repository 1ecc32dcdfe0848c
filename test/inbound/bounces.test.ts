/** What a returned mail brings about, from the final dot to the suppression list. */
import t from 'tap'
import { listBounces } from '../../src/deliverability/bounces/bounce-store.js'
import { findSuppression } from '../../src/deliverability/suppressions/suppression-store.js'
import type { Database } from '../../src/db/database.js'
import {
  BOUNCE_DOMAIN,
  crlf,
  dsn,
  HOSTNAME,
  openInboundTest,
  sentMessage,
  signedFor,
} from '../support/inbound.js'
import { recordOutcomes } from '../../src/queue/delivery/record-outcomes.js'
import { NOW } from '../support/mailroom.js'
import { bounced } from '../support/outcomes.js'
import { until } from '../support/until.js'

const FBL = `fbl@${BOUNCE_DOMAIN}`
const bouncesOf = async (database: Database) =>
  (await listBounces(database.reader, 'w1', {}, { limit: 100, offset: 0 })).items
const suppressionOf = (database: Database, email: string) => findSuppression(database.reader, 'w1', email)

t.test(
  'a mailbox that does not exist: the message is bounced, told, recorded and the address suppressed',
  async t => {
    const { database, take, events, message } = await openInboundTest(t)
    const ann = await sentMessage(database, 1, 'Ann@gmail.com')
    const mail = await take(ann.returnPath, dsn({ recipient: 'ann@gmail.com' }))
    t.match(mail, {
      result: 'bounce',
      findings: [{ messageId: ann.id, detail: /^5\.1\.1 no_such_mailbox: / }],
    })
    t.ok(mail.processedAt)
    t.match(await message(ann.id), { status: 'bounced', bounceType: 'permanent', bouncedAt: NOW })
    t.match(await events(), [
      {
        kind: 'email.bounced',
        workspaceId: 'w1',
        messageId: ann.id,
        payload: {
          to: 'Ann@gmail.com',
          bounceType: 'permanent',
          cause: 'recipient',
          subtype: 'no_such_mailbox',
          smtpStatus: '5.1.1',
        },
      },
    ])
    t.match(await bouncesOf(database), [
      {
        messageId: ann.id,
        email: 'ann@gmail.com',
        type: 'permanent',
        smtpStatus: '5.1.1',
        ispName: 'Gmail',
        remoteMta: 'mx.example.com',
        contactId: null,
        campaignId: null,
      },
    ])
    t.match(await suppressionOf(database, 'ann@gmail.com'), {
      reason: 'hard_bounce',
      scope: 'all',
      sourceMessageId: ann.id,
    })
  },
)

t.test('it is the same event, record and suppression as after a refusal on the spot', async t => {
  const { database, take, events, dispatcher, settled } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const bob = await sentMessage(database, 2, 'bob@x.example')
  await take(ann.returnPath, dsn({ recipient: 'ann@x.example' }))
  await database.write(tx =>
    recordOutcomes(tx, [
      {
        job: {
          messageId: bob.id,
          workspaceId: 'w1',
          envelopeSender: bob.returnPath,
          recipient: bob.to,
          attempt: 1,
          acceptedAt: NOW,
          content: { kind: 'composed', from: { address: 'shop@example.com' }, subject: 'Your order' },
          signingKeys: [],
          origin: { senderDomain: 'example.com' },
        },
        startedAt: NOW,
        finishedAt: NOW,
        outcome: bounced,
        retryAt: NOW,
      },
    ]),
  )
  dispatcher.wake()
  await settled()
  const [returned, refused] = await events()
  t.same(Object.keys(returned!.payload).sort(), Object.keys(refused!.payload).sort())
  t.match(
    (await bouncesOf(database)).map(({ email, cause, type }) => ({ email, cause, type })).sort(byEmail),
    [
      { email: 'ann@x.example', cause: 'recipient', type: 'permanent' },
      { email: 'bob@x.example', cause: 'recipient', type: 'permanent' },
    ],
  )
  t.match(await suppressionOf(database, 'bob@x.example'), { reason: 'hard_bounce' })
})

const byEmail = (one: { email: string }, other: { email: string }) => one.email.localeCompare(other.email)

t.test('a second bounce of the same message changes nothing any more', async t => {
  const { database, take, receive, settled, mailOf, events } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  // Both in one batch, and one later.
  const first = await receive(ann.returnPath, dsn({ recipient: ann.to }))
  const second = await receive(ann.returnPath, dsn({ recipient: ann.to, status: '5.2.1' }))
  await settled()
  t.equal((await mailOf(first)).result, 'bounce')
  t.equal((await mailOf(second)).result, 'bounce_known')
  t.equal((await take(ann.returnPath, dsn({ recipient: ann.to }))).result, 'bounce_known')
  t.equal((await events()).length, 1)
  t.equal((await bouncesOf(database)).length, 1)
})

t.test('a bounce that is not the recipient is recorded, and nobody suppressed', async t => {
  const { database, take, message } = await openInboundTest(t)
  const refusals = [
    ['5.7.1', '550 5.7.1 Service unavailable; client host [192.0.2.1] blocked using zen.spamhaus.org'],
    ['5.7.1', '554 5.7.1 Message rejected as spam by content filtering'],
    ['5.2.2', '552 5.2.2 Mailbox full'],
    ['4.4.7', '451 4.4.1 Connection timed out'],
  ] as const
  for (const [index, [status, diagnostic]] of refusals.entries()) {
    const sent = await sentMessage(database, index + 1, `p${index}@x.example`)
    t.equal((await take(sent.returnPath, dsn({ recipient: sent.to, status, diagnostic }))).result, 'bounce')
    t.equal((await message(sent.id)).status, 'bounced')
    t.equal(await suppressionOf(database, sent.to), undefined, diagnostic)
  }
  t.equal((await bouncesOf(database)).length, 4)
})

t.test('a bounce of a mail that was delivered replaces that status', async t => {
  const { database, take, message } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  await database.write(async tx => {
    await tx.db.updateTable('messages').set({ status: 'delivered', delivered_at: NOW }).execute()
    await tx.db.deleteFrom('queue').execute()
  })
  await take(ann.returnPath, dsn({ recipient: ann.to }))
  t.match(await message(ann.id), { status: 'bounced', deliveredAt: NOW, bouncedAt: NOW })
})

t.test('delays, successes and automatic replies change nothing', async t => {
  const { database, take, message, events } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const vacation = crlf(`
From: ann@x.example
Subject: Out of office
Auto-Submitted: auto-replied

I am away until Monday.
`)
  const results = [
    await take(
      ann.returnPath,
      dsn({ recipient: ann.to, action: 'delayed', status: '4.4.1', diagnostic: '451 later' }),
    ),
    await take(
      ann.returnPath,
      dsn({ recipient: ann.to, action: 'delivered', status: '2.0.0', diagnostic: '250 ok' }),
    ),
    await take(ann.returnPath, vacation),
  ].map(({ result }) => result)
  t.same(results, ['delay', 'success', 'auto_reply'])
  t.equal((await message(ann.id)).status, 'sent')
  t.same(await events(), [])
})

t.test('a recipient that mail was forwarded to fails for the one it was sent to', async t => {
  const { database, take } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  await take(ann.returnPath, dsn({ recipient: 'ann.private@y.example' }))
  t.match(await bouncesOf(database), [{ email: 'ann@x.example' }])
  t.equal(await suppressionOf(database, 'ann.private@y.example'), undefined)
})

t.test('without a signed address the message is found by a token that the mail holds', async t => {
  const { database, take, message } = await openInboundTest(t)
  const byField = await sentMessage(database, 1, 'ann@x.example')
  const byEnvelopeId = await sentMessage(database, 2, 'bob@x.example')
  const byReturnPath = await sentMessage(database, 3, 'eve@x.example')
  const mails = [
    dsn({ recipient: 'other@x.example', original: `X-Postroad-ID: ${byField.token}\nSubject: x` }),
    dsn({ recipient: 'other@x.example', envelopeId: byEnvelopeId.token }),
    dsn({ recipient: 'other@x.example', original: `Return-Path: <${byReturnPath.returnPath}>` }),
  ]
  for (const mail of mails)
    t.match(await take(FBL, mail), { result: 'bounce', findings: [{ isConfirmed: true }] })
  for (const { id } of [byField, byEnvelopeId, byReturnPath]) t.equal((await message(id)).status, 'bounced')
})

t.test('a bounce that has only Message-ID and recipient is unconfirmed, and changes nothing', async t => {
  const { database, take, message, events } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const mail = await take(
    FBL,
    dsn({ recipient: 'ANN@x.example', original: `Message-ID: <${ann.id}@${HOSTNAME}>\nTo: ann@x.example` }),
  )
  t.match(mail, {
    result: 'unconfirmed',
    findings: [{ messageId: ann.id, isConfirmed: false, detail: /^bounce without a token.*5\.1\.1/ }],
  })
  t.match(await message(ann.id), { status: 'sent', bouncedAt: null })
  t.same(await events(), [])
  t.same(await bouncesOf(database), [])
  t.equal(await suppressionOf(database, ann.to), undefined)
  // The real one, later, has its effect.
  t.equal((await take(ann.returnPath, dsn({ recipient: ann.to }))).result, 'bounce')
})

t.test('the address that it came to counts more than what the mail says', async t => {
  const { database, take, message } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const bob = await sentMessage(database, 2, 'bob@x.example')
  await take(ann.returnPath, dsn({ recipient: bob.to, original: `X-Postroad-ID: ${bob.token}` }))
  t.equal((await message(ann.id)).status, 'bounced')
  t.equal((await message(bob.id)).status, 'sent')
})

t.test('forged and unknown references change nothing, and are counted', async t => {
  const { database, take, message, events, processor, log } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const bob = await sentMessage(database, 2, 'bob@x.example')
  const forged = signedFor(ann.id, ann.to, { version: 1, secret: Buffer.alloc(32, 9) })
  const messageId = `Message-ID: <${ann.id}@${HOSTNAME}>`
  const results = [
    await take(FBL, dsn({ recipient: ann.to, original: `X-Postroad-ID: ${forged.token}` })),
    // A forged token is not made good by a Message-ID, which anybody can read.
    await take(FBL, dsn({ recipient: ann.to, original: `X-Postroad-ID: ${forged.token}\n${messageId}` })),
    await take(FBL, dsn({ recipient: ann.to, envelopeId: forged.token })),
    await take(FBL, dsn({ recipient: bob.to, original: messageId })),
    await take(FBL, dsn({ recipient: ann.to, original: `Message-ID: <${ann.id}@elsewhere.example>` })),
    await take(FBL, dsn({ recipient: ann.to })),
  ].map(({ result }) => result)
  t.same(results, ['forged', 'forged', 'forged', 'unmatched', 'unmatched', 'unmatched'])
  t.equal((await message(ann.id)).status, 'sent')
  t.same(await events(), [])
  t.equal(processor.counters.forged, 3)
  t.equal(processor.counters.results.get('unmatched'), 3)
  t.ok(log.lines.some(({ event }) => event === 'forged inbound mail ignored'))
})

t.test('one mail to several signed addresses is about each of their messages', async t => {
  const { database, take, message } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const bob = await sentMessage(database, 2, 'bob@x.example')
  const mail = await take(
    [ann.returnPath, bob.returnPath, ann.returnPath],
    dsn({ recipient: 'all@x.example' }),
  )
  t.same(
    mail.findings.map(({ messageId, result }) => [messageId, result]),
    [
      [ann.id, 'bounce'],
      [bob.id, 'bounce'],
    ],
  )
  for (const { id } of [ann, bob]) t.equal((await message(id)).status, 'bounced')
})

t.test('mail that was stored before a crash is processed at the next start, once', async t => {
  const before = await openInboundTest(t)
  const ann = await sentMessage(before.database, 1, 'ann@x.example')
  await before.stop()
  const reply = await before.receive(ann.returnPath, dsn({ recipient: ann.to }))
  t.equal((await before.mailOf(reply)).processedAt, null)

  const after = await openInboundTest(t, { database: before.database })
  after.processor.start()
  await after.settled()
  t.equal((await after.mailOf(reply)).result, 'bounce')
  t.equal((await after.message(ann.id)).status, 'bounced')
  await after.stop()

  const again = await openInboundTest(t, { database: before.database })
  again.processor.start()
  await again.settled()
  t.equal((await again.events()).length, 1)
})

t.test('a transaction that fails leaves neither half of it', async t => {
  const { database, receive, mailOf, message, events, log, clock, settled } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  // The last statement of the batch fails: the events cannot be written.
  await database.write(async ({ db }) => {
    await db.schema.alterTable('events').renameTo('events_away').execute()
  })
  const reply = await receive(ann.returnPath, dsn({ recipient: ann.to }))
  await until('it was tried', () =>
    log.lines.some(({ event }) => event === 'inbound processing failed, retrying'),
  )
  t.equal((await message(ann.id)).status, 'sent')
  t.equal((await mailOf(reply)).processedAt, null)
  await database.write(async ({ db }) => {
    await db.schema.alterTable('events_away').renameTo('events').execute()
  })
  await clock.advance(5_000)
  await settled()
  t.equal((await mailOf(reply)).result, 'bounce')
  t.equal((await events()).length, 1)
})
