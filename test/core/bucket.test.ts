/** Buckets are stored in the database, so a text must always hash to the same one. */
import t from 'tap'
import { bucketOf } from '../../src/core/bucket.js'

t.test('the bucket of a text never changes', async t => {
  t.equal(bucketOf(''), 0x81 ^ 0x1c ^ 0x9d ^ 0xc5)
  t.same(['ann@one.test', 'bob@two.test', 'ünal@xn--bcher-kva.test'].map(bucketOf), [225, 58, 78])
})

t.test('texts that differ in a digit are spread evenly over all buckets', async t => {
  const counts = new Array<number>(256).fill(0)
  for (let number = 0; number < 25_600; number += 1) {
    const bucket = bucketOf(`reader${number}@example.test`)
    counts[bucket] = (counts[bucket] ?? 0) + 1
  }
  t.equal(counts.length, 256)
  t.ok(Math.min(...counts) > 50, `the emptiest has ${Math.min(...counts)} of 100`)
  t.ok(Math.max(...counts) < 200, `the fullest has ${Math.max(...counts)} of 100`)
})
