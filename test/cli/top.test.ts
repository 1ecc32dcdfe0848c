/** The live view of a running server, and of one that does not run. */
import { spawn } from 'node:child_process'
import { existsSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import type { Frame } from '../../src/cli/mail/top.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { endWithTest } from '../support/program/children.js'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink, unusedPort } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const program = resolve('dist/main.js')

const mailTo = (...to: string[]) => ({ to, from_email: 'me@sender.test', subject: 'Hi', text: 'Hi.\n' })

t.test('a frame shows active deliveries, the queue and the outcomes of the last minute', async t => {
  const sink = await openSink(t)
  const gone = await unusedPort()
  const http = `127.0.0.1:${await unusedPort()}`
  const routes = [
    { domain: 'gone.test', host: '127.0.0.1', port: gone },
    { domain: '*', host: '127.0.0.1', port: sink.port },
  ]
  const postroad = await initialise(t, {
    env: {
      POSTROAD_HTTP_LISTEN: http,
      POSTROAD_MTA_ROUTES: JSON.stringify(routes),
      POSTROAD_MTA_RETRY_FIRST: '1h',
    },
  })
  const server = await postroad.serve()
  const { body } = await server.send(postroad.key, mailTo('ann@one.test', 'bob@two.test'))
  for (const { message_id: id } of body.data.results as { message_id: string }[])
    await server.messageOnce(postroad.key, id, 'delivered')
  await server.send(postroad.key, mailTo('cyd@gone.test'))
  sink.atDot = 'hold'
  await server.send(postroad.key, mailTo('dan@one.test'))
  await sink.arrivedOnce(3)

  const look = () => postroad.json<Frame>('top')
  const frame = await until('the refusal is counted', async () => {
    const seen = await look()
    return seen.total.deferred === 1 && seen
  })
  t.match(frame, {
    serving: true,
    trouble: null,
    active: 1,
    total: { queued: 2, due: 0, held: 0, delivered: 2, deferred: 1, bounced: 0 },
    balance: { accepted: 4, delivered: 2, bounced: 0, failed: 0, waiting: 2, difference: 0 },
    database: { octets: Number, disk_free_octets: Number },
    destinations: [
      { destination: 'gone.test', site: `127.0.0.1:${gone}`, queued: 1, due: 0, delivered: 0, deferred: 1 },
      { destination: 'one.test', site: `127.0.0.1:${sink.port}`, queued: 1, delivered: 1 },
    ],
  })
  t.match(frame.sites[0], { site: `127.0.0.1:${sink.port}`, active: 1, delivered: 2, backoff_until: null })
  t.ok((frame.sites[0]?.window ?? 0) >= 4)
  const { out } = await postroad.run('top', '--once')
  t.match(out, /2 queued, 0 due, 0 held; 1 active; last minute: 2 delivered, 1 deferred, 0 bounced/)
  t.match(
    out,
    /all mail: 4 accepted = 2 delivered \+ 0 bounced \+ 0 failed \+ 0 cancelled \+ 0 suppressed \+ 2 waiting\n/,
  )
  t.match(out, /\ngone\.test +1 +0 +0 +0 +1 +0 +127\.0\.0\.1:/)
  t.notOk(out.includes('\x1b'), 'no control sequences outside the live view')
  sink.release()
})

t.test('without a server it says so and shows the state in the database', async t => {
  const postroad = await initialise(t, { env: routeTo(await unusedPort()) })
  const server = await postroad.serve()
  await server.send(postroad.key, mailTo('ann@one.test'))
  rmSync(join(postroad.dataDir, 'control.sock'))
  t.match(await postroad.run('top'), { status: 1, err: /cannot reach .*control\.sock/ })
  await server.end('SIGTERM')
  t.match(await postroad.json('top'), {
    serving: false,
    active: null,
    trouble: 'the server is not running',
    total: { queued: 1 },
    balance: { accepted: 1, waiting: 1, difference: 0 },
    destinations: [{ destination: 'one.test', queued: 1 }],
  })
})

t.test('the live view refreshes until interrupted', async t => {
  const postroad = await initialise(t)
  const child = spawn(process.execPath, [program, 'top'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], ...postroad.environment },
  })
  endWithTest(t, child)
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  await until('two frames', () => out.split('postroad top').length > 2)
  t.ok(out.startsWith('\x1b[Hpostroad top '))
  t.match(out, /the server is not running/)
})

t.test('the control routes are served only on the control socket, never over the network', async t => {
  const postroad = await openTestAppliance(t)
  t.match(await postroad.json('top'), { serving: true, trouble: null, active: 0 })
  t.match(await postroad.json('queue', 'retry', '--all'), { changed: 0 })
  const page = { 'Content-Type': 'text/plain' }
  t.equal((await postroad.get('/queue/sites')).status, 404)
  t.equal((await postroad.post('/queue/retry', '{}', { headers: page })).status, 404)
  t.equal((await postroad.post('/queue/retry', '{}', { key: postroad.key })).status, 404)
})

t.test(
  'the control socket is private to its owner, replaces a stale one, and is removed at shutdown',
  async t => {
    const postroad = await initialise(t)
    const socket = join(postroad.dataDir, 'control.sock')
    const killed = await postroad.serve()
    t.equal(statSync(socket).mode & 0o7777, 0o600)
    await killed.end('SIGKILL')
    t.ok(existsSync(socket), 'what a crash leaves')
    const server = await postroad.serve()
    t.match(await postroad.json('top'), { serving: true, trouble: null })
    await server.end('SIGTERM')
    t.notOk(existsSync(socket))
  },
)
