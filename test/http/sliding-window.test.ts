/** The sliding minute that request and sending limits are counted in. */
import t from 'tap'
import { SlidingWindow, UNLIMITED } from '../../src/http/sliding-window.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const START = Date.parse('2026-01-05T10:00:00.000Z')

t.test('up to the limit passes, the next one does not, and what is refused is not counted', async t => {
  const window = new SlidingWindow(new FakeClock(START))
  t.match(window.take('key', 1, 3), { isAllowed: true, limit: 3, remaining: 2, retryAfterMs: 0 })
  t.match(window.take('key', 2, 3), { isAllowed: true, remaining: 0 })
  for (const _ of [1, 2]) t.match(window.take('key', 1, 3), { isAllowed: false, remaining: 0 })
  t.match(window.take('key', 1, 4), { isAllowed: true, remaining: 0 }, 'a raised limit has room at once')
})

t.test('an amount that does not fit whole is refused whole', async t => {
  const window = new SlidingWindow(new FakeClock(START))
  window.take('key', 8, 10)
  t.match(window.take('key', 3, 10), { isAllowed: false, remaining: 2 })
  t.match(window.take('key', 2, 10), { isAllowed: true, remaining: 0 })
})

t.test('names do not share a window', async t => {
  const window = new SlidingWindow(new FakeClock(START))
  window.take('one', 1, 1)
  t.equal(window.take('one', 1, 1).isAllowed, false)
  t.equal(window.take('other', 1, 1).isAllowed, true)
})

t.test('a client passes after waiting the stated time, and not before', async t => {
  const clock = new FakeClock(START)
  const window = new SlidingWindow(clock)
  window.take('key', 2, 3)
  await clock.advance(20_000)
  window.take('key', 1, 3)
  const refused = window.take('key', 1, 3)
  t.equal(refused.retryAfterMs, 40_000)
  t.equal(refused.resetAt, START + 60_000, 'the oldest leaves first')
  await clock.advance(refused.retryAfterMs - 1)
  t.equal(window.take('key', 1, 3).isAllowed, false)
  await clock.advance(1)
  t.match(window.take('key', 2, 3), { isAllowed: true, remaining: 0 })
})

t.test('more than the oldest may have to leave before a large amount fits', async t => {
  const clock = new FakeClock(START)
  const window = new SlidingWindow(clock)
  window.take('key', 1, 5)
  await clock.advance(10_000)
  window.take('key', 4, 5)
  const refused = window.take('key', 3, 5)
  t.equal(refused.retryAfterMs, 60_000)
  await clock.advance(60_000)
  t.equal(window.take('key', 3, 5).isAllowed, true)
})

t.test('an idle hour forgets everything', async t => {
  const clock = new FakeClock(START)
  const window = new SlidingWindow(clock)
  window.take('key', 5, 5)
  await clock.advance(3_600_000)
  t.match(window.take('key', 1, 5), { isAllowed: true, remaining: 4 })
})

t.test('a limit of 0 means unlimited', async t => {
  const window = new SlidingWindow(new FakeClock(START))
  t.same(window.take('key', 1_000_000, 0), {
    isAllowed: true,
    limit: UNLIMITED,
    remaining: UNLIMITED,
    resetAt: START + 60_000,
    retryAfterMs: 0,
  })
})

for (const stepMs of [5_000, 3_600_000, 86_400_000])
  t.test(
    `setting the clock by ${stepMs / 1_000} s, either way, forgives nothing and locks nobody out`,
    async t => {
      const clock = new FakeClock(START)
      const window = new SlidingWindow(clock)
      window.take('key', 3, 3)
      for (const step of [-stepMs, stepMs, stepMs]) {
        clock.jump(step)
        t.match(window.take('key', 1, 3), { isAllowed: false, retryAfterMs: 60_000 })
      }
      t.equal(window.take('key', 1, 3).resetAt, clock.now() + 60_000, 'as the clock shows it now')
      await clock.advance(60_000)
      t.equal(window.take('key', 3, 3).isAllowed, true)
    },
  )

t.test('of more names than are kept the one unused for longest is forgotten', async t => {
  const window = new SlidingWindow(new FakeClock(START))
  window.take('old', 1, 1)
  window.take('in use', 1, 1)
  for (let n = 0; n < 49_998; n += 1) window.take(`address ${n}`, 1, 1)
  t.equal(window.take('in use', 1, 1).isAllowed, false, 'still known')
  window.take('one more', 1, 1)
  t.equal(window.take('in use', 1, 1).isAllowed, false, 'use keeps it')
  t.equal(window.take('old', 1, 1).isAllowed, true, 'forgotten')
})

t.test('what is given back can be taken again, and no more than was counted', async t => {
  const clock = new FakeClock(START)
  const window = new SlidingWindow(clock)
  window.take('key', 2, 3)
  await clock.advance(5_000)
  window.take('key', 1, 3)
  window.giveBack('key', 2)
  t.equal(window.used('key'), 1)
  window.giveBack('key', 5)
  t.equal(window.used('key'), 0)
  t.equal(window.take('key', 3, 3).isAllowed, true)
  window.giveBack('nobody', 1)
  t.equal(window.used('nobody'), 0)
})

t.test('a window may be longer than a minute', async t => {
  const clock = new FakeClock(START)
  const window = new SlidingWindow(clock, 3_600_000)
  window.take('key', 1, 1)
  await clock.advance(59 * 60_000)
  t.match(window.take('key', 1, 1), { isAllowed: false, retryAfterMs: 60_000 })
  await clock.advance(60_000)
  t.equal(window.take('key', 1, 1).isAllowed, true)
})
