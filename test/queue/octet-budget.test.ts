/** Memory for large messages, shared by the deliveries under way. */
import t from 'tap'
import { OctetBudget } from '../../src/queue/octet-budget.js'
import { settleDown } from '../support/turns.js'

t.test('who asks for more than is left waits, in order, until others give back', async t => {
  const budget = new OctetBudget(100)
  const order: string[] = []
  const take = async (name: string, octets: number) => {
    const giveBack = await budget.take(octets)
    order.push(name)
    return giveBack
  }
  const first = await take('first', 60)
  const second = take('second', 60)
  const third = take('third', 10)
  await settleDown()
  t.same(order, ['first'], 'the third does not overtake')
  first()
  first()
  await settleDown()
  t.same(order, ['first', 'second', 'third'])
  ;(await second)()
  ;(await third)()
  t.type(await take('fourth', 100), 'function')
})

t.test('one that is larger than all of it passes alone', async t => {
  const budget = new OctetBudget(100)
  const giveBack = await budget.take(1_000)
  let hasPassed = false
  const other = budget.take(1).then(giveOther => {
    hasPassed = true
    return giveOther
  })
  await settleDown()
  t.equal(hasPassed, false)
  giveBack()
  await other
  t.equal(hasPassed, true)
})
