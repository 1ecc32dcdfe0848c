/** Retry delays. */
import t from 'tap'
import { retryDelayMs } from '../../src/core/backoff.js'

const policy = { firstMs: 300_000, factor: 1.5, maxMs: 14_400_000 }
/** The random number that adds no jitter. */
const MIDDLE = 0.5

t.test('the first retry comes after the first delay and the following ones grow by the factor', async t => {
  t.equal(retryDelayMs(policy, 1, MIDDLE), 300_000)
  t.equal(retryDelayMs(policy, 2, MIDDLE), 450_000)
  t.equal(retryDelayMs(policy, 3, MIDDLE), 675_000)
})

t.test('no delay exceeds the maximum, however many failures', async t => {
  t.equal(retryDelayMs(policy, 20, MIDDLE), 14_400_000)
  t.equal(retryDelayMs(policy, 100_000, MIDDLE), 14_400_000)
})

t.test('jitter varies a delay by a tenth in both directions', async t => {
  t.equal(retryDelayMs(policy, 1, 0), 270_000)
  t.equal(retryDelayMs(policy, 1, 0.999999), 330_000)
})

t.test('a factor of one retries at a constant interval', async t => {
  t.equal(retryDelayMs({ ...policy, factor: 1 }, 50, MIDDLE), 300_000)
})
