/** A scheduled send to several recipients: one id, one status, and the result of each. */
import t from 'tap'
import type { Database } from '../../src/db/database.js'
import { findGroup, groupStatus, groupWithTrace } from '../../src/msa/log/message-view.js'
import { insertAttempts } from '../../src/messages/attempt-store.js'
import { recordTransitions, type Transition } from '../../src/messages/message-history.js'
import { applyTransition } from '../../src/messages/message-status-store.js'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { eachDatabase } from '../support/db/database.js'
import { enqueue, NOW } from '../support/mailroom.js'

const good = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
/** The clock begins at ten. */
const AT = '2026-01-05T10:05:00.000Z'
const MINUTES = 60_000

const schedule = (postroad: TestAppliance, to: string | string[]) =>
  postroad.send(postroad.key, { ...good, to, send_at: AT })

const statusOf = async (postroad: TestAppliance, id: string) =>
  (await postroad.get(`/api/v1/email/${id}/status`, { key: postroad.key })).body.data

const cancel = (postroad: TestAppliance, id: string) =>
  postroad.delete(`/api/v1/email/${id}`, { key: postroad.key })

// proves: decisions: Email > Scheduled send one message_id stands | Scheduled group its status is
t.test('recipients stand in the order of the request, skipped ones with their reason', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('suppress', 'add', 'gone@one.test', '--workspace', postroad.workspaceId)
  const mailed = Array.from({ length: 20 }, (_, n) => `p${19 - n}@one.test`)
  const to = ['gone@one.test', ...mailed, 'p3@one.test', 'nobody']
  const { status, body } = await schedule(postroad, to)
  t.equal(status, 202)
  const id = String(body.data.message_id)
  const found = await statusOf(postroad, id)
  t.equal(found.to, to.join(', '))
  t.equal(found.status, 'scheduled')
  t.equal(found.next_attempt_at, AT)
  t.same(
    found.recipients.map((one: { to: string; status: string; reason?: string }) => [
      one.to,
      one.status,
      one.reason,
    ]),
    [
      ['gone@one.test', 'suppressed', 'suppressed'],
      ...mailed.map(one => [one, 'scheduled', undefined]),
      ['p3@one.test', 'failed', 'duplicate'],
      ['nobody', 'failed', 'invalid'],
    ],
  )
  t.match(await postroad.get(`/api/v1/email/${id}`, { key: postroad.key }), {
    status: 200,
    body: {
      data: { message_id: id, status: 'scheduled', subject: 'Hello', trace: [] },
    },
  })
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'Other')
  const created = ['key', 'create', '--workspace', other.id, '--name', 'k'] as const
  const { key } = await postroad.json<{ key: string }>(...created)
  t.match(await postroad.get(`/api/v1/email/${id}`, { key }), { status: 404 })
})

// proves: decisions: Email > Scheduled send one message_id stands | Scheduled group its status is
t.test('while any recipient waits the group is scheduled, and then what they got to', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await schedule(postroad, ['ann@one.test', 'bob@two.test', 'carl@two.test'])
  const id = String(body.data.message_id)
  const [ann, bob] = (await statusOf(postroad, id)).recipients
  t.match(await cancel(postroad, ann.message_id), { status: 200 })
  t.match(await statusOf(postroad, id), {
    status: 'scheduled',
    recipients: [{ status: 'cancelled' }, { status: 'scheduled' }, { status: 'scheduled' }],
  })
  await postroad.clock.advance(5 * MINUTES)
  await postroad.messageOnce(postroad.key, bob.message_id, 'delivered')
  await postroad.messageOnce(
    postroad.key,
    (await statusOf(postroad, id)).recipients[2].message_id,
    'delivered',
  )
  const { data } = (await postroad.get(`/api/v1/email/${id}`, { key: postroad.key })).body
  t.match(data, { status: 'delivered', sent_at: AT, delivered_at: AT, attempts: 2, next_attempt_at: null })
  t.same(
    data.trace.map((one: { message_id: string }) => one.message_id).sort(),
    data.recipients
      .slice(1)
      .map((one: { message_id: string }) => one.message_id)
      .sort(),
  )
})

// proves: Email > 9
t.test('a scheduled send with nobody left to mail is answered as an immediate one', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('suppress', 'add', 'gone@one.test', '--workspace', postroad.workspaceId)
  const several = await schedule(postroad, ['gone@one.test', 'nobody'])
  t.match(several, {
    status: 200,
    body: {
      data: {
        sent: 0,
        skipped: 2,
        total: 2,
        results: [
          { to: 'gone@one.test', success: false, reason: 'suppressed' },
          { to: 'nobody', success: false, reason: 'invalid' },
        ],
      },
    },
  })
  t.notOk('scheduled' in several.body.data)
  const one = await schedule(postroad, 'gone@one.test')
  t.match(one, { status: 200, body: { data: { sent: 0, skipped: 1 } } })
  t.match(await statusOf(postroad, one.body.data.results[0].message_id), {
    status: 'suppressed',
    sent_at: null,
  })
})

// proves: decisions: Email > Suppression scope all stops every
t.test('who is suppressed while the mail waits was never sent it', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await schedule(postroad, 'late@one.test')
  const id = String(body.data.message_id)
  await postroad.json('suppress', 'add', 'late@one.test', '--workspace', postroad.workspaceId)
  await postroad.clock.advance(5 * MINUTES)
  const found = await postroad.messageOnce(postroad.key, id, 'suppressed')
  t.match(found, { status: 'suppressed', sent_at: null, reason: 'suppressed' })
})

