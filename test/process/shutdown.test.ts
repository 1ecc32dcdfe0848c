/** How the server stops, what keeps it from starting, and what it takes over while it runs. */
import t from 'tap'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { initialise, install, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const shortGrace = { POSTROAD_SHUTDOWN_GRACE: '1s' }

t.test('an idle server exits with 0 on SIGTERM and SIGINT', async t => {
  const postroad = await initialise(t)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const server = await postroad.serve()
    t.match(await server.get('/health'), { status: 200 })
    t.match(await server.end(signal), { status: 0, err: '' })
    t.same(server.log.map(({ event }) => event).slice(-3), [
      'signal received',
      'server stopping',
      'server stopped',
    ])
  }
})

t.test('SIGTERM waits for the active delivery', async t => {
  const sink = await openSink(t)
  sink.atDot = 'hold'
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const server = await postroad.serve()
  const { body } = await server.send(postroad.key, mail)
  await sink.arrivedOnce(1)
  server.signal('SIGTERM')
  await server.logged('server stopping')
  await until('nothing new to come in', () =>
    fetch(`${server.baseUrl}/health`).then(
      () => false,
      () => true,
    ),
  )
  sink.release()
  t.match(await server.ended, { status: 0, err: '' })
  const id = String(body.data.results[0].message_id)
  t.match(await postroad.json('message', 'show', id), { status: 'delivered', attempts: 1 })
  t.equal(sink.arrived.length, 1)
})

for (const [moment, stall] of [
  ['in the middle of DATA', { inData: 'stall' }],
  ['between the final dot and the reply', { atDot: 'hold' }],
] as const)
  t.test(`SIGTERM aborts deliveries that stall ${moment} once the grace period ends`, async t => {
    const sink = await openSink(t)
    Object.assign(sink, stall)
    const postroad = await initialise(t, { env: { ...routeTo(sink.port), ...shortGrace } })
    const server = await postroad.serve()
    const { body } = await server.send(postroad.key, mail)
    const id = String(body.data.results[0].message_id)
    await sink.begunOnce(1)
    if ('atDot' in stall) await sink.arrivedOnce(1)
    t.match(await server.end('SIGTERM'), { status: 0, err: '' })
    t.match(await postroad.json('queue', 'show', id), { message_id: id, attempts: 1 })

    sink.inData = 'read'
    sink.atDot = 'accept'
    const again = await postroad.serve()
    await again.messageOnce(postroad.key, id, 'delivered')
    t.equal(sink.accepted.length, 1)
  })

t.test('a second signal ends a draining server at once', async t => {
  const sink = await openSink(t)
  sink.atDot = 'hold'
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const server = await postroad.serve()
  await server.send(postroad.key, mail)
  await sink.arrivedOnce(1)
  server.signal('SIGTERM')
  await server.logged('server stopping')
  t.match(await server.end('SIGTERM'), { status: null, signal: 'SIGTERM' })
})

t.test('a second server on the same data folder is refused and names the first', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  const second = await postroad.spawn('serve')
  t.equal(second.status, 1)
  t.notMatch(second.out, 'server started')
  t.match(second.err, `another postroad serves ${postroad.dataDir} (process ${server.pid})`)
  t.match(await server.get('/health'), { status: 200 })
  await server.end('SIGKILL')
  const next = await postroad.serve()
  t.match(await next.get('/health'), { status: 200 }, 'a killed server leaves no lock behind')
})

t.test('a port already in use is named', async t => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`
  const postroad = await initialise(t, { env: { POSTROAD_HTTP_LISTEN: address } })
  t.match(await postroad.spawn('serve'), {
    status: 1,
    err: `postroad: cannot listen on ${address}: address already in use`,
  })
})

t.test('without init serve says to run init', async t => {
  t.match(await install(t).spawn('serve'), { status: 1, err: 'run `postroad init` first' })
})

t.test('an invalid configuration is refused with all its faults', async t => {
  const postroad = await initialise(t)
  postroad.writeConfig('[htttp]\nlisten = []\n[mta]\nport = 70000')
  const { status, out, err } = await postroad.spawn('serve')
  t.equal(status, 2)
  t.equal(out, '')
  t.match(err, /htttp.*http/)
  t.match(err, 'mta.port')
  postroad.writeConfig('[mta')
  t.match(await postroad.spawn('serve'), { status: 2, err: /postroad\.toml.*line 3/s })
})

t.test('SIGHUP applies the log level and names keys that need a restart', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  postroad.writeConfig('[log]\nlevel = "debug"\n[limits]\nmessage_size = "10MB"')
  server.signal('SIGHUP')
  t.match(await server.logged('configuration reloaded'), { logLevel: 'debug' })
  t.match(await server.logged('restart required'), { keys: 'limits.message_size' })
  await server.get('/health')
  t.match(await server.logged('request answered'), { level: 'debug', route: 'GET /health' })
})

t.test('SIGHUP with a faulty file changes nothing and says why', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  postroad.writeConfig('colour = "blue"\n[log]\nlevel = "loud"')
  server.signal('SIGHUP')
  const { error } = await server.logged('configuration reload failed')
  t.match(error, 'colour')
  t.match(error, 'log.level')
  t.match(await server.get('/health'), { status: 200 })
  const position = server.log.length
  postroad.writeConfig('')
  server.signal('SIGHUP')
  t.match(await server.logged('configuration reloaded', position), { logLevel: 'info' })
  t.match(await server.end('SIGTERM'), { status: 0 })
})
