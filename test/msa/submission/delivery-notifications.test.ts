/** The consumer that reports to submitters, over a database of its own: what it writes, once, and what it leaves alone. */
import t from 'tap'
import type { Workspace } from '../../../src/accounts/workspace-store.js'
import { SYSTEM } from '../../../src/core/actor.js'
import type { Database } from '../../../src/db/database.js'
import { addDomain } from '../../../src/deliverability/domains/domains.js'
import type { Event } from '../../../src/events/event.js'
import type { StoredEvent } from '../../../src/events/store.js'
import { deliveryNotifications } from '../../../src/msa/submission/delivery-notifications.js'
import { findContents, insertContent, type RelayedMessage } from '../../../src/messages/content-store.js'
import { insertMessages, type NewMessage } from '../../../src/messages/message-store.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { SlidingWindow } from '../../../src/http/sliding-window.js'
import { domainOffice } from '../../support/domains.js'
import { eachDatabase } from '../../support/db/database.js'
import { addWorkspace, CONTENT, NOW } from '../../support/mailroom.js'

const MAIL = Buffer.from('From: app@example.com\r\nSubject: Hello\r\n\r\nHello.\r\n')

/** Over a workspace with a verified domain, example.com, and one that is not, pending.example. */
async function openReports(database: Database, settings: Partial<Workspace> = {}) {
  await addWorkspace(database, 'w1', settings)
  const { parts: domains } = domainOffice(database)
  await addDomain(domains, 'w1', 'example.com', SYSTEM, 'vouched')
  await addDomain(domains, 'w1', 'pending.example', SYSTEM)
  const log = new FakeLog()
  const clock = new FakeClock()
  const woken: string[] = []
  let ids = 0
  const consumer = deliveryNotifications({
    clock,
    emailWindows: new SlidingWindow(clock),
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
      dueAt: entries.find(entry => entry.content_id === content.id)?.next_attempt_at,
      workspaceId: content.workspaceId,
    }))
  }
  return { domains, log, woken, react, relayed, queued }
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
  const { react, relayed, queued, woken } = await openReports(database)
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
  const { react, relayed, queued, log } = await openReports(database)
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
  t.match(
    log.lines.filter(({ event }) => event.startsWith('delivery')),
    [{ event: 'delivery notification skipped', fields: { messageId: 'm1', reason: 'unverified_domain' } }],
  )
})

eachDatabase(t, 'a report is about nothing but relayed mail with a sender', async (t, database) => {
  const { react, relayed, queued } = await openReports(database)
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

function suppressed(id: string, occurredAt = NOW): Event {
  return {
    kind: 'email.suppressed',
    workspaceId: 'w1',
    messageId: id,
    isSandbox: false,
    occurredAt,
    payload: { to: `${id}@x.example` },
  }
}

eachDatabase(
  t,
  'only addresses at verified domains of the workspace get notifications',
  async (t, database) => {
    const { domains, react, relayed, queued, log } = await openReports(database)
    await addWorkspace(database, 'w2')
    await addDomain(domains, 'w2', 'other.example', SYSTEM, 'vouched')
    const strangers = ['ann@pending.example', 'ann@other.example', 'ann@gmail.example', 'ann@sub.example.com']
    for (const [index, submitter] of strangers.entries()) {
      await relayed(`m${index}`, { submitter }, { notify: 'FAILURE' })
      await react(bounced(`m${index}`), suppressed(`m${index}`))
    }
    t.same(await queued(), [])
    t.equal(log.lines.filter(({ event }) => event === 'delivery notification skipped').length, 8)
    await relayed('m9', { submitter: 'Ann@EXAMPLE.com' })
    await react(bounced('m9'))
    t.match(await queued(), [{ id: 'm9-failed', to: 'Ann@example.com', workspaceId: 'w1' }])
  },
)

eachDatabase(
  t,
  'suppressed recipients of a mail share one notification, of its header',
  async (t, database) => {
    const { react, relayed, queued } = await openReports(database)
    const many = Array.from({ length: 300 }, (_, n) => ({
      id: `r${String(n).padStart(3, '0')}`,
      recipient: `r${n}@x.example`,
      status: 'suppressed' as const,
      reason: 'suppressed' as const,
      ...(n === 0 ? { notify: 'NEVER' } : { notify: 'SUCCESS,FAILURE' }),
    }))
    await relayed('m1', { ret: 'FULL' })
    await database.write(tx => insertMessages(tx.db, { ...CONTENT, id: 'content-of-m1' }, false, many))
    for (let at = 0; at < many.length; at += 10)
      await react(...many.slice(at, at + 10).map(({ id }) => suppressed(id)))
    const reports = await queued()
    t.match(reports, [{ id: 'content-of-m1-suppressed', to: 'app@example.com' }])
    t.equal(reports.length, 1)
    const text = reports[0]?.text ?? ''
    t.match(text, /Final-Recipient: rfc822; r1@x\.example\r\nAction: failed\r\nStatus: 5\.7\.1/)
    t.notMatch(text, 'r0@x.example', 'who was not asked about is not named')
    t.equal(text.match(/Final-Recipient/g)?.length, 200)
    t.match(text, 'Content-Type: text/rfc822-headers')
    t.notMatch(text, 'Hello.\r\n')
    await react(suppressed('r001', NOW + 60_000))
    t.match(
      (await queued()).map(({ id }) => id),
      ['content-of-m1-suppressed', 'r001-failed'],
      'one suppressed later is reported when it happens',
    )
  },
)

eachDatabase(
  t,
  "notifications count, and wait where the workspace's limit is used up",
  async (t, database) => {
    const { react, relayed, queued } = await openReports(database, { hourlyLimit: 2, dailyLimit: 0 })
    for (const id of ['m1', 'm2', 'm3', 'm4', 'm5']) {
      await relayed(id)
      await react(bounced(id))
    }
    const hour = 3_600_000
    t.same(
      (await queued()).map(({ dueAt }) => dueAt),
      [NOW, NOW, NOW + hour, NOW + hour, NOW + 2 * hour],
    )
    const used = await database.reader
      .selectFrom('sending_usage')
      .select(['window_start', 'accepted'])
      .where('window_kind', '=', 'hour')
      .orderBy('window_start')
      .execute()
    t.same(
      used.map(({ accepted }) => accepted),
      [2, 2, 1],
    )
    for (let n = 0; n < 60; n += 1) await relayed(`n${n}`)
    for (let n = 0; n < 60; n += 1) await react(bounced(`n${n}`))
    t.equal((await queued()).length, 2 * 25, 'none waits longer than mail is retried')
  },
)
