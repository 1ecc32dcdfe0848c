import t from 'tap'
import type { LocateSite } from '../../src/queue/delivery-agent.js'
import { laneKey } from '../../src/queue/lane.js'
import type { Priority } from '../../src/messages/mail-origin.js'
import { Schedule } from '../../src/queue/pacing/schedule.js'
import type { Turn } from '../../src/queue/pacing/site.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const domainsShare: LocateSite = async destination => ({
  name: destination.endsWith('.hosted.example') ? 'mx.hoster.example' : destination,
  connections: 20,
  messagesPerMinute: 0,
})

function openSchedule(locateSite = domainsShare, hasMemoryFor = () => true) {
  const clock = new FakeClock()
  const schedule = new Schedule({
    clock,
    backoff: { firstMs: 30_000, maxMs: 900_000 },
    connections: 500,
    locateSite,
    hasMemoryFor,
    onChange: () => {},
  })
  const note = (destination: string, priority: Priority = 0, workspaceId = 'w1', dueAt = clock.now()) =>
    schedule.note(laneKey(destination, priority, workspaceId), dueAt)
  /** Lets located lanes come into their lines. */
  const turns = async (slots = 100, lanes = 100): Promise<Turn[]> => {
    schedule.takeTurns(0, 0)
    await clock.advance(0)
    return schedule.takeTurns(slots, lanes)
  }
  /** These have answered: each may have four deliveries at a time. */
  const haveAnswered = async (...destinations: string[]) => {
    for (const destination of destinations) {
      note(destination)
      const [turn] = await turns()
      schedule.claimEnded(turn!, 1, undefined)
      schedule.deliveryEnded(turn!, { kind: 'neutral' }, 10)
      schedule.settled(turn!, undefined)
    }
  }
  return { clock, schedule, note, turns, haveAnswered }
}

const shown = (turns: readonly Turn[]) => turns.map(({ lane, slots }) => `${lane.destination}:${slots}`)

t.test('domains of one site share its connections', async t => {
  const { note, turns, haveAnswered } = openSchedule()
  await haveAnswered('a.hosted.example', 'alone.example')
  note('a.hosted.example')
  note('b.hosted.example')
  note('alone.example')
  t.same(shown(await turns()).sort(), ['a.hosted.example:2', 'alone.example:4', 'b.hosted.example:2'])
})

t.test('a lane gets a turn when it falls due, without a further note', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('later.example', 0, 'w1', clock.now() + 60_000)
  t.same(await turns(), [])
  t.equal(schedule.idleMs, 60_000)
  await clock.advance(60_000)
  t.same(shown(await turns()), ['later.example:1'])
})

t.test('every fourth slot is a campaign s while other mail waits, all of them when none does', async t => {
  const { schedule, note, turns, haveAnswered } = openSchedule()
  await haveAnswered('x.example')
  note('x.example', 0, 'reset')
  note('x.example', 1, 'bulk')
  const first = await turns()
  t.same(
    first.map(({ lane, slots }) => [lane.workspaceId, slots]),
    [
      ['reset', 3],
      ['bulk', 1],
    ],
  )
  for (const turn of first) schedule.claimEnded(turn, 0, turn.lane.priority === 1 ? 0 : undefined)
  t.same(
    (await turns()).map(({ lane, slots }) => [lane.workspaceId, slots]),
    [['bulk', 4]],
  )
})

t.test('workspaces take turns, however many domains one of them mails', async t => {
  const { note, turns, haveAnswered } = openSchedule()
  await haveAnswered('one.hosted.example')
  for (let domain = 0; domain < 50; domain += 1) note(`d${domain}.hosted.example`, 0, 'big')
  note('one.hosted.example', 0, 'small')
  const given = await turns()
  const slotsOf = (workspace: string) =>
    given.filter(turn => turn.lane.workspaceId === workspace).reduce((sum, turn) => sum + turn.slots, 0)
  t.equal(slotsOf('small'), 2)
  t.equal(slotsOf('big'), 2)
})

t.test('unused slots are freed', async t => {
  const { schedule, note, turns, haveAnswered } = openSchedule()
  await haveAnswered('x.example')
  note('x.example')
  const [turn] = await turns()
  schedule.claimEnded(turn!, 1, undefined)
  note('x.example')
  t.same(shown(await turns()), ['x.example:3'], 'one of four is in use')
})

