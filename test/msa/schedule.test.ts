/** Scheduled sends: accepted now, mailed later, called back in between. */
import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { CONFIG_SCHEMA } from '../../src/appliance/resources.js'
import { openServer } from '../../src/server.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemWorld } from '../../src/world/world.js'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { clientOf } from '../support/api/client.js'
import { initialise } from '../support/program/process.js'

const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
/** The clock begins at ten. */
const AT = '2026-01-05T10:05:00.000Z'
const MINUTES = 60_000

async function schedule(postroad: TestAppliance, fields: object = {}, key = postroad.key): Promise<string> {
  const { status, body } = await postroad.send(key, { ...good, send_at: AT, ...fields })
  if (status !== 202) throw new Error(JSON.stringify(body))
  return String(body.data.message_id)
}

const statusOf = async (postroad: TestAppliance, id: string, key = postroad.key) =>
  (await postroad.get(`/api/v1/email/${id}/status`, { key })).body.data

const cancel = (postroad: TestAppliance, id: string, key = postroad.key) =>
  postroad.delete(`/api/v1/email/${id}`, { key })

interface ScheduledRecipient {
  readonly to: string
  readonly message_id: string
  readonly status: string
}

const conflict = { status: 409, body: { error: { code: 'conflict' } } }

// proves: States and transitions > Scheduled email DELETE /email/:messageId already sent
// proves: Email > DELETE /email/:messageId | 9; Errors > 200 | 201 | 202
// proves: decisions: Email > Scheduled send one message_id stands
// answers: DELETE /email/{messageId}: conflict
t.test('a scheduled mail waits for its time and is then sent', async t => {
  const postroad = await openTestAppliance(t)
  const { status, body } = await postroad.send(postroad.key, {
    ...good,
    send_at: '2026-01-05T11:05:00+01:00',
  })
  t.equal(status, 202)
  const id = String(body.data.message_id)
  t.same(body.data, { scheduled: true, message_id: id, scheduled_at: AT, from: 'notify@mail.postroad.test' })
  t.match(await statusOf(postroad, id), {
    message_id: id,
    status: 'scheduled',
    to: 'ann@one.test',
    scheduled_at: AT,
    sent_at: null,
    next_attempt_at: AT,
    attempts: 0,
  })
  await postroad.clock.advance(5 * MINUTES - 1)
  t.match(await statusOf(postroad, id), { status: 'scheduled', attempts: 0 })
  await postroad.clock.advance(1)
  const sent = await postroad.messageOnce(postroad.key, id, 'delivered')
  t.match(sent, { scheduled_at: AT, sent_at: AT, delivered_at: AT, created_at: '2026-01-05T10:00:00.000Z' })
  const caught = await postroad.get(`/capture/${id}`)
  t.match(String(caught.body.data.raw), /^Date: Mon, 05 Jan 2026 10:05:00 \+0000\r$/m, 'dated as it left')
  t.match(await cancel(postroad, id), conflict)
  t.match(await statusOf(postroad, id), { status: 'delivered' })
})

// proves: Email > send_at | 5; Errors > invalid_schedule; decisions: Email > Optional fields null is as
// answers: POST /email/send: invalid_schedule
// at and past limit: Limits > Scheduling horizon
t.test('send_at has to be a moment in the next 72 hours', async t => {
  const postroad = await openTestAppliance(t)
  const before = postroad.rowCounts()
  for (const send_at of [
    '2026-01-05T10:00:00Z',
    '2025-12-31',
    '2026-01-08T10:00:00.001Z',
    '2027-01-01T00:00:00Z',
  ])
    t.match(
      await postroad.send(postroad.key, { ...good, send_at }),
      { status: 400, body: { error: { code: 'invalid_schedule', path: 'send_at' } } },
      send_at,
    )
  for (const send_at of ['', 'tomorrow', '2026-02-30T00:00:00Z', '2026-13-01T00:00:00Z', 1767610800])
    t.match(
      await postroad.send(postroad.key, { ...good, send_at }),
      { status: 400, body: { error: { code: 'validation_error', path: 'send_at' } } },
      String(send_at),
    )
  const late = { ...good, send_at: '2020-01-01T00:00:00Z', text: '' }
  t.match(
    await postroad.send(postroad.key, late),
    { body: { error: { code: 'no_content' } } },
    'in its order',
  )
  t.same(postroad.rowCounts(), before)
  t.ok(await schedule(postroad, { send_at: '2026-01-08T10:00:00Z' }), 'the last moment')
  t.ok(await schedule(postroad, { send_at: '2026-01-05T10:00:00.001Z' }), 'the first one')
  for (const send_at of [
    '20260105T130000+0200',
    '2026-01-05 11:00:00.000001',
    '2026-01-05T13+02',
    '2026-01-05T11:00:00,0',
  ])
    t.match(
      await postroad.send(postroad.key, { ...good, send_at }),
      { status: 202, body: { data: { scheduled_at: '2026-01-05T11:00:00.000Z' } } },
      send_at,
    )
})

