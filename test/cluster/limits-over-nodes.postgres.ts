/** Limits of forms and of unsigned inbound mail hold over two nodes. */
import t, { type Test } from 'tap'
import { FormAllowance } from '../../src/audience/forms/form-allowance.js'
import type { Form } from '../../src/audience/forms/form.js'
import { drawLimits } from '../../src/cluster/limit-use-store.js'
import { SharedLimits } from '../../src/cluster/shared-limits.js'
import type { OpenWindow } from '../../src/http/sliding-window.js'
import { IntakeLimiter, type IntakeLimits } from '../../src/inbound/intake/intake-limiter.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemClock as clock } from '../../src/world/time/clock.js'
import { postgresDatabase } from '../support/db/database.js'
import { endPostgres } from '../support/db/postgres.js'

t.teardown(endPostgres)

const form = { id: 'f1', workspaceId: 'w1' } as Form

/** How each of two nodes opens windows. */
async function openTwo(t: Test): Promise<OpenWindow[]> {
  const { shared } = await postgresDatabase(t)
  if (!shared) throw new Error('not shared')
  return ['n1', 'n2'].map(id => {
    const limits = new SharedLimits({
      clock,
      log: new FakeLog(),
      nodes: () => 2,
      draw: (nodes, asked) => drawLimits(shared, id, nodes, asked),
    })
    limits.start()
    t.teardown(() => limits.stop())
    return (kind, windowMs) => limits.window(kind, windowMs)
  })
}

/** By turns, so often. @returns how many were let in, and what the others were refused with */
async function letIn<Node>(
  nodes: readonly Node[],
  times: number,
  ask: (node: Node, at: number) => Promise<unknown>,
) {
  let count = 0
  const refusals = new Set<unknown>()
  for (let at = 0; at < times; at += 1)
    try {
      const node = nodes[at % nodes.length]
      if (node) await ask(node, at)
      count += 1
    } catch (error) {
      refusals.add((error as { code: unknown }).code)
    }
  return { count, refusals: [...refusals] }
}

t.test('an address submits a form 20 times a minute over both nodes', async t => {
  const nodes = (await openTwo(t)).map(openWindow => new FormAllowance(clock, openWindow))
  const submissions = await letIn(nodes, 50, node => node.takeSubmission(form.id, '203.0.113.7'))
  t.same(submissions, { count: 20, refusals: ['rate_limited'] })
  const elsewhere = await letIn(nodes, 10, node => node.takeSubmission(form.id, '198.51.100.7'))
  t.equal(elsewhere.count, 10)
})

t.test('a network causes 60 confirmations an hour over both nodes', async t => {
  const nodes = (await openTwo(t)).map(openWindow => new FormAllowance(clock, openWindow))
  const asked = await letIn(nodes, 120, async (node, at) => {
    const asking = { form, hourlyLimit: 0, dailyLimit: 0, address: '203.0.113.7' }
    await node.prepareConfirmation(asking)
    return node.takeConfirmation(asking, `visitor${at}@shop.example`)
  })
  t.same(asked, { count: 60, refusals: ['rate_limited'] })
})

t.test('a host sends both nodes together as much unsigned mail as is allowed', async t => {
  const limits: IntakeLimits = { mailsPerMinute: 30, octetsPerHour: 1_024_000, octetsPerHourInAll: 1_536_000 }
  const nodes = (await openTwo(t)).map(openWindow => new IntakeLimiter(limits, clock, openWindow))
  t.same(await letIn(nodes, 60, node => node.beginUnsigned('203.0.113.7')), { count: 30, refusals: [421] })
  const of = (peer: string) => letIn(nodes, 150, node => node.takeUnsigned(peer, 0, 10_240))
  const one = await of('203.0.113.7')
  t.same(one.refusals, [452])
  t.ok(one.count >= 95 && one.count <= 100, `${one.count} of 100`)
  const other = await of('198.51.100.7')
  const all = one.count + other.count
  t.ok(all >= 143 && all <= 150, `${all} of 150 from all hosts together`)
})

t.test('a small mail in small pieces counts as what it is', async t => {
  const limits: IntakeLimits = { mailsPerMinute: 0, octetsPerHour: 10_240, octetsPerHourInAll: 0 }
  const limiter = new IntakeLimiter(limits, clock)
  for (let size = 0; size < 10_240; size += 100)
    await limiter.takeUnsigned('203.0.113.7', size, Math.min(size + 100, 10_240))
  await t.rejects(limiter.takeUnsigned('203.0.113.7', 10_240, 10_241), { code: 452 })
})