t.test(
  'a turn reads from the earliest due time on, also of mail that is noted while the lane queues',
  async t => {
    const { clock, schedule, note, turns, haveAnswered } = openSchedule()
    const now = clock.now()
    await haveAnswered('x.example')
    note('x.example', 0, 'w1', now - 1_000)
    schedule.takeTurns(0, 0)
    note('x.example', 0, 'w1', now - 5_000)
    const [first] = await turns()
    t.equal(first?.dueAt, now - 5_000)
    schedule.claimEnded(first!, 1, now - 2_000)
    const [second] = await turns()
    t.equal(second?.dueAt, now - 2_000, 'what was claimed is not met again')
    note('x.example', 0, 'w1', now - 3_000)
    schedule.claimEnded(second!, 1, undefined)
    t.equal((await turns())[0]?.dueAt, now - 3_000, 'noted during the claim')
  },
)

t.test('a full site gets no turn until a delivery ends', async t => {
  const { clock, schedule, note, turns, haveAnswered } = openSchedule()
  await haveAnswered('x.example')
  note('x.example')
  const [turn] = await turns()
  schedule.claimEnded(turn!, 4, clock.now())
  t.same(await turns(), [])
  schedule.deliveryEnded(turn!, { kind: 'neutral' }, 10)
  schedule.settled(turn!, undefined)
  t.same(shown(await turns()), ['x.example:1'])
})

t.test('a site in back-off does not delay others, and returns automatically', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('rests.example')
  const [turn] = await turns()
  schedule.claimEnded(turn!, 1, clock.now())
  schedule.deliveryEnded(turn!, { kind: 'asked', waitMs: 120_000 }, 10)
  schedule.settled(turn!, clock.now() + 300_000)
  note('works.example')
  t.same(shown(await turns()), ['works.example:1'])
  t.equal(schedule.idleMs, 120_000)
  await clock.advance(120_000)
  t.same(shown(await turns()), ['rests.example:1'], 'one message tries')
})

t.test('a note during a claim is not lost', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('x.example')
  const [turn] = await turns()
  note('x.example')
  schedule.claimEnded(turn!, 0, undefined)
  t.same(shown(await turns()), ['x.example:1'])
  t.equal(clock.waiting, 0)
})

t.test('empty lanes and sites are forgotten', async t => {
  const { schedule, note, turns } = openSchedule()
  for (let domain = 0; domain < 1_000; domain += 1) note(`d${domain}.example`)
  for (let round = 0; round < 100 && schedule.size.lanes > 0; round += 1)
    for (const turn of await turns()) schedule.claimEnded(turn, 0, undefined)
  t.match(schedule.size, { lanes: 0, sites: 0, dueTimes: 0 })
})

t.test('repeated deferrals keep a single due time', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('x.example', 0, 'w1', clock.now() + 86_400_000)
  for (let round = 0; round < 500; round += 1) {
    note('x.example')
    for (const turn of await turns()) schedule.claimEnded(turn, 0, clock.now() + 86_400_000)
  }
  t.ok(schedule.size.dueTimes <= 3, `${schedule.size.dueTimes} due times kept`)
})