// proves: decisions: Email > Scheduled send one message_id stands | Scheduled group its status is
t.test('one id stands for all recipients of a scheduled send', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('suppress', 'add', 'gone@one.test', '--workspace', postroad.workspaceId)
  const id = await schedule(postroad, { to: ['ann@one.test', 'bob@two.test', 'gone@one.test'] })
  const found = await statusOf(postroad, id)
  t.match(found, { message_id: id, status: 'scheduled', scheduled_at: AT, sent_at: null })
  t.same(String(found.to).split(', ').sort(), ['ann@one.test', 'bob@two.test', 'gone@one.test'])
  const byAddress = new Map<string, ScheduledRecipient>(
    found.recipients.map((one: ScheduledRecipient) => [one.to, one]),
  )
  t.equal(byAddress.get('ann@one.test')?.status, 'scheduled')
  t.equal(byAddress.get('gone@one.test')?.status, 'suppressed')
  const own = byAddress.get('ann@one.test')!.message_id
  t.match(await statusOf(postroad, own), { to: 'ann@one.test', status: 'scheduled', scheduled_at: AT })
  await postroad.clock.advance(5 * MINUTES)
  for (const one of ['ann@one.test', 'bob@two.test'])
    await postroad.messageOnce(postroad.key, byAddress.get(one)!.message_id, 'delivered')
  t.match(await statusOf(postroad, id), { status: 'delivered', sent_at: AT })
  t.match(await cancel(postroad, id), conflict)
})

// proves: States and transitions > Scheduled email DELETE /email/:messageId before delivery
// proves: States and transitions > Scheduled email DELETE /email/:messageId already sent
// proves: Email > DELETE /email/:messageId; decisions: Email > Scheduled send one message_id stands
// answers: DELETE /email/{messageId}: conflict
t.test('what was called back is never sent', async t => {
  const postroad = await openTestAppliance(t)
  const single = await schedule(postroad)
  const several = await schedule(postroad, { to: ['bob@two.test', 'carl@two.test'] })
  const kept = await schedule(postroad, { to: 'kept@one.test' })
  for (const id of [single, several]) {
    t.match(await cancel(postroad, id), { status: 200, body: { data: { success: true } } })
    t.match(await statusOf(postroad, id), { status: 'cancelled', sent_at: null })
    t.match(await cancel(postroad, id), conflict, 'a second time')
  }
  t.same(
    (await statusOf(postroad, several)).recipients.map((one: { status: string }) => one.status),
    ['cancelled', 'cancelled'],
  )
  t.equal(postroad.rowCounts()['queue'], 1)
  await postroad.clock.advance(10 * MINUTES)
  await postroad.messageOnce(postroad.key, kept, 'delivered')
  t.match((await postroad.get('/capture')).body.pagination, { total: 1 })
  t.match(await statusOf(postroad, single), { status: 'cancelled', attempts: 0, next_attempt_at: null })
})