// proves: States and transitions > Scheduled email DELETE /email/:messageId before delivery
// proves: Email > DELETE /email/:messageId
t.test('what is called back is given back to the limits of its hour and day', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=3', 'daily_limit=4')
  const { body } = await schedule(postroad, ['ann@one.test', 'bob@one.test'])
  const id = String(body.data.message_id)
  const send = (to: string[]) => postroad.send(postroad.key, { ...good, to })
  t.match(await send(['a@one.test', 'b@one.test']), { status: 403 })
  const [ann] = (await statusOf(postroad, id)).recipients
  await cancel(postroad, ann.message_id)
  t.match(await send(['a@one.test', 'b@one.test']), { status: 200 })
  t.match(await send(['c@one.test']), { status: 403 }, 'no more than was taken')
  await cancel(postroad, id)
  t.match(await send(['c@one.test']), { status: 200 })
})

// proves: States and transitions > Scheduled email DELETE /email/:messageId before delivery
// proves: Email > DELETE /email/:messageId
t.test('what was counted in an hour that is over is not given to this one', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=2', 'daily_limit=0')
  const late = { ...good, send_at: '2026-01-05T13:00:00Z', to: ['ann@one.test', 'bob@one.test'] }
  const { body } = await postroad.send(postroad.key, late)
  await postroad.clock.advance(60 * MINUTES)
  t.match(await postroad.send(postroad.key, { ...good, to: ['a@one.test', 'b@one.test'] }), { status: 200 })
  t.match(await cancel(postroad, String(body.data.message_id)), { status: 200 })
  t.match(await postroad.send(postroad.key, { ...good, to: 'c@one.test' }), { status: 403 })
})

const bounce = {
  bounceType: 'permanent',
  cause: 'recipient',
  scope: 'address',
  subtype: 'no_such_mailbox',
  smtpStatus: '5.1.1',
  diagnosticCode: 'smtp; 550 5.1.1 no such user',
} as const

const LATER = NOW + 5 * MINUTES

async function group(database: Database, transitions: readonly Transition[]) {
  const found = await findGroup(database.reader, 'w1', 'group')
  if (!found) throw new Error('no group')
  await database.write(tx => recordTransitions(tx, transitions))
  const again = await findGroup(database.reader, 'w1', 'group')
  return (await groupStatus(database.reader, again ?? found)).shown
}

eachDatabase(t, 'the lowest that any recipient got to is what the group got to', async (t, database) => {
  const ids = ['m1', 'm2', 'm3']
  await enqueue(
    database,
    ids.map(id => ({ id, to: `${id}@x.example`, dueAt: LATER })),
    { id: 'group', scheduledAt: LATER },
  )
  await database.write(({ db }) =>
    db.updateTable('messages').set({ status: 'scheduled', sent_at: null }).execute(),
  )
  t.match(await group(database, []), { status: 'scheduled', sent_at: null, attempts: 0 })
  await database.write(({ db }) => applyTransition(db, 'started', ['m1', 'm2'], LATER))
  t.match(await group(database, []), { status: 'scheduled' })
  await database.write(({ db }) => applyTransition(db, 'started', ['m3'], LATER + 1))
  t.match(await group(database, []), { status: 'sent', sent_at: '2026-01-05T10:05:00.000Z' })
  const [m1, m2, m3] = ids.map((messageId, n) => ({ messageId, at: LATER + 1_000 * (n + 1) })) as [
    { messageId: string; at: number },
    { messageId: string; at: number },
    { messageId: string; at: number },
  ]
  const [at1, at2] = [1, 2].map(n => new Date(LATER + 1_000 * n).toISOString())
  const facts = { remoteMta: 'mx.x.example' }
  t.match(await group(database, [{ ...m2, kind: 'delivered', facts }]), { status: 'sent', delivered_at: at2 })
  t.match(await group(database, [{ ...m1, kind: 'bounced', facts: bounce }]), {
    status: 'sent',
    bounced_at: at1,
    bounce_type: 'permanent',
  })
  t.match(await group(database, [{ ...m3, kind: 'delivered', facts }]), {
    status: 'bounced',
    delivered_at: at2,
  })
  await database.write(tx =>
    insertAttempts(
      tx.db,
      ids.map(messageId => ({
        messageId,
        number: 2,
        startedAt: LATER,
        finishedAt: LATER + 1,
        kind: 'delivered' as const,
        summary: `250 ${messageId}`,
        replyCode: 250,
        status: null,
        classification: null,
        tried: [],
      })),
    ),
  )
  const found = await findGroup(database.reader, 'w1', 'group')
  if (!found) throw new Error('no group')
  const { shown: whole } = await groupWithTrace(database.reader, found)
  t.match(whole, { attempts: 6, last_reply: '250 m3', subject: 'Your order' })
  t.same(
    whole.trace.map(one => one.message_id),
    ids,
  )
})

eachDatabase(t, 'a group is cancelled only when all of it is', async (t, database) => {
  await enqueue(
    database,
    ['m1', 'm2'].map(id => ({ id, to: `${id}@x.example` })),
    { id: 'group', scheduledAt: LATER },
  )
  await database.write(({ db }) => db.updateTable('messages').set({ status: 'scheduled' }).execute())
  const cancelled = (messageId: string) => ({ kind: 'cancelled', messageId, at: NOW }) as const
  t.match(await group(database, [cancelled('m1')]), { status: 'scheduled' })
  t.match(await group(database, [cancelled('m2')]), { status: 'cancelled', next_attempt_at: null })
})
