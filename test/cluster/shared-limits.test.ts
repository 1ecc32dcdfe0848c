/** Limits that nodes keep together: never exceeded in all, and wholly usable however requests are spread. */
import t from 'tap'
import type { Asked, Drawn } from '../../src/cluster/limit-use-store.js'
import { SharedLimits } from '../../src/cluster/shared-limits.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const MINUTE = 60_000

/** What the database does, in memory (`limit-use-store.postgres.ts` holds the statement to the same). */
class Table {
  readonly held = new Map<string, Map<string, { held: number; until: number }>>()

  draw(now: number, node: string, nodes: number, asked: readonly Asked[]): Drawn[] {
    return asked.map(({ name, limit, used, need, extra, keepMs }) => {
      const parts = this.held.get(name) ?? new Map<string, { held: number; until: number }>()
      this.held.set(name, parts)
      let others = 0
      for (const [id, part] of parts) if (id !== node && part.until > now) others += part.held
      const spare = Math.max(0, Math.min(extra, Math.floor((limit - others - need) / (2 * nodes))))
      const held = Math.max(used, Math.min(need + spare, limit - others))
      parts.set(node, { held, until: now + keepMs })
      return { name, held, others }
    })
  }
}

interface Faults {
  readonly delay?: () => number
  readonly isDown?: boolean
}

function openNodes(count: number, { delay = () => 2, isDown = false }: Faults = {}) {
  const clock = new FakeClock()
  const table = new Table()
  const state = { count, statements: 0 }
  const nodes = Array.from({ length: count }, (_, at) => {
    const limits = new SharedLimits({
      clock,
      log: new FakeLog(),
      nodes: () => state.count,
      async draw(nodes, asked) {
        state.statements += 1
        await clock.sleep(delay())
        if (isDown) throw new Error('gone')
        const drawn = table.draw(clock.now(), `n${at}`, nodes, asked)
        await clock.sleep(delay())
        return drawn
      },
    })
    limits.start()
    return { limits, window: limits.window('test') }
  })
  const ask = async (at: number, amount: number, limit: number) => {
    const { window } = nodes[at % count] ?? nodes[0]!
    await window.prepare('key', amount, limit)
    return window.take('key', amount, limit)
  }
  return { clock, state, nodes, ask }
}

/** Most that was counted in a minute; counters have buckets of a second. */
function mostInAMinute(taken: readonly { at: number; amount: number }[]): number {
  let most = 0
  let sum = 0
  let first = 0
  for (const { at, amount } of taken) {
    sum += amount
    for (let one; (one = taken[first]) && one.at <= at - MINUTE + 1_000; first += 1) sum -= one.amount
    most = Math.max(most, sum)
  }
  return most
}

t.test('random requests at one to five nodes never exceed the limit in any minute by 5 %', async t => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = new SeededRandom(seed)
    const upTo = (most: number) => Math.floor(random.fraction() * most)
    const count = 1 + upTo(5)
    const limit = 1 + upTo(seed % 2 === 0 ? 20 : 400)
    const { clock, ask } = openNodes(count, { delay: () => 1 + upTo(40) })
    const taken: { at: number; amount: number }[] = []
    const pace = 1 + upTo((2 * MINUTE) / limit)
    let favourite = 0
    for (let elapsed = 0; elapsed < 3 * MINUTE;) {
      if (upTo(100) === 0) favourite = upTo(count)
      const gap = upTo(pace)
      elapsed += gap
      await clock.advance(gap)
      const amount = Math.min(limit, 1 + upTo(3))
      const at = upTo(3) === 0 ? upTo(count) : favourite
      void ask(at, amount, limit).then(state => {
        if (state.isAllowed) taken.push({ at: clock.monotonic(), amount })
      })
    }
    await clock.advance(5_000)
    const most = mostInAMinute(taken)
    t.ok(most <= limit * 1.05, `seed ${seed}: ${most} of ${limit} at ${count} nodes`)
    t.ok(
      most >= limit * 0.7 - 1 || most >= limit - 3,
      `seed ${seed}: usable, ${most} of ${limit} at ${count} nodes`,
    )
  }
})

t.test('the whole limit is usable at one node, at once', async t => {
  const { clock, ask } = openNodes(4)
  const states = Array.from({ length: 70 }, () => ask(2, 1, 60))
  await clock.advance(500)
  t.equal((await Promise.all(states)).filter(({ isAllowed }) => isAllowed).length, 60)
})

t.test('an amount as large as the limit is allowed whole at any node', async t => {
  const { clock, ask } = openNodes(3)
  const first = ask(1, 60, 60)
  await clock.advance(500)
  t.match(await first, { isAllowed: true, remaining: 0 })
  const second = ask(0, 1, 60)
  await clock.advance(500)
  t.match(await second, { isAllowed: false, limit: 60, remaining: 0 })
})

t.test('a few per minute stay usable when requests alternate between nodes', async t => {
  const { clock, ask } = openNodes(5)
  const allowed: boolean[] = []
  for (let at = 0; at < 6; at += 1) {
    const state = ask(at, 1, 5)
    await clock.advance(300)
    allowed.push((await state).isAllowed)
  }
  t.same(allowed, [true, true, true, true, true, false])
  await clock.advance(MINUTE + 2_000)
  const later = ask(3, 1, 5)
  await clock.advance(300)
  t.equal((await later).isAllowed, true, 'once the first have left the minute')
})

t.test('what a node does not use is soon left to the others', async t => {
  const { clock, ask } = openNodes(2)
  for (let at = 0; at < 20; at += 1) {
    const state = ask(0, 1, 100)
    await clock.advance(10)
    await state
  }
  await clock.advance(10_000)
  const rest = ask(1, 80, 100)
  await clock.advance(500)
  t.equal((await rest).isAllowed, true)
})

t.test(
  'a busy key costs about a statement a second at each node, however many requests it makes',
  async t => {
    const { clock, state, ask } = openNodes(2)
    for (let at = 0; at < 4_000; at += 1) {
      void ask(at, 1, 1_000_000)
      await clock.advance(5)
    }
    t.ok(state.statements < 2 * 20 * 3, `${state.statements} statements in 20 seconds`)
  },
)

t.test('alone, a node asks nobody', async t => {
  const { clock, state, ask } = openNodes(1)
  for (let at = 0; at < 10; at += 1) t.equal((await ask(0, 1, 10)).isAllowed, true)
  await clock.advance(5_000)
  t.equal((await ask(0, 1, 10)).isAllowed, false)
  t.equal(state.statements, 0)
})

t.test('what was counted before other nodes came, they learn', async t => {
  const { clock, state, nodes, ask } = openNodes(2)
  state.count = 1
  for (let at = 0; at < 50; at += 1) nodes[0]?.window.take('key', 1, 60)
  state.count = 2
  await clock.advance(2_000)
  const more = Array.from({ length: 30 }, () => ask(1, 1, 60))
  await clock.advance(500)
  t.equal((await Promise.all(more)).filter(({ isAllowed }) => isAllowed).length, 10)
})

t.test('without the database each node allows its equal share', async t => {
  const { clock, ask } = openNodes(3, { isDown: true })
  const states = Array.from({ length: 60 }, (_, at) => ask(at, 1, 30))
  await clock.advance(5_000)
  t.equal((await Promise.all(states)).filter(({ isAllowed }) => isAllowed).length, 30)
})
