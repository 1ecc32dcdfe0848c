/** A destination with much mail is delivered to by both nodes, which keep the rate of its site together. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openTwo } from '../support/program/nodes.js'
import { until } from '../support/until.js'

const MESSAGES = 1_500
const PER_SECOND = 20
const SITE = { domain: 'big.test', connections: 8, messages_per_minute: 60 * PER_SECOND }
/** Messages that are counted while both deliver: six seconds of the rate. */
const WATCHED = 6 * PER_SECOND
/** Between two samples. */
const SAMPLE_MS = 250

t.test('two nodes deliver to a site with much mail, and keep its rate within 5 %', async t => {
  const { sink, first, one, two } = await openTwo(t, { POSTROAD_MTA_SITES: JSON.stringify([SITE]) })
  const begin = performance.now()
  const answers = await Promise.all(
    Array.from({ length: MESSAGES / 100 }, (_, part) =>
      (part % 2 === 0 ? one : two).send(first.key, {
        to: Array.from({ length: 100 }, (_, at) => `p${part}.${at}@big.test`),
        from_email: 'shop@sender.test',
        subject: 'Hello',
        html: '<p>Hello</p>',
      }),
    ),
  )
  t.same([...new Set(answers.map(({ status }) => status))], [200])
  // After quiet, a sixth of a minute's messages may go at once.
  const burst = (60 * PER_SECOND) / 6
  const seen: { at: number; accepted: number; nodes: readonly string[] }[] = []
  const look = () => {
    const nodes = first
      .sql<{ claimed_by: string }>('select distinct claimed_by from queue where claimed_by is not null')
      .map(row => row.claimed_by)
    seen.push({ at: performance.now(), accepted: sink.accepted.length, nodes })
  }
  /** Samples after the burst, from when both were seen. */
  const steady = () => {
    const bothAt = seen.findIndex(({ nodes }) => nodes.length > 1)
    return bothAt < 0 ? [] : seen.slice(bothAt).filter(({ accepted }) => accepted >= burst)
  }
  await until(
    'enough to be delivered by both',
    async () => {
      look()
      const samples = steady()
      if ((samples.at(-1)?.accepted ?? 0) - (samples[0]?.accepted ?? 0) >= WATCHED) return true
      await sleep(SAMPLE_MS)
      return false
    },
    60_000,
  )
  const most = (ms: number) => burst + (PER_SECOND * (ms + 1_000) * 1.05) / 1_000
  t.same(
    seen.filter(({ at, accepted }) => accepted > most(at - begin)).map(({ accepted }) => accepted),
    [],
    'never more than the rate allows',
  )
  const samples = steady()
  const [from, to] = [samples[0], samples.at(-1)]
  if (!from || !to) throw new Error('no samples')
  const rate = (to.accepted - from.accepted) / ((to.at - from.at) / 1_000)
  t.comment(`${rate.toFixed(1)} messages per second by both, of ${PER_SECOND}`)
  // A node alone with its half would make half of it.
  t.ok(rate >= PER_SECOND * 0.6, 'the rate is used')
  const shares = new Set(samples.flatMap(({ nodes }) => nodes))
  t.equal(shares.size, 2)
  t.equal(
    new Set(sink.accepted.map(({ recipients }) => recipients.join())).size,
    sink.accepted.length,
    'each once',
  )
})
