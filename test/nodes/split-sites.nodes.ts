/** A destination with much mail is delivered to by both nodes, which keep the rate of its site together. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openTwo } from '../support/program/nodes.js'

const MESSAGES = 1_500
const PER_SECOND = 20
const SITE = { domain: 'big.test', connections: 8, messages_per_minute: 60 * PER_SECOND }
/** How long both are watched. */
const WATCHED_MS = 15_000

t.test('two nodes deliver to a site with much mail, and keep its rate within 5 %', async t => {
  const { sink, first, one, two } = await openTwo(t, { POSTROAD_MTA_SITES: JSON.stringify([SITE]) })
  first.sql('update workspaces set hourly_limit = 100000, daily_limit = 100000')
  await sleep(3_000)
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
  const begin = performance.now()
  const seen: { at: number; accepted: number; nodes: readonly string[] }[] = []
  let bothAt = Infinity
  while (performance.now() < Math.min(bothAt + WATCHED_MS, begin + 40_000)) {
    const nodes = first
      .sql<{ claimed_by: string }>('select distinct claimed_by from queue where claimed_by is not null')
      .map(row => row.claimed_by)
    seen.push({ at: performance.now(), accepted: sink.accepted.length, nodes })
    if (nodes.length > 1) bothAt = Math.min(bothAt, performance.now())
    await sleep(250)
  }
  t.ok(bothAt < Infinity, 'both deliver')
  // After quiet, a sixth of a minute's messages may go at once.
  const burst = (60 * PER_SECOND) / 6
  const most = (ms: number) => burst + (PER_SECOND * (ms + 1_000) * 1.05) / 1_000
  t.same(
    seen.filter(({ at, accepted }) => accepted > most(at - begin)).map(({ accepted }) => accepted),
    [],
    'never more than the rate allows',
  )
  const both = seen.filter(({ at }) => at >= bothAt)
  const [from, to] = [both[0], both.at(-1)]
  if (!from || !to) return
  const rate = (to.accepted - from.accepted) / ((to.at - from.at) / 1_000)
  t.comment(`${rate.toFixed(1)} messages per second by both, of ${PER_SECOND}`)
  t.ok(rate >= PER_SECOND * 0.6, 'the rate is used')
  const shares = new Set(both.flatMap(({ nodes }) => nodes))
  t.equal(shares.size, 2)
  t.equal(
    new Set(sink.accepted.map(({ recipients }) => recipients.join())).size,
    sink.accepted.length,
    'each once',
  )
})
