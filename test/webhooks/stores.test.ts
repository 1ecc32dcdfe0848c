/** What is kept of webhooks, on both databases: subscriptions, deliveries, attempts, replays, and what the consumer writes. */
import t from 'tap'
import { plainBox } from '../../src/accounts/secret-box.js'
import type { Database } from '../../src/db/database.js'
import { clearDeliveries, deliveryPruning, payloadPruning } from '../../src/webhooks/log/prune-deliveries.js'
import {
  failWaiting,
  insertDeliveries,
  insertPayloads,
  listWaiting,
  recordAttempts,
  soonestDue,
  type Ended,
} from '../../src/webhooks/delivery/delivery-store.js'
import { recordConclusions } from '../../src/webhooks/delivery/record-conclusions.js'
import { webhookConsumer } from '../../src/webhooks/events/webhook-consumer.js'
import {
  findDelivery,
  listDeliveries,
  replayDelivery,
  replayFailed,
} from '../../src/webhooks/log/delivery-log-store.js'
import { sealWebhookSecrets } from '../../src/webhooks/subscriptions/secret-seal-store.js'
import {
  countDisabledSince,
  countSubscriptions,
  enableSubscription,
  findAnySubscription,
  findSubscription,
  insertSubscription,
  listActiveSubscriptions,
  listSubscriptions,
  markSubscriptionDeleted,
  type Subscription,
} from '../../src/webhooks/subscriptions/subscription-store.js'
import { SubscriptionRegister } from '../../src/webhooks/subscriptions/subscription-register.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { addWorkspace, DAY_MS, enqueue, NOW } from '../support/mailroom.js'

const PAGE = { limit: 100, offset: 0 }

const hook = (id: string, more: Partial<Subscription> = {}): Subscription => ({
  ...{ id, workspaceId: 'w1', isSandbox: false, event: 'email.sent', targetUrl: 'https://hooks.example/' },
  ...{ secret: 'whsec_c2VjcmV0', formerSecret: null, formerUntil: null, createdAt: NOW, failingSince: null },
  ...{ disabledAt: null, disabledReason: null },
  ...more,
})

const subscribe = (database: Database, ...hooks: Subscription[]) =>
  database.write(async tx => {
    for (const one of hooks) await insertSubscription(tx.db, one)
  })

/** Deliveries of one event to one webhook, due from their making on. */
const deliver = (database: Database, ...ids: string[]) =>
  database.write(async tx => {
    await insertPayloads(tx.db, [{ event: 'email.sent', body: '{"a":"ü"}', createdAt: NOW }])
    await insertDeliveries(
      tx.db,
      ids.map((id, at) => ({ id, subscriptionId: 'h1', payload: 1, createdAt: NOW + at })),
    )
  })

const ended = (deliveryId: string, statusCode: number, then: Ended['then'], number = 1): Ended => ({
  deliveryId,
  number,
  result: {
    startedAt: NOW,
    durationMs: 5,
    statusCode,
    error: null,
    response: 'ok ✓',
    userAgent: 'Postroad/1',
  },
  then,
})

eachDatabase(t, 'a subscription is its workspace’s, and is listed as it stands', async (t, database) => {
  const stands = { disabledAt: NOW, disabledReason: 'gone' } as const
  await subscribe(database, hook('h1'), hook('h2', stands), hook('h3', { workspaceId: 'w2' }))
  const { reader } = database
  const ids = async (filter: object) =>
    (await listSubscriptions(reader, 'w1', filter, PAGE)).items.map(({ id }) => id)
  t.same(await ids({}), ['h2', 'h1'])
  t.same(await ids({ status: 'active' }), ['h1'])
  t.same(await ids({ status: 'disabled' }), ['h2'])
  t.same(await ids({ event: 'email.opened' }), [])
  t.same(await findSubscription(reader, 'w1', 'h1'), hook('h1'))
  t.equal(await findSubscription(reader, 'w1', 'h3'), undefined)
  t.equal(await countSubscriptions(reader, 'w1'), 2)
  t.same(
    (await listActiveSubscriptions(reader, '', 10)).map(({ id }) => id),
    ['h1', 'h3'],
  )
  t.equal(await countDisabledSince(reader, NOW), 1)
  t.equal(await countDisabledSince(reader, NOW + 1), 0)
  await database.write(tx => enableSubscription(tx.db, 'h2'))
  t.match(await findAnySubscription(reader, 'h2'), { disabledAt: null, disabledReason: null })
  await database.write(tx => markSubscriptionDeleted(tx.db, 'h1', NOW))
  t.equal(await findAnySubscription(reader, 'h1'), undefined)
})

