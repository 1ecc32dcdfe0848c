/** What becomes of a message after each kind of outcome: status, queue row, attempt log, events, on both databases. */
import t from 'tap'
import { APPLIANCE } from '../../src/core/owner.js'
import { listAttempts } from '../../src/messages/attempt-store.js'
import { findCapturedMail } from '../../src/messages/capture-store.js'
import { findContents } from '../../src/messages/content-store.js'
import { ALL_MAIL, readRecent, SPAN_NAMES, startOf } from '../../src/messages/recent-counter-store.js'
import { findAnyMessage } from '../../src/messages/message-store.js'
import { enqueueSystemMail } from '../../src/queue/enqueue-system-mail.js'
import { deleteEntries } from '../../src/queue/operator/queue-admin-store.js'
import { findEntries, claimEntries } from '../../src/queue/queue-store.js'
import { recordTransitions } from '../../src/messages/message-history.js'
import { recordOutcomes, type FinishedAttempt } from '../../src/queue/delivery/record-outcomes.js'
import type { Database } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import type { Outcome } from '../../src/mail/outcome.js'
import { eachDatabase } from '../support/db/database.js'
import { enqueue, NOW } from '../support/mailroom.js'
import { bounced, deferred, delivered, tried, unreachable, unsendable } from '../support/outcomes.js'

const RETRY_AT = NOW + 300_000

function finished(messageId: string, outcome: Outcome, more: Partial<FinishedAttempt> = {}): FinishedAttempt {
  return {
    job: {
      messageId,
      workspaceId: 'w1',
      envelopeSender: 'r1@bounce.example',
      recipient: `${messageId}@x.example`,
      attempt: 1,
      acceptedAt: NOW,
      content: { kind: 'composed', from: { address: 'shop@example.com' }, subject: 'Your order' },
      signingKeys: [],
    },
    startedAt: NOW + 1,
    finishedAt: NOW + 2,
    outcome,
    retryAt: RETRY_AT,
    ...more,
  }
}

/** Settles one message and tells what it is now. */
async function settled(
  database: Database,
  outcome: Outcome,
  more: Partial<FinishedAttempt> = {},
  expiresAt?: number,
) {
  await enqueue(database, [
    { id: 'm1', to: 'm1@x.example', ...(expiresAt === undefined ? {} : { expiresAt }) },
  ])
  await database.write(tx => recordOutcomes(tx, [finished('m1', outcome, more)]))
  return now(database, 'm1')
}

async function now(database: Database, id: string) {
  const kinds = ['email.sent', 'email.delivered', 'email.bounced', 'email.failed'] as const
  return {
    message: await findAnyMessage(database.reader, id),
    entry: (await findEntries(database.reader, [id]))[0],
    attempts: await listAttempts(database.reader, id),
    events: (await readEventsAfter(database.reader, 0, kinds, 100)).filter(event => event.messageId === id),
  }
}

const kindsOf = (events: readonly { kind: string }[]) => events.map(({ kind }) => kind)

eachDatabase(t, 'delivered: removed from the queue, with sent and delivered events', async (t, database) => {
  const { message, entry, attempts, events } = await settled(database, delivered)
  t.match(message, { status: 'delivered', deliveredAt: NOW + 2, bouncedAt: null })
  t.equal(entry, undefined)
  t.match(attempts, [
    {
      number: 1,
      startedAt: NOW + 1,
      finishedAt: NOW + 2,
      kind: 'delivered',
      replyCode: 250,
      status: '2.0.0',
      classification: null,
      tried: [{ host: 'mx.x.example', stage: 'final_dot' }],
    },
  ])
  t.match(events, [
    {
      kind: 'email.sent',
      workspaceId: 'w1',
      occurredAt: NOW + 2,
      isSandbox: false,
      payload: { to: 'm1@x.example' },
    },
    { kind: 'email.delivered', payload: { to: 'm1@x.example', remoteMta: 'mx.x.example' } },
  ])
})

eachDatabase(t, 'deferred: status stays sent, retried later, one sent event', async (t, database) => {
  const first = await settled(database, deferred)
  t.match(first.message, { status: 'sent', bouncedAt: null })
  t.match(first.entry, { nextAttemptAt: RETRY_AT, wasOffered: true })
  t.match(first.attempts, [
    { kind: 'deferred', replyCode: 451, status: '4.7.1', classification: { subtype: 'greylisted' } },
  ])
  t.same(kindsOf(first.events), ['email.sent'])
  await database.write(tx => recordOutcomes(tx, [finished('m1', deferred)]))
  await database.write(tx => recordOutcomes(tx, [finished('m1', delivered)]))
  const last = await now(database, 'm1')
  t.same(kindsOf(last.events), ['email.sent', 'email.delivered'])
  t.equal(last.attempts.length, 3)
})

