/** Complaints and unsubscribe mail: who is not mailed any more, and of what. */
import t from 'tap'
import { findSuppression } from '../../src/deliverability/suppressions/suppression-store.js'
import type { Database } from '../../src/db/database.js'
import { arf, BOUNCE_DOMAIN, crlf, HOSTNAME, openInboundTest, sentMessage } from '../support/inbound.js'
import { NOW } from '../support/mailroom.js'

const FBL = `fbl@${BOUNCE_DOMAIN}`
const suppressionOf = (database: Database, email: string) => findSuppression(database.reader, 'w1', email)

t.test('a complaint is reported, recorded on the message, and stops all mail to its author', async t => {
  const { database, take, events, message } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const report = arf({ original: `X-Postroad-ID: ${ann.token}\nSubject: Your order` })
  t.match(await take(FBL, report), {
    result: 'complaint',
    findings: [{ messageId: ann.id, detail: 'abuse' }],
  })
  t.match(await message(ann.id), { status: 'sent', complainedAt: NOW })
  t.match(await events(), [
    {
      kind: 'email.complained',
      messageId: ann.id,
      payload: { to: 'ann@x.example', feedbackType: 'abuse' },
    },
  ])
  t.match(await suppressionOf(database, 'ann@x.example'), {
    reason: 'complaint',
    scope: 'all',
    sourceMessageId: ann.id,
  })
  t.equal((await take(FBL, report)).result, 'complaint_known')
  t.equal((await events()).length, 1)
})

t.test('fraud, virus and other are complaints as well', async t => {
  const { database, take } = await openInboundTest(t)
  for (const [index, type] of ['fraud', 'virus', 'other'].entries()) {
    const sent = await sentMessage(database, index + 1, `p${index}@x.example`)
    const mail = await take(FBL, arf({ type, original: `X-Postroad-ID: ${sent.token}` }))
    t.equal(mail.result, 'complaint', type)
    t.match(await suppressionOf(database, sent.to), { reason: 'complaint' })
  }
})

t.test('"not spam" and failures of authentication are nobody\'s complaint', async t => {
  const { database, take, events, message } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const original = `X-Postroad-ID: ${ann.token}`
  t.equal((await take(FBL, arf({ type: 'not-spam', original }))).result, 'not_spam')
  t.equal((await take(FBL, arf({ type: 'auth-failure', original }))).result, 'auth_failure')
  t.same(await events(), [])
  t.equal((await message(ann.id)).complainedAt, null)
  t.equal(await suppressionOf(database, ann.to), undefined)
})

t.test('an opt-out stops marketing and nothing else', async t => {
  const { database, take, events } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const report = arf({ type: 'opt-out', original: `X-Postroad-ID: ${ann.token}` })
  t.equal((await take(FBL, report)).result, 'unsubscribe')
  t.match(await events(), [{ kind: 'email.unsubscribed', payload: { to: ann.to, source: 'one_click' } }])
  t.match(await suppressionOf(database, ann.to), { reason: 'unsubscribe', scope: 'marketing' })
})

t.test('a report with its recipient redacted is matched by our field, by the Message-ID not', async t => {
  const { database, take } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const messageId = `Message-ID: <${ann.id}@${HOSTNAME}>`
  t.equal((await take(FBL, arf({ original: `To: redacted\n${messageId}` }))).result, 'unmatched')
  t.equal(
    (await take(FBL, arf({ original: `To: redacted\nX-Postroad-ID: ${ann.token}` }))).result,
    'complaint',
  )
})

t.test('a report that has only Message-ID and recipient is unconfirmed, of whatever type', async t => {
  const { database, take, events, message } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const original = `Message-ID: <${ann.id}@${HOSTNAME}>`
  for (const type of ['abuse', 'opt-out', 'not-spam'])
    t.match(await take(FBL, arf({ type, recipient: 'ann@x.example', original })), {
      result: 'unconfirmed',
      findings: [{ messageId: ann.id, isConfirmed: false, detail: /^complaint without/ }],
    })
  t.same(await events(), [])
  t.equal((await message(ann.id)).complainedAt, null)
  t.equal(await suppressionOf(database, ann.to), undefined)
})

t.test('a report that contains only the envelope sender is confirmed by it', async t => {
  const { database, take } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  const sender = `Original-Mail-From: <${ann.returnPath}>\r\n`
  const report = arf({ original: 'Subject: Your order' }).replace('User-Agent:', `${sender}User-Agent:`)
  t.equal((await take(FBL, report)).result, 'complaint')
})

t.test(
  'a mail to an unsubscribe address stops marketing, whatever its text, and is reported once',
  async t => {
    const { database, take, events, receive, settled } = await openInboundTest(t)
    const ann = await sentMessage(database, 1, 'Ann@x.example')
    t.match(await take(ann.unsubscribe, 'x\r\n', 'ann@x.example'), {
      result: 'unsubscribe',
      findings: [{ messageId: ann.id }],
    })
    t.match(await suppressionOf(database, 'ann@x.example'), {
      reason: 'unsubscribe',
      scope: 'marketing',
      sourceMessageId: ann.id,
    })
    t.equal((await take(ann.unsubscribe, 'x\r\n')).result, 'unsubscribe_known')
    t.equal((await events()).length, 1)

    const bob = await sentMessage(database, 2, 'bob@x.example')
    await receive(bob.unsubscribe, 'x\r\n')
    await receive(bob.unsubscribe, 'x\r\n')
    await settled()
    t.equal((await events()).length, 2, 'two at the same time are one wish')
  },
)

t.test('an unsubscribe mail works years later, even in capitals', async t => {
  const { clock, database, take } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  await clock.advance(20 * 365 * 86_400_000)
  t.equal(
    (await take(ann.unsubscribe.toUpperCase(), crlf('\nSubject: unsubscribe\n\n'))).result,
    'unsubscribe',
  )
})

t.test('who unsubscribed and then complains is not mailed at all any more', async t => {
  const { database, take } = await openInboundTest(t)
  const ann = await sentMessage(database, 1, 'ann@x.example')
  await take(ann.unsubscribe, 'x\r\n')
  await take(FBL, arf({ original: `X-Postroad-ID: ${ann.token}` }))
  t.match(await suppressionOf(database, ann.to), { reason: 'complaint', scope: 'all' })
})