/** As many destinations as there are connections, none of which has answered or ever will. */
const many = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}.example`)

t.test('unproven sites get a quarter of the connections, however many they are', async t => {
  const { note, turns, haveAnswered } = openSchedule()
  await haveAnswered('answers.example')
  for (const tarpit of many(2_000, 'tarpit')) note(tarpit)
  const given = await turns(500, 5_000)
  t.equal(given.length, 94, 'three quarters of a quarter of 500')
  note('answers.example')
  t.same(shown(await turns(500, 5_000)), ['answers.example:4'])
})

t.test('doubtful sites leave half of that quarter to new ones', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  const fail = async (tarpits: readonly string[]) => {
    for (const tarpit of tarpits) {
      note(tarpit)
      for (const turn of await turns(500, 5_000)) {
        schedule.claimEnded(turn, 1, undefined)
        schedule.deliveryEnded(turn, { kind: 'unreachable' }, 10)
        schedule.settled(turn, clock.now() + 300_000)
      }
    }
  }
  await fail(many(200, 'tarpit'))
  await clock.advance(300_000)
  t.equal((await turns(500, 5_000)).length, 62)
  for (const fresh of many(200, 'fresh')) note(fresh)
  t.equal((await turns(500, 5_000)).length, 63)
})

t.test('campaigns leave connections for single mails', async t => {
  const { note, turns, haveAnswered } = openSchedule()
  const sites = many(200, 'site')
  await haveAnswered(...sites)
  for (const site of sites) note(site, 1, 'bulk')
  const bulk = (await turns(500, 5_000)).reduce((sum, { slots }) => sum + slots, 0)
  t.equal(bulk, 281, 'three quarters of three quarters of 500')
  for (const site of sites) note(site, 0, 'shop')
  t.ok((await turns(500, 5_000)).every(({ lane }) => lane.workspaceId === 'shop'))
})

t.test('a new site does not wait behind a thousand others', async t => {
  const { schedule, note, turns } = openSchedule()
  for (const tarpit of many(1_000, 'tarpit')) note(tarpit)
  const [first, second] = await turns(500, 5_000)
  note('fresh.example')
  schedule.takeTurns(0, 0)
  for (const turn of [first!, second!]) {
    schedule.claimEnded(turn, 1, undefined)
    schedule.deliveryEnded(turn, { kind: 'unreachable' }, 10)
    schedule.settled(turn, undefined)
  }
  const next = await turns(500, 5_000)
  t.ok(shown(next).includes('fresh.example:1'), shown(next).join(' '))
})

t.test('a known destination does not wait behind silent name servers', async t => {
  const silent = new Promise<never>(() => {})
  let asked = 0
  const { clock, schedule, note, turns, haveAnswered } = openSchedule(destination => {
    asked += 1
    return destination.startsWith('silent') ? silent : domainsShare(destination)
  })
  await haveAnswered('known.example')
  for (const destination of many(2_000, 'silent')) note(destination)
  await turns()
  t.equal(asked, 101, 'a hundred at a time')
  note('known.example')
  const given = await turns()
  t.same(shown(given), ['known.example:4'])
  schedule.claimEnded(given[0]!, 0, undefined)
  await clock.advance(20 * 60_000)
  note('known.example')
  t.same(shown(await turns()), ['known.example:1'], 'nor when the cached result is stale')
})

t.test('DNS lookups for single mail go before campaigns, and workspaces take turns', async t => {
  const waiting: (() => void)[] = []
  const asked: string[] = []
  const { schedule, note } = openSchedule(async destination => {
    asked.push(destination)
    if (asked.length <= 100) await new Promise<void>(resolve => waiting.push(resolve))
    return domainsShare(destination)
  })
  for (const destination of many(300, 'bulk')) note(destination, 1, 'bulk')
  for (const destination of many(300, 'big')) note(destination, 0, 'big')
  note('reset.example', 0, 'small')
  schedule.takeTurns(0, 0)
  t.ok(asked.filter(name => name.startsWith('bulk')).length <= 75)
  t.ok(asked.includes('reset.example'), 'among the first hundred of six hundred')
})

t.test('a large message that waits for memory does not delay small ones of its site', async t => {
  let hasMemory = false
  const { clock, schedule, note, turns, haveAnswered } = openSchedule(domainsShare, () => hasMemory)
  await haveAnswered('x.example')
  schedule.note(laneKey('x.example', 0, 'w1', true), clock.now())
  t.same(await turns(), [])
  note('x.example')
  t.match(await turns(), [{ lane: { isLarge: false }, slots: 4 }])
  hasMemory = true
  schedule.onMemoryFreed()
  t.same(await turns(), [], 'no slot is left now')
  note('y.example')
  schedule.note(laneKey('y.example', 0, 'w1', true), clock.now())
  t.equal((await turns()).length, 1)
})

t.test('a silent site backs off, and detached connections are not counted', async t => {
  const { clock, schedule, note, turns, haveAnswered } = openSchedule()
  await haveAnswered('x.example')
  note('x.example')
  const [turn] = await turns()
  schedule.claimEnded(turn!, 4, undefined)
  t.ok(schedule.detach(turn!))
  for (const isDetached of [true, false, false])
    schedule.deliveryEnded(turn!, { kind: 'unreachable' }, 10, isDetached)
  t.match(schedule.listSites(), [{ name: 'x.example', active: 1, backoffUntil: clock.now() + 30_000 }])
})
