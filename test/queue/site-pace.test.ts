import t from 'tap'
import { paceSignal, siteBackoff, SitePace } from '../../src/queue/pacing/site-pace.js'
import { classifyReply } from '../../src/mail/classify/classify.js'
import type { Outcome } from '../../src/mail/outcome.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { bounced } from '../support/outcomes.js'

const MINUTE_MS = 60_000

function openPace(
  limits: { connections?: number; messagesPerMinute?: number } = {},
  retry = { firstMs: 5 * MINUTE_MS, factor: 1.5, maxMs: 240 * MINUTE_MS },
) {
  const clock = new FakeClock()
  const all = { connections: 20, messagesPerMinute: 0, ...limits }
  return { clock, pace: new SitePace(clock, all, siteBackoff(retry)) }
}

/** Begins and ends one delivery. */
function deliver(pace: SitePace, ...kinds: ('success' | 'neutral' | 'busy' | 'unreachable')[]) {
  for (const kind of kinds) {
    pace.reserve(1)
    pace.end({ kind })
  }
}

function asked(pace: SitePace, waitMs?: number) {
  pace.reserve(1)
  pace.end({ kind: 'asked', waitMs })
}

const many = (count: number) => Array.from({ length: count }, () => 'success' as const)

t.test('a site starts small and grows with success up to its limit', async t => {
  const { pace } = openPace({ connections: 10 })
  t.equal(pace.freeSlots, 1, 'no host has answered yet')
  deliver(pace, 'neutral')
  t.equal(pace.freeSlots, 4)
  deliver(pace, 'success', 'success')
  t.equal(pace.freeSlots, 6)
  deliver(pace, ...many(50))
  t.equal(pace.freeSlots, 10)
})

t.test('a site never exceeds a small limit', async t => {
  const { pace } = openPace({ connections: 1 })
  t.equal(pace.freeSlots, 1)
  pace.reserve(1)
  t.equal(pace.freeSlots, 0)
  pace.release(1)
  t.equal(pace.freeSlots, 1)
})

t.test('ten sessions that fail together halve the pace once', async t => {
  const { pace, clock } = openPace()
  deliver(pace, ...many(40))
  t.equal(pace.freeSlots, 20)
  pace.reserve(10)
  for (let session = 0; session < 10; session += 1) pace.end({ kind: 'busy' })
  t.equal(pace.freeSlots, 10)
  await clock.advance(5_000)
  deliver(pace, 'busy')
  t.equal(pace.freeSlots, 5)
})

t.test('after failures the pace grows back slowly', async t => {
  const { pace } = openPace()
  deliver(pace, ...many(40), 'busy')
  t.equal(pace.freeSlots, 10)
  deliver(pace, ...many(10))
  t.equal(pace.freeSlots, 10, 'one window of successes is not yet a whole step')
  deliver(pace, 'success')
  t.equal(pace.freeSlots, 11)
})

t.test('a site that names a delay backs off that long, then one message probes it', async t => {
  const { pace, clock } = openPace()
  asked(pace, 90_000)
  t.equal(pace.freeSlots, 0)
  t.equal(pace.nextSlotAt, clock.monotonic() + 90_000)
  await clock.advance(89_999)
  t.equal(pace.freeSlots, 0)
  await clock.advance(1)
  t.equal(pace.freeSlots, 1)
  deliver(pace, 'success')
  t.ok(pace.freeSlots > 1, 'the site is open again')
})

t.test('a requested delay is capped at an hour', async t => {
  const { pace, clock } = openPace()
  asked(pace, 5 * 86_400_000)
  t.equal(pace.nextSlotAt, clock.monotonic() + 3_600_000)
})

t.test('back-offs grow while probes fail', async t => {
  const { pace, clock } = openPace()
  const rests: number[] = []
  for (let round = 0; round < 7; round += 1) {
    asked(pace)
    rests.push((pace.nextSlotAt ?? 0) - clock.monotonic())
    await clock.advance(rests.at(-1) ?? 0)
  }
  t.same(rests, [30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000])
})

