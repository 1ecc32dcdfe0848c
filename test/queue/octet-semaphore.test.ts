/** Memory for large messages, shared out by site. */
import t from 'tap'
import { OctetSemaphore } from '../../src/queue/claiming/octet-semaphore.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const site = (name: string) => ({ name })

function openBudget() {
  let freed = 0
  const clock = new FakeClock()
  const budget = new OctetSemaphore<{ name: string }>(clock, 100, () => (freed += 1))
  return { clock, budget, freed: () => freed }
}

t.test('a site gets a quarter, or one larger message if it holds nothing', t => {
  const { budget, freed } = openBudget()
  const a = site('a')
  const first = budget.take(a, 20, true)
  t.ok(first)
  t.notOk(budget.take(a, 20, true))
  t.notOk(budget.mayTake(a))
  const large = budget.take(site('b'), 60, true)
  t.ok(large, 'another site is not behind it')
  first?.()
  first?.()
  t.equal(freed(), 1)
  t.ok(budget.mayTake(a))
  t.ok(budget.take(a, 20, true))
  t.equal(budget.heldOctets, 80)
  t.end()
})

t.test('unproven sites share half of the memory', t => {
  const { budget } = openBudget()
  const held = Array.from({ length: 8 }, (_, n) => budget.take(site(`tarpit ${n}`), 10, false))
  t.equal(held.filter(Boolean).length, 5)
  t.ok(budget.take(site('answers'), 25, true))
  t.end()
})

t.test('a message larger than the limit is admitted alone', t => {
  const { budget } = openBudget()
  const small = budget.take(site('a'), 1, true)
  const huge = site('b')
  t.notOk(budget.take(huge, 1_000, true))
  small?.()
  t.ok(budget.take(huge, 1_000, true))
  t.notOk(budget.take(site('c'), 1, true))
  t.end()
})

t.test('a denied large request is not starved by smaller ones', async t => {
  const { budget, clock } = openBudget()
  const first = budget.take(site('a'), 60, true)
  const second = budget.take(site('b'), 20, true)
  const waits = site('waits')
  const other = site('other')
  t.notOk(budget.take(waits, 50, true))
  t.notOk(budget.mayTake(other))
  t.notOk(budget.take(other, 1, true))
  second?.()
  t.notOk(budget.mayTake(other), 'still too little for the first')
  t.notOk(budget.mayTake(waits))
  first?.()
  t.ok(budget.take(waits, 50, true))
  t.ok(budget.take(other, 1, true))
  const gone = site('gone')
  t.notOk(budget.take(gone, 60, true))
  t.notOk(budget.mayTake(site('third')))
  await clock.advance(30_000)
  t.ok(budget.mayTake(site('third')), 'a site that does not come back holds nobody up')
})
