/** Bounded resources shared by several holders: nobody takes what others need, and those who wait take turns. */
import t from 'tap'
import { FairGate, FairShares, FairTurns } from '../../src/core/fair-shares.js'
import { actFor, currentHolder, type Holder } from '../../src/core/holder.js'
import { nextTurn } from '../../src/world/time/clock.js'

const of = (owner: string, key?: string): Holder => (key === undefined ? { owner } : { owner, key })

/** Takes places until none is given. @returns how many */
function takeAll(shares: FairShares, holders: readonly Holder[]): number {
  let taken = 0
  for (let before = -1; taken > before;) {
    before = taken
    for (const holder of holders) if (shares.take(holder) === undefined) taken += 1
  }
  return taken
}

t.test('one owner gets half, two get a third each, and the next always finds a part', t => {
  const shares = new FairShares(120)
  t.equal(takeAll(shares, [of('w1')]), 60)
  t.equal(shares.take(of('w1')), 'owner')
  t.equal(takeAll(shares, [of('w2')]), 30, 'of what the first left')
  t.equal(takeAll(shares, [of('w3')]), 15)
  shares.release(of('w1'), 60)
  t.equal(shares.held, 45)
  t.equal(takeAll(new FairShares(120), [of('w1'), of('w2')]), 80)
  t.end()
})

t.test('many keys of one owner get no more than the owner, and divide that', t => {
  const shares = new FairShares(120)
  t.equal(takeAll(shares, [of('w1', 'a')]), 30)
  t.equal(takeAll(shares, [of('w1', 'b')]), 15, 'a part is left for the next key')
  const many = Array.from({ length: 100 }, (_, at) => of('w1', `k${at}`))
  t.equal(takeAll(shares, many), 15)
  t.equal(shares.held, 60)
  t.equal(takeAll(shares, [of('w2', 'a')]), 15)
  t.end()
})

t.test('an owner that holds nothing may take all that is left, even the last part', t => {
  const shares = new FairShares(4)
  t.equal(shares.take(of('w1')), undefined)
  t.equal(shares.take(of('w2'), 3), undefined)
  t.equal(shares.take(of('w3')), 'all')
  shares.release(of('w1'))
  t.equal(shares.take(of('w3')), undefined)
  t.end()
})

t.test('fixed limits per owner and per key hold as well', t => {
  const shares = new FairShares(100, { perOwner: 3, perKey: 2 })
  t.same(
    ['a', 'a', 'a', 'b', 'b'].map(key => shares.take(of('w1', key))),
    [undefined, undefined, 'key', undefined, 'owner'],
  )
  shares.release(of('w1', 'a'))
  t.equal(shares.take(of('w1', 'a')), undefined)
  t.end()
})

t.test('owners take turns, and so do the keys of each; within a key the oldest is first', t => {
  const turns = new FairTurns<string>()
  for (const item of ['a1', 'a2', 'a3']) turns.add(of('w1', 'a'), item)
  for (const item of ['b1', 'b2']) turns.add(of('w1', 'b'), item)
  turns.add(of('w2'), 'c1')
  t.equal(
    turns.next(item => item.endsWith('2')),
    'a2',
    'the first that may',
  )
  t.same(turns.clear(), ['c1', 'b1', 'a1', 'b2', 'a3'])
  t.equal(turns.next(), undefined)
  t.end()
})

t.test('a gate runs a few at a time, lets holders take turns, and goes on after a failure', async t => {
  const gate = new FairGate(2, 8, () => new Error('full'))
  const begun: string[] = []
  const ends: ((error?: Error) => void)[] = []
  const run = (owner: string, name: string) =>
    gate.run(of(owner), () => {
      begun.push(name)
      return new Promise<void>((resolve, reject) => ends.push(error => (error ? reject(error) : resolve())))
    })
  const all = ['a1', 'a2', 'a3', 'a4', 'a5'].map(name => run('w1', name))
  await t.rejects(run('w1', 'a6'), /full/)
  all.push(run('w2', 'b1'), run('w2', 'b2'))
  await nextTurn()
  t.same(begun, ['a1', 'b1'], 'one that is alone leaves a place for the next')
  const [first, ...others] = all
  ends[0]?.(new Error('broken'))
  await t.rejects(first!, /broken/)
  for (let at = 1; at < all.length; at += 1) {
    await nextTurn()
    ends[at]?.()
  }
  await Promise.all(others)
  t.same(begun, ['a1', 'b1', 'a2', 'b2', 'a3', 'a4', 'a5'])
})

t.test('what a request waits for knows on whose behalf, and the appliance works for nobody', async t => {
  const seen: Holder[] = []
  const later = async () => {
    await nextTurn()
    seen.push(currentHolder())
  }
  await Promise.all([actFor(of('w1', 'a'), later), actFor(of('w2'), later), later()])
  t.same(seen, [of('w1', 'a'), of('w2'), of('appliance')])
})