// proves: decisions: Email > Scheduled send one message_id stands | Scheduled group its status is
t.test('one recipient of several can be called back alone', async t => {
  const postroad = await openTestAppliance(t)
  const id = await schedule(postroad, { to: ['ann@one.test', 'bob@two.test'] })
  const { recipients } = await statusOf(postroad, id)
  t.match(await cancel(postroad, recipients[0].message_id), { status: 200 })
  t.match(await cancel(postroad, recipients[0].message_id), conflict)
  t.match(await cancel(postroad, id), { status: 200 }, 'the rest')
  t.match(await statusOf(postroad, id), { status: 'cancelled' })
})

// proves: States and transitions > Scheduled email DELETE /email/:messageId already sent
// proves: Email > DELETE /email/:messageId; decisions: Email > Scheduled send one message_id stands
// answers: DELETE /email/{messageId}: conflict
t.test('mail that was never scheduled, unknown mail and that of others cannot be called back', async t => {
  const postroad = await openTestAppliance(t)
  const { body } = await postroad.send(postroad.key, good)
  t.match(await cancel(postroad, String(body.data.results[0].message_id)), conflict)
  const id = await schedule(postroad)
  const notFound = { status: 404, body: { error: { code: 'not_found' } } }
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  t.match(await cancel(postroad, id, await postroad.makeKey('--workspace', other.id)), notFound)
  t.match(await cancel(postroad, 'x'), notFound)
  t.match(await cancel(postroad, '01900000-0000-7000-8000-000000000000'), notFound)
  t.match(await cancel(postroad, id, await postroad.makeKey('--permissions', 'email:read')), { status: 403 })
  t.match(await statusOf(postroad, id), { status: 'scheduled' })
})

// proves: States and transitions > Scheduled email DELETE /email/:messageId before delivery
// proves: Email > DELETE /email/:messageId
t.test('a mail that is called back the moment it is due is sent or cancelled, never both', async t => {
  const postroad = await openTestAppliance(t)
  const ids: string[] = []
  for (let index = 0; index < 20; index += 1)
    ids.push(await schedule(postroad, { to: `user${index}@one.test` }))
  await postroad.clock.advance(5 * MINUTES - 1)
  const calls = Promise.all(ids.map(id => cancel(postroad, id)))
  await postroad.clock.advance(1)
  const answers = await calls
  for (const [index, { status, body }] of answers.entries()) {
    const id = ids[index]!
    if (status === 409) await postroad.messageOnce(postroad.key, id, 'delivered')
    else {
      t.match({ status, body }, { status: 200, body: { data: { success: true } } })
      t.match(await statusOf(postroad, id), { status: 'cancelled', sent_at: null, attempts: 0 })
    }
  }
  t.match((await postroad.get('/capture')).body.pagination, {
    total: answers.filter(({ status }) => status === 409).length,
  })
})

// proves: decisions: Email > Suppression scope all stops every
t.test('a recipient suppressed in the meantime is not mailed', async t => {
  const postroad = await openTestAppliance(t)
  const id = await schedule(postroad)
  await postroad.json('suppress', 'add', 'ann@one.test', '--workspace', postroad.workspaceId)
  await postroad.clock.advance(5 * MINUTES)
  await postroad.messageOnce(postroad.key, id, 'suppressed')
  t.match((await postroad.get('/capture')).body.pagination, { total: 0 })
  t.match(await cancel(postroad, id), conflict)
})

// proves: Email > 7; Errors > 403 | limit_reached
// answers: POST /email/send: limit_reached
t.test('limits count when a send is scheduled', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('workspace', 'set', postroad.workspaceId, 'hourly_limit=1')
  await schedule(postroad)
  t.match(await postroad.send(postroad.key, { ...good, send_at: AT }), {
    status: 403,
    body: { error: { code: 'limit_reached' } },
  })
})

