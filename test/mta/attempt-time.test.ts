/** The time limit of one attempt, over all hosts and addresses of a domain. */
import t from 'tap'
import type { Outcome } from '../../src/mail/outcome.js'
import { scriptedServer } from '../support/smtp/scripted-server.js'
import { goOn, makeJob, testMta, timeouts, type Place, type TestMta } from '../support/smtp/mta.js'
import { until } from '../support/until.js'

const addresses = Array.from({ length: 10 }, (_, index) => `192.0.2.${index + 1}`)
const zone = {
  'example.com': { MX: addresses.map((_, index) => `${index} mx${index}.example`) },
  ...Object.fromEntries(addresses.map((address, index) => [`mx${index}.example`, { A: [address] }])),
}

/** A step of the clock; what takes longer than one of them in earnest only makes the attempt look longer. */
const STEP_MS = 5_000

/** Delivers while the clock runs. @returns the outcome and its duration */
async function timed({ agent, clock }: TestMta): Promise<{ outcome: Outcome; tookMs: number }> {
  const startedAt = clock.monotonic()
  let outcome: Outcome | undefined
  void agent.deliver(makeJob(), goOn).then(known => (outcome = known))
  const known = await until('the attempt to end', async () => {
    if (outcome === undefined) await clock.advance(STEP_MS)
    return outcome
  })
  return { outcome: known, tookMs: clock.monotonic() - startedAt }
}

t.test("ten hosts that never greet are all tried within the attempt's time limit", async t => {
  const silent = await scriptedServer(t, ...addresses.map(() => 'STALL'))
  const mta = testMta(t, { '*': silent }, { zone })
  const { outcome, tookMs } = await timed(mta)
  t.match(outcome, { kind: 'deferred', subtype: 'timeout' })
  t.same(mta.dialler.dialled, addresses)
  t.ok(tookMs <= timeouts.attemptMs + STEP_MS, `took ${tookMs} ms`)
})

t.test('nine hosts that never greet leave the tenth its time', async t => {
  const silent = await scriptedServer(t, ...addresses.slice(1).map(() => 'STALL'))
  const healthy = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250 mx.example
     C MAIL ...
     S 250 ok
     C RCPT ...
     S 250 ok
     C DATA
     S 354 go on
     M
     S 250 ok`,
  )
  const places: Record<string, Place> = { '*': silent, '192.0.2.10': healthy }
  const { outcome } = await timed(testMta(t, places, { zone }))
  t.match(outcome, { kind: 'delivered', remoteMta: 'mx9.example' })
})

t.test('a host that is slow at each step gets no more time than the others', async t => {
  const slow = await scriptedServer(t, 'S 220 mx.example ESMTP\nC EHLO ...\nSTALL')
  const mta = testMta(t, { '192.0.2.25': slow }, { timeouts: { ...timeouts, attemptMs: 60_000 } })
  const { outcome, tookMs } = await timed(mta)
  t.match(outcome, { kind: 'deferred', subtype: 'timeout', tried: [{ stage: 'ehlo' }] })
  t.ok(tookMs <= 60_000 + STEP_MS, `took ${tookMs} ms`)
})
