/** The consumer that reports to submitters, over a database of its own: what it writes, once, and what it leaves alone. */
import t from 'tap'
import type { Database } from '../../../src/db/database.js'
import type { Event } from '../../../src/events/event.js'
import type { StoredEvent } from '../../../src/events/store.js'
import { deliveryNotifications } from '../../../src/msa/submission/delivery-notifications.js'
import { findContents, insertContent, type RelayedMessage } from '../../../src/messages/content-store.js'
import { insertMessages, type NewMessage } from '../../../src/messages/message-store.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { eachDatabase } from '../../support/db/database.js'
import { addWorkspace, CONTENT, NOW } from '../../support/mailroom.js'

const MAIL = Buffer.from('From: app@example.com\r\nSubject: Hello\r\n\r\nHello.\r\n')

function openReports(database: Database) {
  const log = new FakeLog()
  const woken: string[] = []
  let ids = 0
  const consumer = deliveryNotifications({
    clock: new FakeClock(),
    log,
    hostname: 'mail.example.net',
    newId: () => `new-${++ids}`,
    expireMs: 86_400_000,
    onEnqueued: lane => void woken.push(lane),
  })
  const react = (...events: readonly Event[]) =>
    database.write(tx =>
      consumer.react(
        tx,
        events.map((event, index): StoredEvent => ({ ...event, seq: index + 1 })),
      ),
    )
  const relayed = async (
    id: string,
    mail: Partial<RelayedMessage> = {},
    wishes: Partial<NewMessage> = {},
  ) => {
    const { html: _html, text: _text, ...head } = CONTENT
    const content = {
      ...head,
      id: `content-of-${id}`,
      relayed: { firstPart: MAIL, size: MAIL.length, submitter: 'app@example.com', ...mail },
    }
    await database.write(async tx => {
      await insertContent(tx.db, content)
      await insertMessages(tx.db, content, false, [
        { id, recipient: `${id}@x.example`, status: 'sent', reason: null, ...wishes },
      ])
    })
  }
  /** Recipients and contents of the reports in the queue. */
  const queued = async () => {
    const entries = await database.reader.selectFrom('queue').selectAll().orderBy('content_id').execute()
    const contents = await findContents(
      database.reader,
      entries.map(entry => entry.content_id),
    )
    return contents.map(content => ({
      id: content.id,
      to: entries.find(entry => entry.content_id === content.id)?.recipient,
      submitter: content.relayed?.submitter,
      text: content.relayed?.firstPart.toString() ?? '',
    }))
  }
  return { log, woken, react, relayed, queued }
}

function bounced(id: string, diagnosticCode = 'smtp; 550 5.1.1 nobody here'): Event {
  return {
    kind: 'email.bounced',
    workspaceId: 'w1',
    messageId: id,
    isSandbox: false,
    occurredAt: NOW,
    payload: {
      to: `${id}@x.example`,
      bounceType: 'permanent',
      cause: 'recipient',
      scope: 'address',
      subtype: 'unknown',
      smtpStatus: '5.1.1',
      diagnosticCode,
    },
  }
}

eachDatabase(t, 'a bounce is reported once, however often it arrives', async (t, database) => {
  await addWorkspace(database)
  const { react, relayed, queued, woken } = openReports(database)
  await relayed('m1')
  await relayed('m2', { ret: 'HDRS', envid: 'order 17' }, { originalRecipient: 'rfc822;old@x.example' })
  await react(bounced('m1'), bounced('m2'), bounced('m1'))
  await react(bounced('m2'))
  const reports = await queued()
  t.match(reports, [
    { id: 'm1-failed', to: 'app@example.com', submitter: undefined, text: /\r\n\r\nHello\.\r\n/ },
    { id: 'm2-failed', to: 'app@example.com', submitter: undefined, text: /rfc822-headers/ },
  ])
  t.equal(reports.length, 2)
  t.match(reports[1]?.text, /Original-Envelope-Id: order 17\r\n/)
  t.equal(woken.length, 2)
})

eachDatabase(t, 'what cannot be reported holds up no other', async (t, database) => {
  await addWorkspace(database)
  const { react, relayed, queued, log } = openReports(database)
  await relayed('m1', { submitter: 'root@web1' })
  await relayed('m2', { firstPart: Buffer.from('\r\n\0\xff', 'latin1'), size: 4 })
  await relayed('m3')
  await react(bounced('m1'), bounced('gone'), bounced('m2', ''), bounced('m3', 'no host answers'))
  const reports = await queued()
  t.same(
    reports.map(({ id }) => id),
    ['m2-failed', 'm3-failed'],
  )
  t.match(reports[1]?.text, /Diagnostic-Code: x-postroad; no host answers\r\n/)
  t.match(log.lines, [{ level: 'warn', event: 'delivery notification failed', fields: { messageId: 'm1' } }])
})

eachDatabase(t, 'a report is about nothing but relayed mail with a sender', async (t, database) => {
  await addWorkspace(database)
  const { react, relayed, queued } = openReports(database)
  await relayed('m1', { submitter: '' })
  const { submitter: _none, ...own } = { firstPart: MAIL, size: MAIL.length, submitter: '' }
  await database.write(async tx => {
    await insertContent(tx.db, { ...CONTENT, id: 'report', relayed: own })
    await insertContent(tx.db, { ...CONTENT, id: 'composed' })
    for (const id of ['report', 'composed'])
      await insertMessages(tx.db, { ...CONTENT, id }, false, [
        { id: `of-${id}`, recipient: 'a@x.example', status: 'sent', reason: null },
      ])
  })
  await relayed('m2')
  await react(bounced('m1'), bounced('of-report'), bounced('of-composed'), {
    ...bounced('m2'),
    isSandbox: true,
  })
  t.same(await queued(), [])
})
