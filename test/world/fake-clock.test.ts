/** The clock that tests turn by hand. */
import t from 'tap'
import { FakeClock } from '../../src/world/time/fake-clock.js'

t.test('time stands still until it is moved', async t => {
  const clock = new FakeClock('2026-03-01T00:00:00.000Z')
  t.equal(clock.now(), Date.UTC(2026, 2, 1))
  t.equal(clock.monotonic(), 0)
  await clock.advance(1_500)
  t.equal(clock.now(), Date.UTC(2026, 2, 1) + 1_500)
  t.equal(clock.monotonic(), 1_500)
})

t.test(
  'timers fire in the order they fall due, equals in the order they were set, each at its own time',
  async t => {
    const clock = new FakeClock(0)
    const fired: string[] = []
    const note = (name: string) => () => fired.push(`${name}@${clock.now()}`)
    clock.after(300, note('late'))
    clock.after(100, note('first'))
    clock.after(100, note('second'))
    clock.after(501, note('never'))
    await clock.advance(500)
    t.same(fired, ['first@100', 'second@100', 'late@300'])
    t.equal(clock.waiting, 1)
  },
)

t.test('a timer set for the past or for now fires at the next turn, not at once', async t => {
  const clock = new FakeClock()
  let fired = 0
  clock.after(-5, () => fired++)
  clock.after(0, () => fired++)
  t.equal(fired, 0)
  await clock.advance(0)
  t.equal(fired, 2)
})

t.test('a cancelled timer never fires, and cancelling again is harmless', async t => {
  const clock = new FakeClock()
  const timer = clock.after(10, () => t.fail('it fired'))
  timer.cancel()
  timer.cancel()
  await clock.advance(20)
  t.equal(clock.waiting, 0)
})

t.test('what a timer starts can set timers that fall due within the same move', async t => {
  const clock = new FakeClock(0)
  const moments: number[] = []
  const work = (async () => {
    for (let round = 0; round < 3; round++) {
      await clock.sleep(100)
      moments.push(clock.now())
    }
  })()
  await clock.advance(1_000)
  await work
  t.same(moments, [100, 200, 300])
})

t.test('an aborted sleep ends at once and leaves no timer', async t => {
  const clock = new FakeClock()
  const stop = new AbortController()
  const sleeping = clock.sleep(60_000, stop.signal)
  t.equal(clock.waiting, 1)
  stop.abort()
  await sleeping
  t.equal(clock.waiting, 0)
  await clock.sleep(60_000, stop.signal)
  t.equal(clock.waiting, 0)
})

t.test('a jump changes the time but not when timers fire', async t => {
  const clock = new FakeClock('2026-03-01T00:00:00.000Z')
  let fired = 0
  clock.after(1_000, () => (fired += 1))
  await clock.advance(400)
  clock.jump(3_600_000)
  t.equal(clock.now(), Date.UTC(2026, 2, 1, 1) + 400)
  t.equal(clock.monotonic(), 400)
  await clock.advance(599)
  t.equal(fired, 0)
  await clock.advance(1)
  t.equal(fired, 1)
  clock.jump(-7_200_000)
  t.equal(clock.now(), Date.UTC(2026, 1, 28, 23) + 1_000)
})
