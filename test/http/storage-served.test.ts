/** What clients and the operator see of the running appliance when its disk fills or its database vanishes. */
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pauseFor } from '../../src/world/time/clock.js'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { SmtpClient } from '../support/smtp/smtp-service.js'
import { POSTGRES_SERVER } from '../support/db/real-postgres.js'
import { hideTable } from '../support/db/sabotage.js'

const RESERVE = 500 * 1_024 * 1_024
const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

async function open(t: Test): Promise<TestAppliance> {
  const postroad = await openTestAppliance(t, {
    env: { POSTROAD_LIMITS_DISK_RESERVE: '500MB', POSTROAD_SUBMISSION_REQUIRE_TLS: 'false' },
  })
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId, '--vouch')
  return postroad
}

/** @returns what MAIL FROM is answered */
async function replyToMail({ addresses, clock, key }: TestAppliance, listener: 'submission' | 'inbound') {
  const client = await SmtpClient.connect(addresses[listener][0]?.port ?? 0)
  const say = async (line: string) => {
    client.send(`${line}\r\n`)
    return client.readReply()
  }
  // Unknown clients wait for the greeting.
  while (client.unread === '') {
    await pauseFor(5)
    await clock.advance(500)
  }
  await client.readReply()
  await client.ehlo()
  if (listener === 'submission') await say(`AUTH PLAIN ${Buffer.from(`\0apikey\0${key}`).toString('base64')}`)
  const reply = await say('MAIL FROM:<me@sender.test>')
  client.cut()
  return reply.join()
}

const onSqlite = { skip: POSTGRES_SERVER !== undefined && 'only SQLite is a file on this disk' }

// answers: POST /email/send: unavailable
t.test('below the disk reserve new mail is refused by every way, and health says so', onSqlite, async t => {
  const postroad = await open(t)
  const { disk, clock, key } = postroad
  t.match(await postroad.send(key, mail), { status: 200 })
  disk.free = RESERVE - 1
  await clock.advance(1_000)
  for (const [path, body] of [
    ['/api/v1/email/send', mail],
    ['/api/v1/email/send', { ...mail, send_at: new Date(clock.now() + 60_000).toISOString() }],
    ['/api/v1/email/batch', { messages: [mail] }],
  ] as const) {
    const answer = await postroad.post(path, body, { key })
    t.match(answer, { status: 503, body: { error: { code: 'unavailable', message: /nearly full/ } } })
    t.match(answer.headers.get('retry-after'), /^\d+$/)
  }
  for (const listener of ['submission', 'inbound'] as const)
    t.match(await replyToMail(postroad, listener), /^452 4\.3\.1 .*nearly full/, listener)
  t.match(await postroad.get('/health'), {
    status: 503,
    body: { data: { status: 'degraded', reason: /disk is nearly full \(limits\.disk_reserve\)/ } },
  })
  t.match(
    await postroad.post('/api/v1/suppressions', { email: 'bob@two.test' }, { key }),
    { status: 201 },
    'everything else continues',
  )
  disk.free = 2 * RESERVE
  await clock.advance(1_000)
  t.match(await postroad.send(key, mail), { status: 200 })
  t.match(await replyToMail(postroad, 'inbound'), /^250 /)
  t.match(await postroad.get('/health'), { status: 200 })
})

// answers: POST /email/send: unavailable
t.test(
  'a database that is moved away under the server is noticed before anything is answered with 200',
  onSqlite,
  async t => {
    const postroad = await open(t)
    const file = join(postroad.dataDir, 'postroad.db')
    renameSync(file, `${file}.aside`)
    for (const send_at of [undefined, new Date(postroad.clock.now() + 60_000).toISOString()])
      t.match(await postroad.send(postroad.key, { ...mail, send_at }), {
        status: 503,
        body: { error: { code: 'unavailable', message: /lost its database/ } },
      })
    t.match(await postroad.get('/health'), {
      status: 503,
      body: { data: { status: 'failing', reason: /moved, replaced or deleted/ } },
    })
    const told = postroad.log.lines.filter(({ level }) => level === 'error')
    t.match(told[0], { event: 'database files missing', fields: { file } })
    t.notMatch(JSON.stringify(told), /"stack"/)
    renameSync(`${file}.aside`, file)
    t.match(await postroad.send(postroad.key, mail), { status: 200 })
  },
)

// proves: What the service does > Health check endpoint that needs
t.test('health reports a database that cannot write as failing', async t => {
  const postroad = await open(t)
  hideTable(postroad, 'write_trials')
  t.match(await postroad.get('/health'), {
    status: 503,
    body: { data: { status: 'failing', reason: /no such table|does not exist/, version: String } },
  })
})