eachDatabase(t, 'each deferral is counted by minute, hour and day, and for all mail', async (t, database) => {
  await settled(database, deferred)
  await database.write(tx => recordOutcomes(tx, [finished('m1', deferred)]))
  await database.write(tx => recordOutcomes(tx, [finished('m1', delivered)]))
  for (const workspaceId of ['w1', ALL_MAIL])
    for (const span of SPAN_NAMES)
      t.same(await readRecent(database.reader, workspaceId, span, 0), [
        { startsAt: startOf(span, NOW + 2), name: 'deferred', count: 2 },
      ])
})

eachDatabase(t, 'deferred before MAIL: no sent event', async (t, database) => {
  const { entry, events, attempts } = await settled(database, unreachable)
  t.match(entry, { nextAttemptAt: RETRY_AT, wasOffered: false })
  t.same(events, [])
  t.match(attempts, [{ replyCode: null, status: null, tried: [{ error: 'connection refused' }] }])
})

eachDatabase(
  t,
  'bounced: removed from the queue, with cause and diagnostic in the event',
  async (t, database) => {
    const { message, entry, attempts, events } = await settled(database, bounced)
    t.match(message, { status: 'bounced', bouncedAt: NOW + 2, bounceType: 'permanent' })
    t.equal(entry, undefined)
    t.match(attempts, [
      { kind: 'bounced', status: '5.1.1', classification: { cause: 'recipient', scope: 'address' } },
    ])
    t.same(kindsOf(events), ['email.sent', 'email.bounced'])
    t.same(events[1]?.payload, {
      to: 'm1@x.example',
      bounceType: 'permanent',
      cause: 'recipient',
      scope: 'address',
      subtype: 'no_such_mailbox',
      smtpStatus: '5.1.1',
      diagnosticCode: 'smtp; 550 5.1.1 no such user',
      remoteMta: 'mx.x.example',
    })
  },
)

eachDatabase(t, 'bounced without a server: no invented diagnostic code', async (t, database) => {
  const { reply: _, remoteMta: __, ...facts } = bounced
  const { events, attempts } = await settled(database, {
    ...facts,
    tried: [],
    status: '5.1.2',
    summary: 'the domain x.example does not exist',
  })
  t.same(kindsOf(events), ['email.bounced'], 'it was offered to nobody')
  t.match(events[0]?.payload, { smtpStatus: '5.1.2', diagnosticCode: 'the domain x.example does not exist' })
  t.notOk('remoteMta' in events[0]!.payload)
  t.match(attempts, [{ status: '5.1.2', replyCode: null }])
})

eachDatabase(t, 'unsendable: failed, not a bounce', async (t, database) => {
  const { message, entry, events } = await settled(database, unsendable)
  t.match(message, { status: 'failed', bouncedAt: null, bounceType: null })
  t.equal(entry, undefined)
  t.match(events, [{ kind: 'email.failed', payload: { reason: 'the subject holds a line break' } }])
})

eachDatabase(t, 'deferred past its expiry: bounced as transient with 4.4.7', async (t, database) => {
  const undetermined: Outcome = { ...deferred, permanence: 'undetermined' }
  const { message, entry, events } = await settled(database, undetermined, { finishedAt: NOW + 10 }, NOW + 10)
  t.match(message, { status: 'bounced', bounceType: 'transient' })
  t.equal(entry, undefined)
  t.match(events.at(-1), {
    kind: 'email.bounced',
    payload: {
      bounceType: 'transient',
      cause: 'transient',
      smtpStatus: '4.4.7',
      diagnosticCode: 'smtp; 451 4.7.1 come back later',
    },
  })
})

eachDatabase(t, 'the last attempt is made at the expiry', async (t, database) => {
  const { entry, message } = await settled(database, deferred, {}, RETRY_AT - 100)
  t.equal(entry?.nextAttemptAt, RETRY_AT - 100)
  t.equal(message?.status, 'sent')
})

eachDatabase(t, 'an outcome of a deleted message changes nothing and is logged', async (t, database) => {
  await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
  await database.write(tx => deleteEntries(tx, {}, NOW, false))
  for (const outcome of [delivered, deferred])
    await database.write(tx => recordOutcomes(tx, [finished('m1', outcome), finished('unknown', outcome)]))
  const { message, entry, events, attempts } = await now(database, 'm1')
  t.match(message, { status: 'failed', deliveredAt: null })
  t.equal(attempts.length, 2)
  t.equal(entry, undefined)
  t.same(kindsOf(events), ['email.failed'])
})

