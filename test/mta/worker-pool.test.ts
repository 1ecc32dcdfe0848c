/** Delivery in real threads to a server in this process; only the pool's clock is manual. */
import { pathToFileURL } from 'node:url'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { RenderRequest } from '../../src/content/rendering/render-request.js'
import type { DkimKey } from '../../src/mail/dkim/dkim-sign.js'
import { type AgentOptions, openCaptureAgent } from '../../src/mta/workers/worker-agent.js'
import { DEFAULT_POOL_LIMITS } from '../../src/mta/mta-options.js'
import type { Instruction } from '../../src/mta/workers/worker-protocol.js'
import { openWorkerPool, type WorkerPool } from '../../src/mta/workers/worker-pool.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { goOn, LETTER, LINKS, makeJob, timeouts } from '../support/smtp/mta.js'
import { openSink, type Sink } from '../support/smtp/sink.js'
import { told, watchThreads, type WatchedThreads } from '../support/program/threads.js'
import { until } from '../support/until.js'

const hostname = 'mail.sender.example'
const capture: AgentOptions = { kind: 'capture', hostname, links: LINKS }
const failingThread = pathToFileURL('build/test/support/program/failing-thread.js')

function toSinks(...routes: { domain: string; sink: Pick<Sink, 'port'> }[]): AgentOptions {
  return {
    kind: 'smtp',
    hostname,
    links: LINKS,
    port: 25,
    ownAddresses: [],
    sourceAddresses: [],
    routes: routes.map(({ domain, sink }) => ({ domain, host: '127.0.0.1', port: sink.port, tls: 'none' })),
    dns: { servers: ['127.0.0.1:9'], timeoutMs: 1_000 },
    mtaSts: false,
    allowPrivate: false,
    timeouts,
    pool: DEFAULT_POOL_LIMITS,
  }
}

interface TestPool {
  readonly pool: WorkerPool
  readonly threads: WatchedThreads
  readonly clock: FakeClock
  readonly log: FakeLog
  readonly workers: number
}

function testPool(t: Test, agent: AgentOptions, workers: number, threads = watchThreads()): TestPool {
  const clock = new FakeClock()
  const log = new FakeLog()
  const pool = openWorkerPool({
    clock,
    log,
    spawn: threads.spawn,
    workers,
    agent,
    idleMs: DEFAULT_POOL_LIMITS.idleMs,
    quitMs: timeouts.quitMs,
  })
  t.teardown(() => pool.terminate())
  return { pool, threads, clock, log, workers }
}

/** So that jobs are shared out from the first one on. */
async function untilAllWork({ pool, threads, workers }: TestPool): Promise<void> {
  await until('a job for every thread', async () => {
    await Promise.all(recipients(4 * workers).map(() => pool.deliver(makeJob({ recipient: 'probe@' }), goOn)))
    const atWork = threads.started.filter(thread => told(thread, 'deliver').length > 0)
    return atWork.length === workers
  })
}

/** Takes connections and never says a word. */
async function openSilentServer(t: Test) {
  const sockets: Socket[] = []
  const server = createServer(socket => sockets.push(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return sockets.length
    },
  }
}

function makeKeys(): DkimKey[] {
  const { privateKey } = generateKeyPairSync('ed25519')
  return [
    {
      domain: 'sender.example',
      selector: 's1',
      algorithm: 'ed25519',
      privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    },
  ]
}

function recipients(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `reader-${index}@example.com`)
}

function isForReader(instruction: Instruction): boolean {
  return instruction.kind === 'deliver' && instruction.job.recipient.startsWith('reader-')
}

