/** A message or rendering that takes too long costs only itself: in real threads, with a limit that large texts exceed. */
import t, { type Test } from 'tap'
import { DEFAULT_POOL_LIMITS } from '../../src/mta/mta-options.js'
import type { AgentOptions } from '../../src/mta/workers/worker-agent.js'
import { openWorkerPool } from '../../src/mta/workers/worker-pool.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { watchThreads } from '../support/program/threads.js'
import { goOn, LETTER, LINKS, makeJob, timeouts } from '../support/smtp/mta.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const TASK_LIMIT_MS = 200
/** Encoding it takes several times as long as the limit. */
const HUGE = '\n'.repeat(32_000_000)

function testPool(t: Test, agent: AgentOptions, workers = 1) {
  const threads = watchThreads()
  const log = new FakeLog()
  const pool = openWorkerPool({
    clock: new FakeClock(),
    log,
    spawn: threads.spawn,
    workers,
    agent,
    taskLimitMs: TASK_LIMIT_MS,
    idleMs: DEFAULT_POOL_LIMITS.idleMs,
    quitMs: timeouts.quitMs,
  })
  t.teardown(() => pool.terminate())
  return { pool, threads, log }
}

function smtpTo(port: number): AgentOptions {
  return {
    kind: 'smtp',
    hostname: 'mail.sender.example',
    links: LINKS,
    port: 25,
    ownAddresses: [],
    sourceAddresses: [],
    routes: [{ domain: '*', host: '127.0.0.1', port, tls: 'none' }],
    dns: { servers: ['127.0.0.1:9'], timeoutMs: 1_000 },
    mtaSts: false,
    allowPrivate: false,
    timeouts,
    pool: DEFAULT_POOL_LIMITS,
  }
}

t.test('a message that takes too long to build fails, and every other one is delivered once', async t => {
  const sink = await openSink(t)
  const { pool, threads, log } = testPool(t, smtpTo(sink.port))
  sink.atDot = 'hold'
  const inProgress = pool.deliver(makeJob({ recipient: 'ann@one.example' }), goOn)
  await sink.arrivedOnce(1)
  const huge = pool.deliver(
    makeJob({ recipient: 'bob@two.example', content: { ...LETTER, text: HUGE } }),
    goOn,
  )
  const others = ['cid', 'dan', 'eve', 'fay', 'gil'].map(name =>
    pool.deliver(makeJob({ recipient: `${name}@two.example` }), goOn),
  )

  t.match(await huge, {
    kind: 'unsendable',
    summary: 'the message could not be built: it takes longer than 0.2 s',
  })
  sink.release()
  t.match(await inProgress, { kind: 'delivered' }, 'by the thread it was in')
  for (const other of others) t.match(await other, { kind: 'delivered' })
  t.same(sink.accepted.flatMap(({ recipients }) => recipients).sort(), [
    'ann@one.example',
    'cid@two.example',
    'dan@two.example',
    'eve@two.example',
    'fay@two.example',
    'gil@two.example',
  ])
  t.match(log.lines[0], { level: 'warn', event: 'delivery thread replaced' })
  t.notOk(log.lines.some(({ level }) => level === 'error'))
  await until('the spent thread to end', () => threads.started[0]?.end !== undefined)
})

t.test('a rendering that takes too long is refused with the reason, and others are answered', async t => {
  const { pool, threads } = testPool(t, { kind: 'capture', hostname: 'mail.sender.example', links: LINKS })
  const source = { source: '{{a}}'.repeat(9_000), place: 'html' as const }
  const huge = pool.render({ kind: 'parse', sources: Array.from({ length: 500 }, () => source), data: {} })
  const other = pool.render({ kind: 'parse', sources: [{ source: '{{#if a}}', place: 'html' }] })
  const delivery = pool.deliver(makeJob(), goOn)
  t.match(await huge, { kind: 'refused', message: 'it takes longer than 0.2 s to render' })
  t.match(await other, { kind: 'refused', message: /has no/ })
  t.match(await delivery, { kind: 'delivered' })
  t.ok(threads.started.length >= 2, 'another thread took its place')
})

t.test('no more spent threads than a few stay for a server that does not answer', async t => {
  const sink = await openSink(t)
  const { pool } = testPool(t, smtpTo(sink.port))
  sink.atDot = 'hold'
  const held = []
  for (const name of ['ann', 'bob', 'cid', 'dan']) {
    held.push(pool.deliver(makeJob({ recipient: `${name}@one.example` }), goOn))
    await sink.arrivedOnce(held.length)
    const huge = makeJob({ content: { ...LETTER, text: HUGE } })
    t.match(await pool.deliver(huge, goOn), { kind: 'unsendable' })
  }
  t.match(await held[0], { kind: 'deferred', subtype: 'worker_lost' }, 'as if its thread had crashed')
})

t.test(
  'a mail that takes too long fails with a reason while that of another workspace is delivered',
  async t => {
    const postroad = await openTestAppliance(t, { taskLimitMs: 25, env: { POSTROAD_MTA_WORKERS: '1' } })
    const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
    const [key, otherKey] = [await postroad.makeKey(), await postroad.makeKey('--workspace', other)]
    const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', html: '<p>Hi</p>' }
    const send = async (by: string, more = {}) => {
      const { status, body } = await postroad.send(by, { ...mail, ...more })
      t.equal(status, 200)
      return String(body.data.results[0].message_id)
    }
    const html = Array.from({ length: 9_000 }, (_, n) => `<a href="http://a.b/${n}">`).join('')
    const slow = await send(key, { html, text: '\n'.repeat(1_000_000), track_clicks: true })
    const quick = await send(otherKey)
    const failed = await postroad.messageOnce(key, slow, 'failed')
    t.match(JSON.stringify(failed), /could not be built: it takes longer than 0.025 s/)
    await postroad.messageOnce(otherKey, quick, 'delivered')
    t.match(
      postroad.log.lines.find(({ event }) => event === 'delivery thread replaced'),
      { level: 'warn' },
    )
  },
)
