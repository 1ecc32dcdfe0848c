/** Work in turns: until nothing is left, with ever longer rests after failures, and no wake lost. */
import t from 'tap'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { RetryingLoop } from '../../src/world/time/retrying-loop.js'

/** @param turns what each one does; the last one over and over */
function loopOf(turns: readonly (() => boolean)[]) {
  const clock = new FakeClock()
  const rests: number[] = []
  let taken = 0
  const loop = new RetryingLoop({
    clock,
    backoffMs: failures => 1_000 * failures,
    runBatch: () => Promise.resolve((turns[taken++] ?? turns.at(-1) ?? (() => false))()),
    afterBatch: () => Promise.resolve(),
    onFailure: (_, retryInMs) => rests.push(retryInMs),
  })
  return { clock, loop, rests, taken: () => taken }
}

const more = () => true
const done = () => false
const fail = (): boolean => {
  throw new Error('the disk is gone')
}

t.test('batches follow each other while there may be more', async t => {
  const { loop, taken } = loopOf([more, more, done])
  loop.wake()
  await loop.stop()
  t.equal(taken(), 1, 'but for the one in hand when it is stopped')
  const other = loopOf([more, more, done])
  other.loop.wake()
  await new Promise(setImmediate)
  t.equal(other.taken(), 3)
})

t.test('a wake during the last batch starts another', async t => {
  const woken = loopOf([
    () => {
      woken.loop.wake()
      return false
    },
    done,
  ])
  woken.loop.wake()
  await new Promise(setImmediate)
  t.equal(woken.taken(), 2)
})

t.test('back-off grows with each failure, ignores wakes, and resets after a success', async t => {
  const succeed = () => {
    loop.resetBackoff()
    return fail()
  }
  const { clock, loop, rests, taken } = loopOf([fail, fail, succeed, done])
  loop.wake()
  for (const seen of [1, 2, 3]) {
    await new Promise(setImmediate)
    loop.wake()
    t.equal(taken(), seen, 'it rests')
    await clock.advance(rests.at(-1) ?? 0)
  }
  await new Promise(setImmediate)
  t.equal(taken(), 4)
  t.same(rests, [1_000, 2_000, 1_000])
})