eachDatabase(t, 'a batch of all kinds is recorded like single outcomes', async (t, database) => {
  const outcomes = {
    a: delivered,
    b: deferred,
    c: bounced,
    d: unsendable,
    e: unreachable,
    f: { ...bounced, permanence: 'undetermined' },
  } as const
  const ids = Object.keys(outcomes)
  await enqueue(
    database,
    ids.map(id => ({ id, to: `${id}@x.example` })),
  )
  await database.write(tx =>
    recordOutcomes(
      tx,
      Object.entries(outcomes).map(([id, outcome]) => finished(id, outcome)),
    ),
  )
  const all = await Promise.all(ids.map(id => now(database, id)))
  t.same(
    all.map(({ message, entry }) => [message?.status, message?.bounceType, entry !== undefined]),
    [
      ['delivered', null, false],
      ['sent', null, true],
      ['bounced', 'permanent', false],
      ['failed', null, false],
      ['sent', null, true],
      ['bounced', 'undetermined', false],
    ],
  )
})

eachDatabase(t, 'an empty batch, and mail captured by the local inbox', async (t, database) => {
  await database.write(tx => recordOutcomes(tx, []))
  const captured = Buffer.from('Subject: Cheese for =?UTF-8?Q?J=C3=BCrgen?=\r\n\r\nThanks\r\n')
  const { message } = await settled(database, {
    ...delivered,
    remoteMta: 'capture',
    captured,
    tried: [tried('final_dot')],
  })
  t.equal(message?.status, 'delivered')
  const mail = await findCapturedMail(database.reader, 'm1')
  t.match(mail, {
    envelopeSender: 'r1@bounce.example',
    recipient: 'm1@x.example',
    subject: 'Cheese for Jürgen',
  })
  t.same(Buffer.from(mail!.raw), captured)
})

/** What claiming does before anything is dialled. */
const begin = (database: Database) =>
  database.write(async ({ db }) => {
    await claimEntries(db, ['m1'], RETRY_AT, 'run')
  })

const deleteAll = (database: Database) => database.write(tx => deleteEntries(tx, {}, NOW, true))

eachDatabase(t, 'a message deleted during its delivery ends with that delivery', async (t, database) => {
  const expected = [
    [delivered, 'delivered', ['email.sent', 'email.delivered']],
    [bounced, 'bounced', ['email.sent', 'email.bounced']],
    [deferred, 'failed', ['email.sent', 'email.failed']],
    [{ ...deferred, subtype: 'shutdown', tried: [] }, 'failed', ['email.failed']],
  ] as const
  for (const [outcome, status, kinds] of expected) {
    await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
    await begin(database)
    t.equal(await deleteAll(database), 1)
    const before = await now(database, 'm1')
    t.match(before, { message: { status: 'sent' }, events: [] }, 'no consumer is woken yet')
    t.equal(before.entry?.isWithdrawn, true)
    t.equal((await database.write(tx => recordOutcomes(tx, [finished('m1', outcome)]))).size, 0)
    const after = await now(database, 'm1')
    t.equal(after.message?.status, status)
    t.equal(after.entry, undefined)
    t.same(kindsOf(after.events), kinds)
    await database.write(async ({ db }) => {
      for (const table of ['attempts', 'messages', 'message_contents', 'events'] as const)
        await db.deleteFrom(table).execute()
    })
  }
})

eachDatabase(
  t,
  'a message deleted between attempts, or without a running server, is removed',
  async (t, database) => {
    await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
    await begin(database)
    await database.write(tx => recordOutcomes(tx, [finished('m1', deferred)]))
    t.equal(await deleteAll(database), 1)
    const between = await now(database, 'm1')
    t.match(between, { message: { status: 'failed' }, entry: undefined })
    t.same(kindsOf(between.events), ['email.sent', 'email.failed'])
    await enqueue(database, [{ id: 'm2', to: 'm2@x.example' }])
    await database.write(async ({ db }) => {
      await claimEntries(db, ['m2'], RETRY_AT, 'run')
    })
    await database.write(tx => deleteEntries(tx, {}, NOW, false))
    t.match(await now(database, 'm2'), { message: { status: 'failed' }, entry: undefined })
  },
)