eachDatabase(t, 'deliveries wait until they have succeeded or failed', async (t, database) => {
  await subscribe(database, hook('h1'))
  await deliver(database, 'd1', 'd2', 'd3')
  const { reader } = database
  const waiting = async () => (await listWaiting(reader, 'h1', 10)).map(({ id }) => id)
  t.same(await waiting(), ['d1', 'd2', 'd3'])
  t.match(await listWaiting(reader, 'h1', 1), [
    { id: 'd1', body: '{"a":"ü"}', event: 'email.sent', attempts: 0 },
  ])
  t.equal(await soonestDue(reader, 'h1'), NOW)
  await database.write(tx =>
    recordAttempts(
      tx.db,
      [
        ended('d1', 200, 'succeeded'),
        ended('d2', 500, { nextAttemptAt: NOW + 5_000 }),
        ended('d3', 0, 'failed'),
      ],
      NOW + 10,
    ),
  )
  t.same(await waiting(), ['d2'])
  t.equal(await soonestDue(reader, 'h1'), NOW + 5_000)
  const { items, total } = await listDeliveries(reader, 'h1', {}, PAGE)
  t.equal(total, 3)
  t.match(items, [
    { id: 'd3', status: 'failed', finishedAt: NOW + 10, attempts: [{ statusCode: 0 }] },
    { id: 'd2', status: 'pending', nextAttemptAt: NOW + 5_000 },
    {
      id: 'd1',
      status: 'succeeded',
      attempts: [{ number: 1, statusCode: 200, response: 'ok ✓', durationMs: 5 }],
    },
  ])
  const found = async (filter: object) =>
    (await listDeliveries(reader, 'h1', filter, PAGE)).items.map(({ id }) => id)
  t.same(await found({ status: 'failed' }), ['d3'])
  t.same(await found({ since: NOW + 1, until: NOW + 2 }), ['d2'])
})

eachDatabase(t, 'what is finished is replayed, what waits is not', async (t, database) => {
  await subscribe(database, hook('h1'))
  await deliver(database, 'd1', 'd2', 'd3')
  await database.write(tx =>
    recordAttempts(tx.db, [ended('d1', 200, 'succeeded'), ended('d2', 500, 'failed')], NOW),
  )
  const replay = (id: string) => database.write(tx => replayDelivery(tx.db, id, NOW + 9))
  t.same([await replay('d1'), await replay('d3'), await replay('nobody')], [true, false, false])
  t.match(await findDelivery(database.reader, 'd1'), {
    status: 'pending',
    nextAttemptAt: NOW + 9,
    finishedAt: null,
  })
  const [, again] = await listWaiting(database.reader, 'h1', 2)
  t.match(again, { id: 'd1', attempts: 1, attemptsBefore: 1 })
  const since = { subscriptionId: 'h1', since: NOW, after: '' }
  const failed = () => database.write(tx => replayFailed(tx.db, since, NOW + 9, 10))
  t.same(await failed(), ['d2'])
  t.same(await failed(), [])
  await database.write(tx => failWaiting(tx.db, 'h1', NOW, 10))
  t.same(await failed(), ['d1', 'd2', 'd3'])
})

const left = async (database: Database) => (await listDeliveries(database.reader, 'h1', {}, PAGE)).total

/** As the jobs do, some at a time. */
async function prune(database: Database, before: number): Promise<void> {
  for (const begin of [deliveryPruning, payloadPruning]) {
    const step = begin(before)
    while ((await step(2, work => database.write(work))).hasMore);
  }
}

eachDatabase(t, 'what was replayed stays as long again, and holds up nothing', async (t, database) => {
  await subscribe(database, hook('h1'))
  const ids = ['d1', 'd2', 'd3', 'd4', 'd5', 'd6']
  for (const [at, id] of ids.entries())
    await database.write(async tx => {
      const createdAt = NOW + at
      await insertPayloads(tx.db, [{ event: 'email.sent', body: '{}', createdAt }])
      await insertDeliveries(tx.db, [{ id, subscriptionId: 'h1', payload: at + 1, createdAt }])
    })
  const end = (number: number, ...some: string[]) =>
    database.write(tx =>
      recordAttempts(
        tx.db,
        some.map(id => ended(id, 500, 'failed', number)),
        NOW + 9,
      ),
    )
  await end(1, ...ids)
  const since = { subscriptionId: 'h1', since: NOW, after: '' }
  t.same(await database.write(tx => replayFailed(tx.db, since, NOW + DAY_MS, 3)), ['d1', 'd2', 'd3'])
  await prune(database, NOW + 5)
  const listed = async () =>
    (await listDeliveries(database.reader, 'h1', {}, PAGE)).items.map(({ id }) => id).sort()
  t.same(await listed(), ['d1', 'd2', 'd3', 'd6'], 'while they are tried')
  await end(2, 'd1', 'd2', 'd3')
  await prune(database, NOW + DAY_MS)
  t.same(await listed(), ['d1', 'd2', 'd3'], 'and then')
  await prune(database, NOW + DAY_MS + 1)
  t.same(await listed(), [])
  t.same(await database.reader.selectFrom('webhook_payloads').selectAll().execute(), [])
})