t.test('no back-off exceeds the retry delays', async t => {
  const { pace, clock } = openPace({}, { firstMs: 1_000, factor: 2, maxMs: 5_000 })
  const rests: number[] = []
  for (let round = 0; round < 5; round += 1) {
    asked(pace)
    rests.push((pace.nextSlotAt ?? 0) - clock.monotonic())
    await clock.advance(rests.at(-1) ?? 0)
  }
  t.same(rests, [1_000, 2_000, 4_000, 5_000, 5_000])
})

t.test('sessions open when the back-off began do not extend it', async t => {
  const { pace, clock } = openPace()
  pace.reserve(4)
  pace.end({ kind: 'asked', waitMs: undefined })
  const until = pace.nextSlotAt
  await clock.advance(1_000)
  for (let session = 0; session < 3; session += 1) pace.end({ kind: 'asked', waitMs: undefined })
  t.equal(pace.nextSlotAt, until)
})

t.test('twenty successes reset the back-off count', async t => {
  const { pace, clock } = openPace()
  asked(pace)
  await clock.advance(30_000)
  deliver(pace, ...many(20))
  asked(pace)
  t.equal((pace.nextSlotAt ?? 0) - clock.monotonic(), 30_000)
})

t.test('three consecutive failures start a back-off; an answer resets the count', async t => {
  const { pace, clock } = openPace()
  deliver(pace, 'neutral', 'unreachable', 'unreachable', 'neutral', 'unreachable', 'unreachable')
  t.notOk(pace.isBackingOff)
  deliver(pace, 'unreachable')
  t.ok(pace.isBackingOff)
  await clock.advance(30_000)
  t.equal(pace.freeSlots, 1)
  deliver(pace, 'unreachable')
  t.ok(pace.isBackingOff, 'one failed trial is enough the second time')
})

t.test('messages per minute are enforced, with a burst of ten seconds', async t => {
  const { pace, clock } = openPace({ connections: 1_000, messagesPerMinute: 60 })
  deliver(pace, 'neutral')
  let begun = 1
  const begin = () => {
    for (; pace.freeSlots > 0; begun += 1) {
      pace.reserve(1)
      pace.end({ kind: 'success' })
    }
  }
  begin()
  t.equal(begun, 10)
  t.equal(pace.nextSlotAt, clock.monotonic() + 1_000)
  for (let second = 0; second < 60; second += 1) {
    await clock.advance(1_000)
    begin()
  }
  t.equal(begun, 70)
})

t.test('unused reservations do not count against the rate', async t => {
  const { pace } = openPace({ connections: 100, messagesPerMinute: 6 })
  pace.reserve(1)
  t.equal(pace.freeSlots, 0)
  pace.release(1)
  t.equal(pace.freeSlots, 1)
})

t.test('outcomes map to signals about the site', async t => {
  const deferred = (code: number, enhanced: string, text: string): Outcome => ({
    kind: 'deferred',
    summary: '',
    tried: [],
    reply: { code, enhanced, text },
    ...classifyReply({ code, enhanced, text }),
  })
  const cases: [Outcome, string][] = [
    [deferred(421, '4.7.0', 'Too many connections, try again in 90 seconds'), 'asked'],
    [deferred(421, '4.7.28', 'Our system has detected an unusual rate of unsolicited mail'), 'asked'],
    [deferred(451, '4.7.500', 'Server busy. Please try again later from [203.0.113.5]'), 'asked'],
    [deferred(451, '4.3.2', 'System not accepting network messages'), 'busy'],
    [deferred(421, '4.3.2', 'Service shutting down'), 'busy'],
    [deferred(452, '4.2.2', 'mailbox full'), 'neutral'],
    [deferred(450, '4.2.0', 'Greylisted, see http://postgrey.example'), 'neutral'],
    [deferred(450, '4.2.1', 'The user you are trying to contact is receiving mail too quickly'), 'neutral'],
  ]
  for (const [outcome, kind] of cases)
    t.equal(paceSignal(outcome).kind, kind, outcome.kind === 'deferred' ? (outcome.reply?.text ?? '') : '')
  const { reply: _, ...unanswered } = deferred(421, '4.3.0', '') as Extract<Outcome, { kind: 'deferred' }>
  t.equal(paceSignal({ ...unanswered, subtype: 'timeout' }).kind, 'unreachable')
  t.equal(paceSignal({ ...unanswered, subtype: 'shutdown' }).kind, 'none')
  t.equal(paceSignal(bounced).kind, 'neutral')
  const { reply: __, ...unasked } = bounced
  t.equal(paceSignal(unasked).kind, 'none', 'a domain that does not exist has no server')
  for (const subtype of ['smtputf8_unsupported', 'message_too_big', 'mta_sts_failure'])
    t.equal(
      paceSignal({ ...unanswered, subtype }).kind,
      'neutral',
      `${subtype} is about one message or one domain`,
    )
})

