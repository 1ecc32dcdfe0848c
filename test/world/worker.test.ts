/** Background work in pieces: until nothing is left, at the planned time or when woken, with growing back-off after failures. */
import t, { type Test } from 'tap'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { AT_ONCE, WHEN_WOKEN, Worker, type WorkerParts } from '../../src/world/time/worker.js'

/** @param pieces what each one does; the last one over and over */
function workerOf(t: Test, pieces: readonly (() => number)[], more: Partial<WorkerParts> = {}) {
  const clock = new FakeClock()
  const log = new FakeLog()
  let run = 0
  const worker = new Worker({
    clock,
    log,
    failure: 'campaign runner failed',
    runPiece: () => Promise.resolve((pieces[run++] ?? pieces.at(-1) ?? idle)()),
    ...more,
  })
  t.teardown(() => worker.stop())
  return { clock, log, worker, pieces: () => run }
}

/** Until everything that is due has run. */
async function settle() {
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate)
}

const again = () => AT_ONCE
const idle = () => WHEN_WOKEN
const fail = (): number => {
  throw new Error('the disk is gone')
}

t.test('pieces follow each other while there may be more, then wait for a wake', async t => {
  const { worker, clock, pieces } = workerOf(t, [again, again, idle])
  worker.start()
  worker.start()
  await settle()
  t.equal(pieces(), 3)
  await clock.advance(3_600_000)
  t.equal(pieces(), 3)
  worker.wake()
  await settle()
  t.equal(pieces(), 4)
})

t.test('a wake during the last piece starts another', async t => {
  const woken = workerOf(t, [
    () => {
      woken.worker.wake()
      return WHEN_WOKEN
    },
    idle,
  ])
  woken.worker.start()
  await settle()
  t.equal(woken.pieces(), 2)
})

t.test('a planned piece runs when it is due, also if the clock was set meanwhile', async t => {
  const planned = workerOf(t, [() => planned.clock.now() + 10_000, () => planned.clock.now() + 60_000, idle])
  planned.worker.start()
  await settle()
  await planned.clock.advance(9_000)
  t.equal(planned.pieces(), 1)
  await planned.clock.advance(1_000)
  await settle()
  t.equal(planned.pieces(), 2)
  planned.clock.jump(60_000)
  await planned.clock.advance(1_000)
  await settle()
  t.equal(planned.pieces(), 3)
})

t.test(
  'a commit of another process ends the sleep within a second, also one made during the piece',
  async t => {
    let version = 1
    const during = () => {
      version += 1
      return WHEN_WOKEN
    }
    const { worker, clock, pieces } = workerOf(t, [during, idle], { version: () => version })
    worker.start()
    await settle()
    t.equal(pieces(), 2)
    await clock.advance(5_000)
    t.equal(pieces(), 2)
    version += 1
    await clock.advance(1_000)
    await settle()
    t.equal(pieces(), 3)
  },
)

t.test('back-off grows with each failure, ignores wakes, and resets after work done', async t => {
  const succeed = () => {
    worker.resetBackoff()
    return fail()
  }
  const { clock, worker, log, pieces } = workerOf(t, [fail, fail, succeed, idle], {
    retry: { firstMs: 1_000, factor: 3, maxMs: 60_000 },
  })
  worker.start()
  for (const [seen, delayMs] of [
    [1, 1_000],
    [2, 3_000],
    [3, 1_000],
  ] as const) {
    await settle()
    worker.wake()
    await clock.advance(delayMs - 1)
    await settle()
    t.equal(pieces(), seen, 'still backing off')
    await clock.advance(1)
  }
  await settle()
  t.equal(pieces(), 4)
  t.equal(log.lines.length, 3)
  t.match(log.lines[0], { event: 'campaign runner failed', fields: { error: 'the disk is gone' } })
})

t.test('stopping waits for the current piece and ends a back-off at once', async t => {
  const events: string[] = []
  const { worker } = workerOf(t, [], {
    async runPiece(stopping) {
      await settle()
      events.push(stopping.aborted ? 'ended after the stop' : 'ended before')
      return AT_ONCE
    },
  })
  worker.start()
  await worker.stop()
  t.same(events, ['ended after the stop'])
  worker.start()
  await settle()
  t.equal(events.length, 1, 'a stopped worker stays stopped')

  const failing = workerOf(t, [fail])
  failing.worker.start()
  await settle()
  await failing.worker.stop()
  t.equal(failing.pieces(), 1)
})

t.test('as a job it runs until the signal aborts, and can run again', async t => {
  const { worker, pieces } = workerOf(t, [idle])
  for (const seen of [1, 2]) {
    const stopping = new AbortController()
    const running = worker.run(stopping.signal)
    await settle()
    stopping.abort()
    await running
    t.equal(pieces(), seen)
  }
  await worker.run(AbortSignal.abort())
  t.equal(pieces(), 2)
})