eachDatabase(t, 'old deliveries go with their attempts, and bodies with them', async (t, database) => {
  await subscribe(database, hook('h1'))
  await deliver(database, 'd1', 'd2')
  await database.write(tx => recordAttempts(tx.db, [ended('d1', 200, 'succeeded')], NOW))
  await prune(database, NOW)
  t.equal(await left(database), 2)
  await prune(database, NOW + 2)
  t.equal(await left(database), 1, 'what is still being tried stays, and its body')
  await database.write(tx => recordAttempts(tx.db, [ended('d2', 200, 'succeeded')], NOW))
  await prune(database, NOW + 2)
  t.equal(await left(database), 0)
  t.same(await database.reader.selectFrom('webhook_payloads').selectAll().execute(), [])
  const attempts = await database.reader.selectFrom('webhook_attempts').selectAll().execute()
  t.same(attempts, [])
})

eachDatabase(t, 'the body of an old delivery is kept while it is tried', async (t, database) => {
  await subscribe(database, hook('h1'))
  await deliver(database, 'd1')
  await prune(database, NOW + 10 * DAY_MS)
  t.match(await listWaiting(database.reader, 'h1', 1), [{ id: 'd1', body: '{"a":"ü"}' }])
  await database.write(tx => recordAttempts(tx.db, [ended('d1', 200, 'succeeded')], NOW))
  await prune(database, NOW + 10 * DAY_MS)
  t.same(await database.reader.selectFrom('webhook_payloads').selectAll().execute(), [])
})

eachDatabase(t, 'an attempt that ends after its webhook has ended changes nothing', async (t, database) => {
  const clock = new FakeClock()
  await subscribe(database, hook('h1', { disabledAt: NOW, disabledReason: 'failing' }), hook('h2'))
  await deliver(database, 'd1')
  const clear = () => clearDeliveries({ database, clock }, new AbortController().signal)
  await clear()
  const late = (id: string) =>
    database.write(tx => recordAttempts(tx.db, [ended(id, 500, { nextAttemptAt: NOW + 5_000 })], NOW + 9))
  await late('d1')
  t.match(await findDelivery(database.reader, 'd1'), { status: 'failed', nextAttemptAt: null })
  t.same(await listWaiting(database.reader, 'h1', 10), [])
  await database.write(tx => markSubscriptionDeleted(tx.db, 'h1', NOW))
  await clear()
  await late('d1')
  const attempts = await database.reader.selectFrom('webhook_attempts').selectAll().execute()
  t.same(attempts, [], 'no attempt of a delivery that is gone')
})

eachDatabase(t, 'an attempt that is recorded twice counts once', async (t, database) => {
  await subscribe(database, hook('h1'))
  await deliver(database, 'd1', 'd2')
  const both = [ended('d1', 500, { nextAttemptAt: NOW + 5_000 }), ended('d2', 200, 'succeeded')]
  for (let again = 0; again < 2; again += 1) await database.write(tx => recordAttempts(tx.db, both, NOW + 9))
  t.match(await findDelivery(database.reader, 'd1'), { status: 'pending', attempts: [{ number: 1 }] })
  t.match(await listWaiting(database.reader, 'h1', 10), [{ id: 'd1', attempts: 1 }])
  t.match(await findDelivery(database.reader, 'd2'), { status: 'succeeded', attempts: [{ number: 1 }] })
})

eachDatabase(t, 'what waits for a subscription that has ended waits for nothing', async (t, database) => {
  const clock = new FakeClock()
  await subscribe(database, hook('h1', { disabledAt: NOW, disabledReason: 'failing' }))
  await deliver(database, 'd1', 'd2')
  const clear = () => clearDeliveries({ database, clock }, new AbortController().signal)
  await clear()
  t.match((await listDeliveries(database.reader, 'h1', {}, PAGE)).items, [
    { status: 'failed' },
    { status: 'failed' },
  ])
  await database.write(tx => markSubscriptionDeleted(tx.db, 'h1', NOW))
  await clear()
  for (const table of ['webhook_subscriptions', 'webhook_deliveries', 'webhook_attempts'] as const)
    t.same(await database.reader.selectFrom(table).selectAll().execute(), [], table)
})