// proves: What the service does > A sandbox key mode produces; Email > 8
// proves: decisions: Email > Sandbox each workspace has a
t.test('with a sandbox key a scheduled send plays its outcome when its time has come', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--sandbox')
  const to = ['bounced@simulator.test', 'clicked@simulator.test', 'gone@simulator.test']
  const [bounced, clicked] = [
    await schedule(postroad, { to: to[0] }, key),
    await schedule(postroad, { to: to[1] }, key),
  ]
  const [gone, cancelled] = [
    await schedule(postroad, { to: to[2] }, key),
    await schedule(postroad, { to: to[0] }, key),
  ]
  await postroad.post('/api/v1/suppressions', { email: to[2] }, { key })
  t.match(await cancel(postroad, cancelled, key), { status: 200 })
  await postroad.clock.advance(5 * MINUTES - 1)
  t.match(await statusOf(postroad, bounced, key), { status: 'scheduled', sent_at: null, bounced_at: null })
  await postroad.clock.advance(1)
  await postroad.messageOnce(key, clicked, 'clicked')
  t.match(await statusOf(postroad, clicked, key), { sent_at: AT, delivered_at: AT, clicked_at: AT })
  t.match(await statusOf(postroad, bounced, key), { status: 'bounced', sent_at: AT, bounced_at: AT })
  t.match(await statusOf(postroad, gone, key), { status: 'suppressed' }, 'suppressed meanwhile')
  t.match(await statusOf(postroad, cancelled, key), { status: 'cancelled' })
  const { body } = await postroad.get('/api/v1/bounces', { key })
  t.ok(body.pagination.total <= 1, 'what was called back plays nothing')
  t.match(postroad.rowCounts(), { queue: 0, sandbox_schedule: 0, captured_mails: 0 })
})

// proves: What the service does > A sandbox key mode produces; Email > 8
// proves: decisions: Email > Sandbox each workspace has a
t.test('with a sandbox key a scheduled send reads as sent when its time has come', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey('--sandbox')
  const [id, other] = [await schedule(postroad, {}, key), await schedule(postroad, {}, key)]
  t.equal(postroad.rowCounts()['queue'], 0)
  t.match(await statusOf(postroad, id, key), { status: 'scheduled', sent_at: null })
  t.match(await cancel(postroad, other, key), { status: 200 })
  await postroad.clock.advance(5 * MINUTES)
  await postroad.messageOnce(key, id, 'sent')
  t.match(await statusOf(postroad, id, key), { status: 'sent', sent_at: AT })
  t.match(await cancel(postroad, id, key), conflict)
  t.match(await statusOf(postroad, other, key), { status: 'cancelled' })
})

t.test('a restart changes nothing, and expiry counts from send_at', async t => {
  const installation = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const { config } = loadConfig({
    schema: CONFIG_SCHEMA,
    file: installation.configFile,
    env: installation.environment,
  })
  const clock = new FakeClock()
  const open = async () => {
    const server = await openServer(config, { ...systemWorld(), clock, log: new FakeLog() })
    return { server, client: clientOf(`http://127.0.0.1:${server.addresses.http[0]?.port ?? 0}`) }
  }
  const first = await open()
  const ids = []
  for (const to of ['ann@one.test', 'bob@two.test']) {
    const { body } = await first.client.send(installation.key, { ...good, to, send_at: AT })
    ids.push(String(body.data.message_id))
  }
  await first.server[Symbol.asyncDispose]()
  const second = await open()
  t.teardown(() => second.server[Symbol.asyncDispose]())
  const { client } = second
  t.match(await client.delete(`/api/v1/email/${ids[1]}`, { key: installation.key }), { status: 200 })
  const [queued] = await installation.json<{ expires_at: string }[]>('queue', 'list')
  t.equal(Date.parse(queued!.expires_at), Date.parse(AT) + config.mta.retry.expireMs)
  await clock.advance(5 * MINUTES)
  await client.messageOnce(installation.key, ids[0]!, 'delivered')
  t.match((await client.get('/capture')).body.pagination, { total: 1 })
})

t.test("the operator's retry hurries what is late, and not what was scheduled", async t => {
  const postroad = await openTestAppliance(t)
  const id = await schedule(postroad)
  t.match(await postroad.json('queue', 'retry', '--all'), { changed: 0 })
  t.match(await statusOf(postroad, id), { status: 'scheduled', next_attempt_at: AT })
})