t.test('mail for many is distributed among the threads and arrives signed', async t => {
  const sink = await openSink(t)
  const test = testPool(t, toSinks({ domain: '*', sink }), 2)
  await untilAllWork(test)
  const { content } = makeJob()
  const signingKeys = makeKeys()
  const jobs = recipients(20).map(recipient => makeJob({ recipient, content, signingKeys }))
  const outcomes = await Promise.all(jobs.map(job => test.pool.deliver(job, goOn)))

  t.same([...new Set(outcomes.map(({ kind }) => kind))], ['delivered'])
  t.same(
    sink.accepted.flatMap(mail => mail.recipients).sort(),
    jobs.map(job => job.recipient).sort(),
    'each once',
  )
  for (const { raw } of sink.accepted) t.match(raw.toString(), /^DKIM-Signature: v=1; a=ed25519-sha256/)
  for (const thread of test.threads.started) {
    const messages = thread.posted.map(list => list.filter(isForReader).length).filter(count => count > 0)
    t.same(messages, [10], 'half of it each, all at one go')
    const values = told(thread, 'keep').map(({ value }) => value)
    t.equal(
      values.filter(value => value === content).length,
      1,
      'the content is kept as soon as it comes again',
    )
    t.equal(values.filter(value => value === signingKeys).length, 1, 'and so are the keys')
    const sent = told(thread, 'deliver').map(({ job: slip }) => slip.content)
    t.equal(sent.filter(value => value === content).length, 1, 'and went along with one job only')
  }
})

t.test('threads are started as load requires, beginning with one', async t => {
  const sink = await openSink(t)
  const { pool, threads } = testPool(t, toSinks({ domain: '*', sink }), 3)
  t.equal(threads.started.length, 1)
  for (const recipient of recipients(5)) await pool.deliver(makeJob({ recipient }), goOn)
  t.equal(threads.started.length, 1, 'one after the other')
  await Promise.all(recipients(30).map(recipient => pool.deliver(makeJob({ recipient }), goOn)))
  t.equal(threads.started.length, 3, 'all at once')
})

t.test('the content of a single message is sent with it and not kept', async t => {
  const { pool, threads } = testPool(t, capture, 1)
  for (const text of ['One.\n', 'Two.\n']) await pool.deliver(makeJob({ content: { ...LETTER, text } }), goOn)
  const [thread] = threads.started
  t.same(told(thread!, 'keep'), [])
})

t.test('an evicted content is sent again when needed', async t => {
  const { pool, threads } = testPool(t, capture, 1)
  const { content: small } = makeJob()
  const large = { ...small, text: 'A line of text.\r\n'.repeat(300_000) }
  for (const content of [small, small, large, large, small, small]) {
    const outcome = await pool.deliver(makeJob({ content }), goOn)
    t.match(outcome, { kind: 'delivered' })
  }
  const [thread] = threads.started
  t.same(
    told(thread!, 'keep').map(({ value }) => (value === small ? 'small' : 'large')),
    ['small', 'large', 'small'],
  )
  t.equal(told(thread!, 'drop').length, 2)
})

t.test('captured mail is returned as the octets that would have been sent', async t => {
  const { pool } = testPool(t, capture, 1)
  const here = openCaptureAgent({ clock: new FakeClock(), hostname })
  for (const text of ['Short.\n', 'Long.\n'.repeat(5_000)]) {
    const job = makeJob({ content: { ...LETTER, text } })
    const [outcome, expected] = await Promise.all([pool.deliver(job, goOn), here.deliver(job, goOn)])
    t.ok('captured' in outcome && Buffer.isBuffer(outcome.captured))
    t.same(outcome, expected)
  }
})

t.test('a rendering runs in a thread and fails alone if that dies', async t => {
  const { pool, threads, clock } = testPool(t, capture, 1)
  const brand = { companyName: '', companyAddress: '', attribution: false, timezone: 'UTC' }
  const request: RenderRequest = {
    kind: 'mail',
    source: { subject: 'Hello', html: '<p>{{a}}</p>' },
    merging: { hasFooter: false, brand },
    own: { data: { a: 'x & y' } },
    recipient: 'ann@x.example',
    date: 0,
    links: { unsubscribeUrl: '#', preferencesUrl: '#', viewUrl: '#' },
    isHtmlEnough: true,
  }
  t.match(await pool.render(request), { kind: 'mail', html: '<p>x &amp; y</p>' }, 'also before it is ready')
  const faulty = [{ source: '{{#if a}}', place: 'html' as const }]
  t.match(await pool.render({ kind: 'parse', sources: faulty }), { kind: 'refused' })
  const lost = pool.render(request)
  await Promise.all([t.rejects(lost, { code: 'unavailable' }), threads.started[0]?.kill()])
  await clock.advance(1_000)
  t.match(await pool.render(request), { kind: 'mail' }, 'another thread took its place')
  await pool.close()
  await t.rejects(pool.render(request), { code: 'unavailable' })
})