t.test('a fast site prefetches its window, a slow one less, a rate-limited one nothing', async t => {
  const afterSuccesses = (durationMs: number, messagesPerMinute = 0) => {
    const { pace } = openPace({ connections: 10, messagesPerMinute })
    for (let delivery = 0; delivery < 40; delivery += 1) {
      pace.reserve(1)
      pace.end({ kind: 'success' }, durationMs)
    }
    return pace
  }
  t.equal(afterSuccesses(10).freeSlots, 20)
  t.equal(afterSuccesses(10).concurrency, 10)
  t.equal(afterSuccesses(100).freeSlots, 15)
  t.equal(afterSuccesses(60_000).freeSlots, 10)
  t.equal(afterSuccesses(10, 60_000).freeSlots, 10)
  const troubled = afterSuccesses(10)
  deliver(troubled, 'busy')
  t.equal(troubled.freeSlots, 5, 'trouble takes the reserve away')
})

t.test(
  'a site is new until it answers, then proven for ten minutes, and doubtful after failures',
  async t => {
    const { pace, clock } = openPace()
    t.equal(pace.standing, 'new')
    deliver(pace, 'neutral')
    t.equal(pace.standing, 'proven')
    await clock.advance(10 * MINUTE_MS)
    t.equal(pace.standing, 'new')
    deliver(pace, 'unreachable')
    t.equal(pace.standing, 'doubtful')
    deliver(pace, 'busy')
    t.equal(pace.standing, 'proven', 'it answers, if only that it is busy')
    deliver(pace, 'unreachable', 'unreachable')
    t.equal(pace.standing, 'proven', 'one of its hosts may be down')
    deliver(pace, 'unreachable')
    t.equal(pace.standing, 'doubtful')
  },
)

t.test('a silent site gets one probe every half minute', async t => {
  const { pace, clock } = openPace()
  deliver(pace, ...many(40))
  pace.reserve(3)
  await clock.advance(29_999)
  t.equal(pace.standing, 'proven')
  t.equal(pace.freeSlots, 17)
  await clock.advance(1)
  t.equal(pace.standing, 'doubtful')
  t.equal(pace.freeSlots, 1)
  pace.reserve(1)
  t.equal(pace.freeSlots, 0)
  t.equal(pace.nextSlotAt, clock.monotonic() + 30_000)
  pace.end({ kind: 'success' })
  t.equal(pace.standing, 'proven')
  t.equal(pace.freeSlots, 17)
})

t.test('large messages in progress do not make a site silent', async t => {
  const { pace, clock } = openPace()
  deliver(pace, 'neutral')
  pace.reserve(1, true)
  await clock.advance(9 * MINUTE_MS)
  t.equal(pace.standing, 'proven')
  t.equal(pace.freeSlots, 3)
})

t.test('an unresponsive site gets more time after each failure', async t => {
  const { pace, clock } = openPace()
  const patience: number[] = []
  for (let round = 0; round < 6; round += 1) {
    patience.push(pace.patienceMs / 1_000)
    deliver(pace, 'unreachable')
    await clock.advance(15 * MINUTE_MS)
  }
  t.same(patience, [5, 10, 20, 40, 80, 120])
  deliver(pace, 'neutral')
  t.equal(pace.patienceMs, Infinity)
})

t.test('a back-off ends on time whatever the wall clock is set to', async t => {
  const { pace, clock } = openPace()
  asked(pace, 90_000)
  clock.jump(-2 * 3_600_000)
  await clock.advance(89_999)
  t.equal(pace.freeSlots, 0)
  await clock.advance(1)
  t.equal(pace.freeSlots, 1)
})
