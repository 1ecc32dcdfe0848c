/** Mail that is marketing, by campaign or because its workspace says so: who unsubscribed does not get it. */
import t from 'tap'
import type { Database } from '../../../src/db/database.js'
import { insertSuppression } from '../../../src/deliverability/suppressions/suppression-store.js'
import { readEventsAfter } from '../../../src/events/store.js'
import { SlidingWindow } from '../../../src/http/sliding-window.js'
import { submitAll } from '../../../src/msa/submit.js'
import { JobLoader } from '../../../src/queue/claiming/job-loader.js'
import { findEntries } from '../../../src/queue/queue-store.js'
import { findUnwanted } from '../../../src/queue/claiming/claim.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { eachDatabase } from '../../support/db/database.js'
import { addWorkspace, CONTENT, DAY_MS, NOW } from '../../support/mailroom.js'

const good = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

// proves: decisions: Email > Suppression scope all stops every
t.test('a workspace may mark its mail as marketing: who unsubscribed does not get it', async t => {
  const postroad = await openTestAppliance(t)
  const { key, workspaceId } = postroad
  await postroad.post('/api/v1/suppressions', { email: 'ann@one.test', reason: 'unsubscribe' }, { key })
  const send = (fields: object) => postroad.send(key, { ...good, to: 'ann@one.test', ...fields })
  t.match(await send({}), { body: { data: { sent: 1 } } }, 'transactional mail she still gets')
  t.match(await postroad.json('workspace', 'set', workspaceId, 'marketing=true'), { marketing: true })
  t.match(await send({}), { body: { data: { sent: 0, results: [{ reason: 'suppressed' }] } } })
  const messages = [
    { ...good, to: 'ann@one.test' },
    { ...good, to: 'bob@one.test' },
  ]
  t.match(await postroad.post('/api/v1/email/batch', { messages }, { key }), {
    body: { data: { sent: 1, skipped: 1 } },
  })
  const late = await send({ to: 'carl@one.test', send_at: '2026-01-05T10:05:00Z' })
  await postroad.post('/api/v1/suppressions', { email: 'carl@one.test', reason: 'unsubscribe' }, { key })
  await postroad.clock.advance(300_000)
  await postroad.messageOnce(key, String(late.body.data.message_id), 'suppressed')
  const told = postroad.sql<{ payload: string }>(
    "select payload from events where kind like 'email.%' and payload like '%carl@one.test%' order by seq",
  )
  t.same(
    told.map(({ payload }) => JSON.parse(payload) as unknown),
    [
      { to: 'carl@one.test', isMarketing: true, senderDomain: 'mail.postroad.test' },
      { to: 'carl@one.test', isMarketing: true, senderDomain: 'mail.postroad.test' },
    ],
  )
})

const unsubscribe = (database: Database, email: string) =>
  database.write(({ db }) =>
    insertSuppression(db, {
      workspaceId: 'w1',
      email,
      reason: 'unsubscribe',
      scope: 'marketing',
      sourceMessageId: null,
      createdAt: NOW,
    }),
  )

eachDatabase(
  t,
  'a campaign never mails who unsubscribed, before or after it was queued',
  async (t, database) => {
    const campaign = { campaignId: 'spring', templateId: 't1' }
    await unsubscribe(database, 'ann@x.example')
    const asked = ['ann@x.example', 'bob@x.example', 'carl@x.example']
    const enqueued: string[] = []
    let made = 0
    const parts = {
      newId: () => `m${(made += 1)}`,
      emailWindows: new SlidingWindow(new FakeClock()),
      expireMs: DAY_MS,
      onEnqueued: (lane: string) => void enqueued.push(lane),
    }
    const workspace = await addWorkspace(database)
    const submissions = [{ content: { ...CONTENT, ...campaign }, to: asked }]
    const [recipients = []] = await database.write(tx =>
      submitAll(tx, parts, { workspace, isSandbox: false, submissions }, NOW),
    )
    t.same(
      recipients.map(({ skip }) => skip),
      ['suppressed', null, null],
    )
    t.same(enqueued, ['x.example 1 w1 spring'], 'in its own lane, behind transactional mail')
    await unsubscribe(database, 'bob@x.example')
    const jobs = new JobLoader({
      reader: database.reader,
      clock: new FakeClock(),
      returnPath: id => `r+${id}@bounce.example`,
      readSigningKeys: async () => new Map(),
    })
    const ids = recipients.map(({ messageId }) => messageId)
    const loaded = await jobs.load(await findEntries(database.reader, ids))
    t.match(loaded.jobs[0]?.origin, { isMarketing: true, ...campaign })
    const dropped = await findUnwanted(database.reader, loaded.jobs)
    t.same(
      [...dropped].map(([{ recipient }, reason]) => [recipient, reason]),
      [['bob@x.example', 'suppressed']],
    )
    const events = await readEventsAfter(database.reader, 0, ['email.accepted', 'email.suppressed'], 10)
    t.equal(events.length, 3)
    for (const { payload } of events) t.match(payload, { isMarketing: true, ...campaign })
  },
)