t.test('at equal load a message goes to the thread connected to its domain', async t => {
  const [one, other] = [await openSink(t), await openSink(t)]
  const agent = toSinks({ domain: 'one.example', sink: one }, { domain: 'other.example', sink: other })
  const test = testPool(t, agent, 2)
  await untilAllWork(test)
  const [ann, bob] = [makeJob({ recipient: 'ann@one.example' }), makeJob({ recipient: 'bob@other.example' })]
  await Promise.all([ann, bob].map(job => test.pool.deliver(job, goOn)))
  for (const job of [bob, ann, bob, ann])
    t.match(await test.pool.deliver(job, goOn), { tried: [{ reused: true }] })
})

t.test('a crashed thread is replaced, and its jobs are deferred', async t => {
  const sink = await openSink(t)
  const test = testPool(t, toSinks({ domain: '*', sink }), 2)
  const { pool, threads, clock, log } = test
  await untilAllWork(test)
  sink.atDot = 'hold'
  const jobs = recipients(4).map(recipient => makeJob({ recipient }))
  const deliveries = jobs.map(job => pool.deliver(job, goOn))
  await until('all of it to be past the final dot', () => sink.arrived.length === 4)
  await threads.started[0]!.kill()
  sink.release()

  const outcomes = await Promise.all(deliveries)
  const lost = outcomes.filter(({ kind }) => kind === 'deferred')
  t.match(lost, [
    { cause: 'transient', scope: 'source', permanence: 'transient', subtype: 'worker_lost' },
    { subtype: 'worker_lost' },
  ])
  t.equal(lost.length, 2)
  t.notOk(
    lost.some(outcome => 'retryAfterMs' in outcome),
    'not sooner than usual: it may have arrived',
  )
  t.equal(outcomes.filter(({ kind }) => kind === 'delivered').length, 2, 'the other thread kept running')
  t.match(log.lines, [{ level: 'error', event: 'delivery thread ended', fields: { deliveriesLost: 2 } }])

  await clock.advance(1_000)
  await threads.started[1]!.kill()
  t.match(await pool.deliver(makeJob(), goOn), { kind: 'delivered' }, 'by the one that came instead')
  t.equal(threads.started.length, 3)
})

t.test('while no thread can be started mail waits, with growing restart delays', async t => {
  const threads = watchThreads()
  threads.program = new URL('data:text/javascript,throw new Error("disk full")')
  const { pool, clock, log } = testPool(t, capture, 1, threads)
  const delivery = pool.deliver(makeJob(), goOn)
  for (const [index, pauseMs] of [1_000, 2_000, 4_000].entries()) {
    await until('its end', () => log.lines.length > index)
    t.match(log.lines[index], { fields: { error: 'disk full', restartInMs: pauseMs, deliveriesLost: 0 } })
    if (index === 2) threads.program = undefined
    await clock.advance(pauseMs - 1)
    t.equal(threads.started.length, index + 1, 'not before')
    await clock.advance(1)
  }
  t.match(await delivery, { kind: 'delivered' })
})

t.test('a thread that ran for a while is replaced immediately', async t => {
  const { pool, threads, clock, log } = testPool(t, capture, 1)
  await pool.deliver(makeJob(), goOn)
  await clock.advance(10_000)
  await threads.started[0]!.kill()
  await until('its end', () => log.lines.length > 0)
  t.match(log.lines, [{ fields: { restartInMs: 0 } }])
  await clock.advance(0)
  t.match(await pool.deliver(makeJob(), goOn), { kind: 'delivered' })
})