eachDatabase(t, 'how attempts end is how a subscription stands', async (t, database) => {
  await addWorkspace(database)
  await subscribe(database, hook('h1'))
  await deliver(database, 'd1', 'd2')
  const find = await (async () => {
    let known = hook('h1')
    return {
      known: () => known,
      refresh: async () => (known = (await findAnySubscription(database.reader, 'h1'))!),
    }
  })()
  const conclude = async (made: number, statusCode: number, now: number) => {
    const one = { subscriptionId: 'h1', made, ended: ended('d1', statusCode, { nextAttemptAt: now }, made) }
    const changes = await database.write(tx => recordConclusions(tx, [one], find.known, now))
    await find.refresh()
    return changes
  }
  t.match(await conclude(1, 500, NOW), [{ failingSince: NOW }])
  t.same(await conclude(2, 500, NOW + DAY_MS), [], 'nothing new')
  t.match(await conclude(3, 200, NOW + DAY_MS), [{ failingSince: null }])
  t.match(await conclude(4, 500, NOW + 2 * DAY_MS), [{ failingSince: NOW }])
  t.same(await conclude(2, 500, NOW + 5 * DAY_MS), [], 'one of seconds ago')
  t.match(await conclude(5, 500, NOW + 5 * DAY_MS), [{ disabled: 'failing' }])
  t.match(find.known(), { disabledReason: 'failing', disabledAt: NOW + 5 * DAY_MS })
  await database.write(tx => enableSubscription(tx.db, 'h1'))
  await find.refresh()
  t.match(await conclude(6, 410, NOW), [{ disabled: 'gone' }])
})

eachDatabase(t, 'an event becomes one body and a row for each who is told', async (t, database) => {
  await addWorkspace(database)
  await enqueue(database, [{ id: 'm1', to: 'ann@x.example' }])
  await subscribe(
    database,
    hook('h1'),
    hook('h2'),
    hook('h3', { disabledAt: NOW, disabledReason: 'gone' }),
    hook('h4', { event: 'email.opened' }),
    hook('h5', { workspaceId: 'w2' }),
  )
  let ids = 0
  const due: (readonly string[])[] = []
  const consumer = webhookConsumer({
    clock: new FakeClock(),
    newId: () => `d${++ids}`,
    register: { isWanted: () => true, refreshFor: () => Promise.resolve() },
    onDue: hooks => due.push(hooks),
  })
  const event = (seq: number, workspaceId = 'w1') => ({
    ...{ seq, kind: 'email.sent', workspaceId, messageId: 'm1', isSandbox: false, occurredAt: NOW },
    payload: { to: 'ann@x.example' },
  })
  const react = (...events: object[]) => database.write(tx => consumer.react(tx, events as never))
  await react(event(1), event(2, 'w3'))
  t.same(due, [['h1', 'h2']])
  const [told] = await listWaiting(database.reader, 'h1', 10)
  t.same(JSON.parse(told?.body ?? ''), {
    event: 'email.sent',
    timestamp: '2026-01-05T10:00:00.000Z',
    data: {
      ...{ message_id: 'm1', to: 'ann@x.example', from: 'shop@example.com', subject: 'Your order' },
      ...{ contact_id: null, campaign_id: null, automation_id: null, batch_id: null, template_id: null },
    },
  })
  t.same(await listWaiting(database.reader, 'h5', 10), [])
})

eachDatabase(t, 'secrets that stand as they are get sealed', async (t, database) => {
  await subscribe(database, hook('h1', { formerSecret: 'whsec_b2xk', formerUntil: NOW }), hook('h2'))
  const box = { ...plainBox, seal: (text: string, place: string) => `sealed:1:${place} ${text.length}` }
  const seal = () => database.write(tx => sealWebhookSecrets(tx.db, box))
  await seal()
  const sealed = await findAnySubscription(database.reader, 'h1')
  t.match(sealed, {
    secret: 'sealed:1:webhook_subscriptions/secret/h1 14',
    formerSecret: 'sealed:1:webhook_subscriptions/former_secret/h1 10',
  })
  await seal()
  t.same(await findAnySubscription(database.reader, 'h1'), sealed)
})

eachDatabase(
  t,
  'what changes while subscriptions are being read again is not undone by that',
  async (t, database) => {
    await addWorkspace(database, 'w1')
    await subscribe(database, hook('h1'), hook('h2'), hook('h3'))
    const register = new SubscriptionRegister(database)
    await register.refresh()
    const refreshes = [register.refresh(), register.refresh()]
    register.note(hook('new', { event: 'email.opened' }), false)
    register.forget('h2')
    register.noteFailingSince('h3', NOW)
    await Promise.all(refreshes)
    t.match(register.find('new'), { id: 'new' })
    t.ok(register.isWanted('w1', 'email.opened'))
    t.equal(register.find('h2'), undefined)
    t.match(register.find('h3'), { failingSince: NOW })
    await register.refresh()
    t.equal(register.find('new'), undefined, 'the database is what counts from the next one on')
  },
)