const dsnFacts = {
  bounceType: 'permanent',
  cause: 'recipient',
  scope: 'address',
  subtype: 'no_such_mailbox',
  smtpStatus: '5.1.1',
  diagnosticCode: 'smtp; 550 5.1.1 no such user',
} as const

eachDatabase(
  t,
  'a returned bounce ends a message that is still retried, with one event',
  async (t, database) => {
    await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
    await database.write(tx => recordOutcomes(tx, [finished('m1', deferred)]))
    const comesBack = () =>
      database.write(tx =>
        recordTransitions(tx, [{ kind: 'bounced', messageId: 'm1', at: NOW + 5, facts: dsnFacts }]),
      )
    t.equal((await comesBack()).size, 1)
    t.match(await now(database, 'm1'), { message: { status: 'bounced' }, entry: undefined })
    // The attempt that was under way then.
    for (const outcome of [deferred, bounced])
      t.equal((await database.write(tx => recordOutcomes(tx, [finished('m1', outcome)]))).size, 0)
    t.equal((await comesBack()).size, 0)
    const { message, events, attempts } = await now(database, 'm1')
    t.match(message, { status: 'bounced', bouncedAt: NOW + 5 })
    t.same(kindsOf(events), ['email.sent', 'email.bounced'])
    t.equal(attempts.length, 3, 'the log has every attempt')
  },
)

eachDatabase(t, 'every event contains the origin of the mail', async (t, database) => {
  const origin = { isMarketing: true, campaignId: 'spring', templateId: 't1', batchId: 'b1' }
  const { isMarketing, campaignId, templateId, batchId } = origin
  await enqueue(
    database,
    ['m1', 'm2', 'm3', 'm4'].map(id => ({ id, to: `${id}@x.example` })),
    { isMarketing, campaignId, templateId, batch: { id: batchId, index: 0 } },
  )
  await database.write(({ db }) => db.updateTable('messages').set({ contact_id: 'ann' }).execute())
  const job = { ...finished('m1', delivered).job, origin }
  await database.write(tx =>
    recordOutcomes(
      tx,
      Object.entries({ m1: delivered, m2: bounced, m3: unsendable, m4: deferred }).map(([id, outcome]) =>
        finished(id, outcome, { job: { ...job, messageId: id } }),
      ),
    ),
  )
  // Where no job knows it, the content does.
  await database.write(tx =>
    recordTransitions(tx, [
      { kind: 'complained', messageId: 'm1', at: NOW, facts: { feedbackType: 'abuse' } },
      { kind: 'unsubscribed', messageId: 'm1', at: NOW, facts: { source: 'one_click' } },
    ]),
  )
  const kinds = ['email.sent', 'email.delivered', 'email.bounced', 'email.failed'] as const
  const more = ['email.complained', 'email.unsubscribed'] as const
  const events = await readEventsAfter(database.reader, 0, [...kinds, ...more], 100)
  t.same(
    kindsOf(events).sort(),
    [...kinds, ...more, 'email.sent', 'email.sent'].sort(),
    'a message that could not be built was never handed over',
  )
  for (const { kind, payload } of events) t.match(payload, { ...origin, contactId: 'ann' }, kind)
})

eachDatabase(
  t,
  "the appliance's own mail keeps its text until it ends, and not after",
  async (t, database) => {
    const parts = { newId: idsFrom('own'), expireMs: 86_400_000, onEnqueued: () => {} }
    const mail = { from: 'mailer-daemon@mx.example', to: 'ann@x.example', subject: 'Undelivered mail' }
    const message = Buffer.from('Subject: Undelivered mail\r\n\r\nThe whole original.\r\n')
    const rest = { message, signingDomainId: null, createdAt: NOW }
    const id = await database.write(tx => enqueueSystemMail(tx, parts, { ...mail, ...rest }))
    const job = { ...finished(id, delivered).job, workspaceId: APPLIANCE }
    const text = async () => {
      const stored = await findAnyMessage(database.reader, id)
      const [content] = await findContents(database.reader, [stored?.contentId ?? ''])
      return content?.relayed?.firstPart.toString()
    }
    await database.write(tx => recordOutcomes(tx, [finished(id, deferred, { job })]))
    t.match(await text(), 'The whole original.')
    await database.write(tx => recordOutcomes(tx, [finished(id, delivered, { job })]))
    t.equal(await text(), undefined)
    t.match(await findAnyMessage(database.reader, id), { status: 'delivered' })
  },
)

function idsFrom(prefix: string): () => string {
  let made = 0
  return () => `${prefix}${++made}`
}
