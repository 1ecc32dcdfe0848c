/** A real full disk under the running program: nothing is lost, clients are told, and service resumes automatically. */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { initialise, install, routeTo, type Initialised, type Serving } from '../support/program/process.js'
import { smallDisk, type SmallDisk } from '../support/program/small-disk.js'
import { openSink, type Sink } from '../support/smtp/sink.js'
import { SmtpClient } from '../support/smtp/smtp-service.js'
import { servedAddresses } from '../support/smtp/submission.js'
import { until } from '../support/until.js'

const MEGABYTE = 1_024 * 1_024

interface FullDisk {
  readonly disk: SmallDisk
  readonly sink: Sink
  readonly postroad: Initialised
  readonly server: Serving
}

async function open(t: Test, reserve: string): Promise<FullDisk> {
  const [disk, sink] = [smallDisk(t, 64), await openSink(t)]
  const postroad = await initialise(t, {
    env: {
      ...routeTo(sink.port),
      POSTROAD_LIMITS_DISK_RESERVE: reserve,
      POSTROAD_SUBMISSION_REQUIRE_TLS: 'false',
    },
    onFolder: dataDir => disk.mountAt(dataDir),
  })
  await postroad.run('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId, '--vouch')
  return { disk, sink, postroad, server: await postroad.serve() }
}

const letter = (to: string) => ({
  to,
  from_email: 'me@sender.test',
  subject: 'Hello',
  text: 'Hello.\n'.repeat(5_000),
})

/** @returns the id */
async function accepted({ server, postroad }: FullDisk, to: string): Promise<string> {
  const { status, body } = await server.send(postroad.key, letter(to))
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return (body as { data: { results: [{ message_id: string }] } }).data.results[0].message_id
}

/** Until one is refused. @returns what that was answered, and the ids of those that were taken */
async function sendUntilRefused(full: FullDisk) {
  const ids: string[] = []
  for (let number = 0; number < 3_000; number += 1) {
    const answer = await full.server.send(full.postroad.key, letter(`filling${number}@one.test`))
    if (answer.status !== 200) return { answer, ids }
    ids.push((answer.body as { data: { results: [{ message_id: string }] } }).data.results[0].message_id)
  }
  throw new Error('the disk does not get full')
}

/** @returns what MAIL FROM is answered */
async function replyToMail({ server, postroad }: FullDisk): Promise<string> {
  const client = await SmtpClient.connect(servedAddresses(server).submission[0]?.port ?? 0)
  await client.readReply()
  await client.ehlo()
  const say = async (line: string) => {
    client.send(`${line}\r\n`)
    return (await client.readReply()).join()
  }
  await say(`AUTH PLAIN ${Buffer.from(`\0apikey\0${postroad.key}`).toString('base64')}`)
  const replies = [await say('MAIL FROM:<me@sender.test>')]
  if (replies[0]?.startsWith('250')) {
    await say('RCPT TO:<ann@one.test>')
    await say('DATA')
    replies.push(await say(`From: me@sender.test\r\nSubject: Hello\r\n\r\n${'Hello.\r\n'.repeat(10_000)}.`))
  }
  client.cut()
  return replies.at(-1) ?? ''
}

t.test('below the disk reserve new mail is rejected, and accepted mail is delivered', async t => {
  const full = await open(t, '24MB')
  const { disk, sink, postroad, server } = full
  sink.atRcpt = 'defer'
  const id = await accepted(full, 'ann@one.test')
  disk.fill(8 * MEGABYTE)
  // Not by sending: the mails taken until the next look at the disk could use up the reserve.
  await until('the low disk to be noticed', async () => (await server.get('/health')).status === 503)
  const refused = await server.send(postroad.key, letter('bob@one.test'))
  t.match(refused, { status: 503, body: { error: { code: 'unavailable', message: /nearly full/ } } })
  t.match(await replyToMail(full), /^452 4\.3\.1 .*nearly full/)
  t.match(await server.get('/health'), {
    status: 503,
    body: { data: { status: 'degraded', reason: /limits\.disk_reserve/ } },
  })
  sink.atRcpt = 'accept'
  await server.messageOnce(postroad.key, id, 'delivered')
  disk.makeRoom()
  await until(
    'mail to be taken again',
    async () => (await server.send(postroad.key, letter('cid@one.test'))).status === 200,
  )
  await until('health to be well again', async () => (await server.get('/health')).status === 200)
})

t.test('a completely full disk loses nothing and needs no restart afterwards', async t => {
  const full = await open(t, '0B')
  const { disk, sink, postroad, server } = full
  sink.atRcpt = 'defer'
  const waiting = await accepted(full, 'ann@one.test')
  disk.fill()
  const { answer, ids } = await sendUntilRefused(full)
  t.match(answer, { status: 503, body: { error: { code: 'unavailable', message: /disk/ } } })
  t.match(answer.headers.get('retry-after'), /^\d+$/)
  t.match(await server.get('/health'), {
    status: 503,
    body: { data: { status: 'failing', reason: /cannot be written: .*full/ } },
  })
  t.match(await replyToMail(full), /^4\d\d .*(disk|storage)/)
  const linesBefore = server.log.length
  for (let number = 0; number < 300; number += 1)
    t.equal((await server.send(postroad.key, letter('dan@one.test'))).status, 503)
  const lines = server.log.slice(linesBefore)
  t.notOk(
    lines.some(line => 'stack' in line),
    'known errors have no stack trace',
  )
  t.ok(lines.filter(({ level }) => level === 'error').length < 10, 'one line reports many failures')
  sink.atRcpt = 'accept'
  disk.makeRoom()
  await until(
    'mail to be taken again',
    async () => (await server.send(postroad.key, letter('eve@one.test'))).status === 200,
  )
  for (const id of [waiting, ...ids]) await server.messageOnce(postroad.key, id, 'delivered')
  await until('health to be well again', async () => (await server.get('/health')).status === 200)
  t.match((await server.end('SIGTERM')).status, 0)
})

const MANY = 20_000

t.test('an import interrupted by a full disk resumes once there is space, and misses no row', async t => {
  const { disk, postroad, server } = await open(t, '0B')
  const csv = Array.from({ length: MANY }, (_, n) => `reader${n}@d${n % 50}.test,Ann ${n}\n`).join('')
  disk.fill(12 * MEGABYTE)
  const answer = await server.post('/api/v1/contacts/import', `email,first_name\n${csv}`, {
    key: postroad.key,
    headers: { 'Content-Type': 'text/csv' },
  })
  t.equal(answer.status, 202)
  const { import_id: id } = (answer.body as { data: { import_id: string } }).data
  const progress = async () =>
    (await server.get(`/api/v1/contacts/imports/${id}`, { key: postroad.key })).body as {
      data: { status: string; created: number }
    }
  await until('the disk to be full', async () => (await server.get('/health')).status === 503)
  t.notSame((await progress()).data.status, 'completed')
  disk.makeRoom()
  const done = await until(
    'the import to end',
    async () => {
      const { data } = await progress()
      return data.status === 'completed' || data.status === 'failed' ? data : undefined
    },
    60_000,
  )
  t.match(done, { status: 'completed', created: MANY })
  t.notOk(server.log.some(line => 'stack' in line))
})

t.test('a command that fills the disk reports it and can be repeated', async t => {
  const { disk, postroad, server } = await open(t, '0B')
  const file = join(tmpdir(), `postroad-suppress-${process.pid}.csv`)
  writeFileSync(file, Array.from({ length: MANY }, (_, n) => `reader${n}@d${n % 50}.test\n`).join(''))
  const add = () => postroad.spawn('suppress', 'import', file, '--workspace', postroad.workspaceId)
  disk.fill(2 * MEGABYTE)
  const refused = await add()
  t.not(refused.status, 0)
  t.match(refused.err, /the disk is full/)
  t.notMatch(refused.err, /^ +at /m)
  disk.makeRoom()
  t.match(await add(), { status: 0 })
  t.equal(postroad.rowCounts()['suppressions'], MANY)
  await until('health to be well again', async () => (await server.get('/health')).status === 200)
})

t.test('a migration on a full disk leaves the database unchanged, and runs once there is space', async t => {
  const disk = smallDisk(t, 96)
  const postroad = install(t, {
    env: { POSTROAD_LIMITS_DISK_RESERVE: '0B' },
    onFolder: dataDir => disk.mountAt(dataDir),
  })
  disk.fill(MEGABYTE / 2)
  const { status, err } = await postroad.spawn('init')
  t.equal(status, 1)
  t.match(err, /disk is full/)
  t.notMatch(err, /^ +at /m)
  disk.makeRoom()
  t.match(await postroad.spawn('init'), { status: 0 })
  t.equal(postroad.rowCounts()['workspaces'], 1)
})
