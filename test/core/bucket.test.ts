/** Buckets of texts: kept in the database, so that the same text has to fall into the same one for ever. */
import t from 'tap'
import { bucketOf } from '../../src/core/bucket.js'

t.test('a text is in the bucket that it has always been in', async t => {
  t.equal(bucketOf(''), 0x81 ^ 0x1c ^ 0x9d ^ 0xc5)
  t.same(['ann@one.test', 'bob@two.test', 'ünal@xn--bcher-kva.test'].map(bucketOf), [225, 58, 78])
})

t.test('texts that differ in a digit are spread over all buckets evenly', async t => {
  const counts = new Array<number>(256).fill(0)
  for (let number = 0; number < 25_600; number += 1) {
    const bucket = bucketOf(`reader${number}@example.test`)
    counts[bucket] = (counts[bucket] ?? 0) + 1
  }
  t.equal(counts.length, 256)
  t.ok(Math.min(...counts) > 50, `the emptiest has ${Math.min(...counts)} of 100`)
  t.ok(Math.max(...counts) < 200, `the fullest has ${Math.max(...counts)} of 100`)
})