t.test('outcomes known when a thread crashes are not lost', async t => {
  const threads = watchThreads()
  threads.program = failingThread
  const { pool, log } = testPool(t, capture, 1, threads)
  const outcome = await pool.deliver(makeJob({ recipient: 'throw@example.com' }), goOn)
  t.match(outcome, { kind: 'delivered' })
  await until('its end', () => log.lines.length > 0)
  t.match(log.lines, [{ fields: { error: 'out of the blue', deliveriesLost: 0 } }])
})

t.test('an agent error in the thread rejects the delivery', async t => {
  const threads = watchThreads()
  threads.program = failingThread
  const { pool } = testPool(t, capture, 1, threads)
  await t.rejects(pool.deliver(makeJob({ recipient: 'reject@example.com' }), goOn), /^no luck today$/)
  t.match(await pool.deliver(makeJob(), goOn), { kind: 'delivered' }, 'and the thread keeps running')
})

t.test('a shutdown aborts deliveries in the threads that are not past the final dot', async t => {
  const sink = await openSink(t)
  const silent = await openSilentServer(t)
  const agent = toSinks({ domain: 'example.com', sink }, { domain: 'silent.example', sink: silent })
  const { pool } = testPool(t, agent, 1)
  const shutdown = new AbortController()
  sink.atDot = 'hold'
  const past = pool.deliver(makeJob(), shutdown.signal)
  const before = pool.deliver(makeJob({ recipient: 'ann@silent.example' }), shutdown.signal)
  await until('the final dot', () => sink.arrived.length === 1)
  await until('a connection', () => silent.connections === 1)
  shutdown.abort()
  t.match(await before, { kind: 'deferred', subtype: 'shutdown' })
  sink.release()
  t.match(await past, { kind: 'delivered' })
  const late = await pool.deliver(makeJob(), shutdown.signal)
  t.match(late, { kind: 'deferred', subtype: 'shutdown' })
})

t.test('a shutdown ends waiting for a thread', async t => {
  const threads = watchThreads()
  threads.program = new URL('data:text/javascript,throw new Error("disk full")')
  const { pool } = testPool(t, capture, 1, threads)
  const shutdown = new AbortController()
  const waiting = pool.deliver(makeJob(), shutdown.signal)
  shutdown.abort()
  t.match(await waiting, { kind: 'deferred', subtype: 'shutdown' })
  const forgotten = pool.deliver(makeJob(), goOn)
  await pool.close()
  t.match(await forgotten, { kind: 'deferred', subtype: 'shutdown' }, 'and so does closing')
})

t.test('closing lets running jobs finish, then ends the threads', async t => {
  const sink = await openSink(t)
  const { pool, threads, log } = testPool(t, toSinks({ domain: '*', sink }), 2)
  sink.atDot = 'hold'
  const delivery = pool.deliver(makeJob(), goOn)
  await until('the final dot', () => sink.arrived.length === 1)
  const closed = pool.close()
  sink.release()
  t.match(await delivery, { kind: 'delivered' })
  await closed
  t.notOk(threads.started.some(({ end }) => end === undefined))
  t.same(log.lines, [])
  t.match(await pool.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'shutdown' })
})

t.test('terminated threads leave their jobs as a crash would', async t => {
  const sink = await openSink(t)
  const { pool, threads, log } = testPool(t, toSinks({ domain: '*', sink }), 1)
  sink.atDot = 'hold'
  let outcome: unknown
  void pool.deliver(makeJob(), goOn).then(known => (outcome = known))
  await until('the final dot', () => sink.arrived.length === 1)
  await pool.terminate()
  t.notOk(threads.started.some(({ end }) => end === undefined))
  t.equal(outcome, undefined, 'nothing is settled that is not known')
  t.same(log.lines, [])
})
