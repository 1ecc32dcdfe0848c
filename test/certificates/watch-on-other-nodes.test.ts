/** Certificate files of a node that does not run the jobs. */
import t from 'tap'
import { watchOnOtherNodes } from '../../src/certificates/watch-certificate.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

t.test('files are watched on every node, by one watch on each', async t => {
  const clock = new FakeClock()
  let isRunningJobs = false
  let looks = 0
  const watch = {
    name: 'watch',
    schedule: '* * * * *',
    run: async () => {
      looks += 1
    },
  }
  const stop = watchOnOtherNodes(clock, watch, () => isRunningJobs)
  await clock.advance(60_000)
  await clock.advance(60_000)
  t.equal(looks, 2, 'every minute')
  isRunningJobs = true
  await clock.advance(60_000)
  t.equal(looks, 2, 'not beside the scheduler')
  isRunningJobs = false
  await clock.advance(60_000)
  t.equal(looks, 3, 'again once other nodes run the jobs')
  stop()
  await clock.advance(120_000)
  t.equal(looks, 3)
})
