/** Why `/health` says what it says: each reason by its code, and what it makes of status and readiness. */
import t, { type Test } from 'tap'
import { weightOf, HEALTH_REASON_CODES, type HealthReasonCode } from '../../src/health/health-reasons.js'
import { healthRoutes } from '../../src/health/health-routes.js'
import { openHealth, type HealthParts } from '../../src/health/judge-health.js'
import { DnsWatch } from '../../src/world/dns/dns-watch.js'
import type { DnsAnswer, Resolver } from '../../src/world/dns/dns.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

interface Told {
  readonly status: number
  readonly value: {
    status: string
    ready: boolean
    reason?: string
    reasons: { code: string; text: string }[]
  }
}

async function tell(clock: FakeClock, parts: Partial<HealthParts>): Promise<Told> {
  const judge = openHealth({
    clock,
    check: async () => undefined,
    countSetAside: async () => 0,
    countDisabledWebhooks: async () => 0,
    dnsTrouble: () => undefined,
    standstillMs: () => 0,
    isHeld: () => false,
    missingRoles: () => [],
    countFailingFeeds: async () => 0,
    consumerLag: async () => undefined,
    certificateFault: () => undefined,
    ...parts,
  })
  const [route] = healthRoutes({
    version: '1.0.0',
    judge,
    isCaptured: false,
    node: () => undefined,
    knowsMonitor: () => true,
  })
  return (await route?.handle({ isKnown: true } as never)) as Told
}

const CASES: Readonly<Record<HealthReasonCode, (clock: FakeClock) => Partial<HealthParts>>> = {
  database_gone: () => ({
    check: async () => ({ code: 'database_gone', isFatal: true, reason: 'moved away' }),
  }),
  database_failing: () => ({
    check: async () => ({ code: 'database_failing', isFatal: true, reason: 'disk I/O error' }),
  }),
  database_busy: () => ({ check: async () => ({ code: 'database_busy', isFatal: true, reason: 'locked' }) }),
  disk_low: () => ({ check: async () => ({ code: 'disk_low', isFatal: false, reason: 'nearly full' }) }),
  dns_failing: () => ({ dnsTrouble: () => 'timed out' }),
  queue_stuck: () => ({ standstillMs: () => 26 * 60_000 }),
  queue_held: () => ({ isHeld: () => true }),
  no_delivery_node: () => ({ missingRoles: () => ['mta'] }),
  no_scheduler_node: () => ({ missingRoles: () => ['scheduler'] }),
  certificate_ending: () => ({ certificateFault: () => 'the certificate expires in 9 days' }),
  consumer_set_aside: () => ({ countSetAside: async () => 2 }),
  webhook_disabled: () => ({ countDisabledWebhooks: async () => 1 }),
  feed_failing: () => ({ countFailingFeeds: async () => 1 }),
}

const EXPECTED = {
  failing: { status: 503, value: { status: 'failing', ready: false } },
  refusing: { status: 503, value: { status: 'degraded', ready: false } },
  degraded: { status: 200, value: { status: 'degraded', ready: true } },
  notice: { status: 200, value: { status: 'ok', ready: true } },
}

for (const code of HEALTH_REASON_CODES)
  t.test(`${code} is reported with its code and a text`, async t => {
    const clock = new FakeClock()
    const told = await tell(clock, CASES[code](clock))
    t.match(told, EXPECTED[weightOf({ code, text: '' })])
    t.match(told.value.reasons, [{ code, text: /\w/ }])
    t.equal(told.value.reasons.length, 1)
  })

t.test('where nothing is amiss there is no reason', async t => {
  t.match(await tell(new FakeClock(), {}), { status: 200, value: { status: 'ok', ready: true, reasons: [] } })
})

t.test('with several reasons the worst comes first, and the status is its own', async t => {
  const clock = new FakeClock()
  t.match(await tell(clock, { ...CASES.dns_failing(clock), ...CASES.disk_low(clock) }), {
    status: 503,
    value: {
      status: 'degraded',
      reason: 'nearly full',
      reasons: [{ code: 'disk_low' }, { code: 'dns_failing' }],
    },
  })
})

t.test('several names without an answer are trouble with our name servers, one is not', async t => {
  const { watch, ask } = watchedZone(t)
  await ask('one.test', 'unavailable')
  await ask('one.test', 'unavailable')
  await ask('two.test', 'unavailable')
  t.equal(watch.trouble, undefined)
  await ask('three.test', 'unavailable')
  t.equal(watch.trouble, 'timed out')
  await ask('nowhere.test', 'missing')
  t.equal(watch.trouble, undefined, 'that a name is not there is an answer')
})

t.test('what failed long ago says nothing of now', async t => {
  const { watch, ask, clock } = watchedZone(t)
  for (const name of ['one.test', 'two.test', 'three.test']) await ask(name, 'unavailable')
  t.equal(watch.trouble, 'timed out')
  await clock.advance(16 * 60_000)
  t.equal(watch.trouble, undefined)
})

t.test('trouble with name servers ends soon after they answer, though nobody sends mail', async t => {
  const { watch, ask, clock, answersWith } = watchedZone(t)
  for (const name of ['one.test', 'two.test', 'three.test']) await ask(name, 'unavailable')
  t.equal(watch.trouble, 'timed out')
  answersWith('missing')
  await clock.advance(9_000)
  t.equal(watch.trouble, 'timed out', 'a failed lookup is not repeated each time')
  await clock.advance(1_000)
  t.equal(watch.trouble, 'timed out', 'this one asks again')
  await clock.advance(0)
  t.equal(watch.trouble, undefined)
})

function watchedZone(_: Test) {
  const clock = new FakeClock()
  const watch = new DnsWatch(clock)
  let kind: 'unavailable' | 'missing' = 'unavailable'
  const answer = async (): Promise<DnsAnswer<never>> =>
    kind === 'missing'
      ? { kind, why: 'nxdomain', ttlSeconds: 1 }
      : { kind: 'unavailable', reason: 'timed out' }
  const resolver: Resolver = {
    mx: answer,
    ipv4: answer,
    ipv6: answer,
    txt: answer,
    cname: answer,
    ptr: answer,
    ns: answer,
  }
  const watched = watch.watched(resolver)
  return {
    clock,
    watch,
    ask: async (name: string, how: typeof kind) => {
      kind = how
      await watched.mx(name)
    },
    answersWith: (how: typeof kind) => {
      kind = how
    },
  }
}
