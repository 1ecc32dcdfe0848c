/** What asks before it destroys, and what can be undone; keys that change; a restored copy that is held. */
import t from 'tap'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { setRestoreHold } from '../../src/accounts/restore-hold-store.js'
import { runCli } from '../../src/cli/program.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { systemWorld } from '../../src/world/world.js'
import { initialise, routeTo, type Initialised } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { openServed } from '../support/smtp/submission.js'
import { until } from '../support/until.js'

const LETTER = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

/** Runs the command as at a terminal where this is the answer. */
async function atTerminal({ environment }: Initialised, answer: string, ...args: string[]) {
  let [out, err, asked] = ['', '', '']
  const status = await runCli(args, {
    env: environment,
    world: { ...systemWorld(), log: new FakeLog() },
    print: text => (out += `${text}\n`),
    complain: text => (err += `${text}\n`),
    ask: async question => {
      asked += question
      return answer
    },
  })
  return { status, out, err, asked }
}

t.test('a workspace is removed after confirmation, and restored with its queue held', async t => {
  const sink = await openSink(t)
  sink.atRcpt = 'defer'
  const env = { ...routeTo(sink.port), POSTROAD_MTA_RETRY_FIRST: '1h' }
  const postroad = await initialise(t, { env })
  const { workspaceId, key } = postroad
  const server = await postroad.serve()
  await server.send(key, LETTER)
  await server.logged('message deferred')

  const no = await atTerminal(postroad, 'n', 'workspace', 'remove', workspaceId)
  t.match(no, { status: 1, asked: /removes the workspace default.*\[y\/N\]/, err: /nothing was changed/ })
  t.match(await server.get('/api/v1/email', { key }), { status: 200 })
  const yes = await atTerminal(postroad, 'y', 'workspace', 'remove', workspaceId)
  t.match(yes, { status: 0, out: /1 queued messages are held[^]*workspace restore/ })
  await until(
    'its keys to stop working',
    async () => (await server.get('/api/v1/email', { key })).status >= 400,
  )
  t.match(await postroad.json('queue', 'summary'), [{ total: 1, held: 1 }])
  t.match(await postroad.json('workspace', 'list', '--removed'), [{ id: workspaceId, removed_at: /Z$/ }])
  t.match(await postroad.run('workspace', 'list', '--removed'), { out: /default/ })

  t.match(await postroad.run('workspace', 'restore', workspaceId), {
    status: 0,
    out: /queue release --workspace/,
  })
  await until('its keys to work', async () => (await server.get('/api/v1/email', { key })).status === 200)
  t.match(await postroad.json('queue', 'summary'), [{ total: 1, held: 1 }], 'nothing is sent by itself')
  t.match(await postroad.run('workspace', 'restore', workspaceId), {
    status: 1,
    err: /was removed in the last 30/,
  })
})

t.test('a workspace removed long ago cannot be restored', async t => {
  const postroad = await initialise(t)
  await postroad.json('workspace', 'remove', postroad.workspaceId, '--yes')
  const clock = new FakeClock(new Date(Date.now() + 31 * 86_400_000).toISOString())
  let err = ''
  const status = await runCli(['workspace', 'restore', postroad.workspaceId], {
    env: postroad.environment,
    world: { ...systemWorld(), log: new FakeLog(), clock },
    print: () => {},
    complain: text => (err += text),
  })
  t.match({ status, err }, { status: 1, err: /in the last 30 days/ })
})

t.test("a key's permissions and limits can be changed while the server runs", async t => {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const server = await postroad.serve()
  const owner = ['--workspace', postroad.workspaceId]
  const { id, key } = await postroad.json<{ id: string; key: string }>(
    'key',
    'create',
    ...owner,
    '--name',
    'old',
  )
  t.match(
    await postroad.json(
      'key',
      'set',
      id,
      '--name',
      'new',
      '--permissions',
      'email:read',
      '--rate-limit',
      '0',
    ),
    {
      ...{
        id,
        name: 'new',
        permissions: ['email:read'],
        type: 'custom',
        rate_limit: 0,
        email_rate_limit: 100,
      },
    },
  )
  await until('the change to count', async () => (await server.send(key, LETTER)).status === 403)
  t.match(await server.get('/api/v1/email', { key }), { status: 200 })
  t.match(await postroad.run('key', 'set', id, '--permissions', 'fly'), {
    status: 1,
    err: /unknown permission/,
  })
  t.match(await postroad.run('key', 'set', id, '--rate-limit', 'many'), { status: 2 })
})

t.test('a locked-out client can log in again after login unlock', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  const client = await openServed(server)
  for (let guess = 0; guess < 10; guess += 1)
    t.match(await client.login(`${postroad.key.slice(0, 14)}${guess}`), /^535 /)
  t.match(await client.login(postroad.key), /^454 /)
  t.same(await postroad.json('login', 'unlock', '127.0.0.1'), { unlocked: true })
  t.match(await client.login(postroad.key), /^235 /)
  t.same(await postroad.json('login', 'unlock', '192.0.2.7'), { unlocked: false })
  t.match(await postroad.run('login', 'unlock', '192.0.2.7'), { out: /no failed logins/ })
})

t.test('a restored copy sends nothing, and says so, until it is released', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const file = `${postroad.dataDir}/postroad.db`
  const database = await openSqlite({ file, clock: new FakeClock(), mayMigrate: false })
  await database.write(tx => setRestoreHold(tx.db, Date.UTC(2026, 0, 5)))
  await database[Symbol.asyncDispose]()
  const server = await postroad.serve()
  t.ok(server.log.some(({ level, event }) => level === 'warn' && event === 'queue held after restore'))
  t.match(await server.send(postroad.key, LETTER), { status: 200 })
  await server.logged('message accepted')
  t.match(await postroad.run('queue', 'list'), {
    out: /ann@one\.test/,
    err: /held since the restore of 2026-01-05/,
  })
  // The queue is made to look, and goes on to accept more.
  await postroad.json('queue', 'retry', '--all')
  const from = server.log.length
  t.match(await server.send(postroad.key, { ...LETTER, to: 'bob@one.test' }), { status: 200 })
  await server.logged('message accepted', from)
  t.notOk(server.log.some(({ event }) => event === 'message delivered'))
  t.equal(sink.begun, 0)
  await postroad.json('queue', 'release', '--all')
  await server.logged('message delivered')
  t.match(await postroad.run('queue', 'summary'), { err: '' })
})

t.test('jobs are listed with their last run', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  await server.end('SIGTERM')
  const jobs = await postroad.json<{ name: string }[]>('jobs')
  t.match(
    jobs.find(({ name }) => name === 'import-contacts'),
    {
      ...{ running: false, last_started_at: /Z$/, last_ended_at: /Z$/, next_run_at: null, last_error: null },
    },
  )
  t.match(await postroad.run('jobs'), { out: /^JOB +STATE[^]*recheck-domains/, err: /is not running/ })
})
