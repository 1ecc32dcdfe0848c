/** Who is drawn for the sample of an A/B test, and which variant wins: the rules themselves. */
import t from 'tap'
import { sampleSizes } from '../../src/campaigns/model/ab-test.js'
import { standing, winnerByRule } from '../../src/campaigns/ab-test/decision.js'
import { draw } from '../../src/campaigns/ab-test/draw.js'

const CAMPAIGN = '01890a5d-ac96-774b-bcce-b302099a8057'
const variants = (count: number) =>
  Array.from({ length: count }, () => ({ subject: null, templateId: null, fromEmail: null, fromName: null }))

t.test('a sample is divided equally, and everybody may be in it', t => {
  const sizes = (count: number, samplePercent: number | null, sampleSize: number | null, of: number) =>
    sampleSizes({ variants: variants(count), samplePercent, sampleSize }, of)
  t.same(sizes(2, 20, null, 1_000), [100, 100])
  t.same(sizes(3, 10, null, 1_000), [34, 33, 33])
  t.same(sizes(4, null, 10, 1_000), [3, 3, 2, 2])
  t.same(sizes(2, null, 500, 100), [50, 50], 'no more than there are')
  t.same(sizes(2, 100, null, 7), [4, 3])
  t.same(sizes(4, 1, null, 20), [1, 1, 1, 1], 'each variant is seen')
  t.same(sizes(4, 50, null, 2), [1, 1, 0, 0])
  t.same(sizes(2, 50, null, 0), [0, 0])
  t.end()
})

/** As the runner draws: in pieces of the given size. */
function drawAll(count: number, wanted: readonly number[], piece: number, campaignId = CAMPAIGN) {
  const contacts = Array.from({ length: count }, (_, at) => 10 + 3 * at)
  const open = [...wanted]
  const drawn: [number, number][] = []
  for (let at = 0; at < count; at += piece) {
    const found = draw({ campaignId, wanted: open, left: count - at }, contacts.slice(at, at + piece))
    for (const [, variant] of found) open[variant]! -= 1
    drawn.push(...found)
  }
  return drawn
}

t.test('the sample has exactly the asked sizes, and is the same in pieces of any size', t => {
  for (const [count, wanted] of [
    [1_000, [100, 100]],
    [500, [34, 33, 33]],
    [40, [20, 20]],
    [3, [1, 1, 1, 0]],
    [1, [1, 0]],
  ] as const) {
    const whole = drawAll(count, wanted, count)
    t.same(
      wanted.map((_, variant) => whole.filter(([, its]) => its === variant).length),
      wanted,
    )
    for (const piece of [1, 7, 100]) t.same(drawAll(count, wanted, piece), whole)
  }
  t.notSame(drawAll(1_000, [100, 100], 1_000, 'another'), drawAll(1_000, [100, 100], 1_000))
  t.end()
})

t.test('old and new contacts have the same chance of each variant', t => {
  const drawn = drawAll(20_000, [1_000, 1_000, 1_000], 500)
  for (const variant of [0, 1, 2]) {
    const own = drawn.filter(([, its]) => its === variant)
    const early = own.filter(([contact]) => contact < 10 + 3 * 10_000).length
    // Binomial with 1,000 trials: five standard deviations are 79.
    t.ok(Math.abs(early - 500) < 80, `${early} of 1000 are in the first half`)
  }
  t.end()
})

const outcome = (deliveries: number, uniqueClicks: number, uniqueOpens = uniqueClicks) => ({
  deliveries,
  uniqueClicks,
  uniqueOpens,
})

t.test('the variant with the highest rate is best, of equals the first', t => {
  t.match(standing('clicks', [outcome(100, 5), outcome(50, 4)]), { best: 1, leads: true, isClear: false })
  t.match(standing('opens', [outcome(100, 5, 60), outcome(100, 9, 40)]), { best: 0, leads: true })
  t.match(standing('clicks', [outcome(100, 5), outcome(100, 5)]), { best: 0, leads: false, isClear: false })
  t.match(standing('clicks', [outcome(0, 0), outcome(0, 0)]), { best: 0, leads: false, isClear: false })
  t.match(standing('clicks', [outcome(0, 0), outcome(0, 1)]), { best: 1 }, 'a click before its delivery')
  t.end()
})

t.test('a lead is clear if it would seldom be chance', t => {
  // Reference values of the two-proportion z-test: p = 0.0499 and 0.0510.
  t.equal(standing('clicks', [outcome(1_000, 128), outcome(1_000, 100)]).isClear, true)
  t.equal(standing('clicks', [outcome(1_000, 127), outcome(1_000, 100)]).isClear, false)
  const three = [outcome(1_000, 128), outcome(1_000, 100), outcome(1_000, 50)]
  t.equal(standing('clicks', three).isClear, false, 'over each of two others it has to be larger')
  t.equal(standing('clicks', [outcome(1_000, 140), ...three.slice(1)]).isClear, true)
  t.equal(standing('clicks', [outcome(3, 3), outcome(0, 0)]).isClear, false)
  t.end()
})

t.test('without a clear lead the best wins or a person decides, as the test says', t => {
  const close = [outcome(100, 5), outcome(100, 6)]
  const clear = [outcome(100, 5), outcome(100, 40)]
  t.equal(winnerByRule({ metric: 'clicks', ifUnclear: 'best' }, close), 1)
  t.equal(winnerByRule({ metric: 'clicks', ifUnclear: 'manual' }, close), undefined)
  t.equal(winnerByRule({ metric: 'clicks', ifUnclear: 'manual' }, clear), 1)
  t.end()
})
