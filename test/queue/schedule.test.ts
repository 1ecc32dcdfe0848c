import t from 'tap'
import type { LocateSite } from '../../src/queue/delivery-agent.js'
import { laneKey, type Priority } from '../../src/queue/lane.js'
import { Schedule } from '../../src/queue/schedule.js'
import type { Turn } from '../../src/queue/site.js'
import { FakeClock } from '../../src/world/fake-clock.js'

const domainsShare: LocateSite = async destination => ({
  name: destination.endsWith('.hosted.example') ? 'mx.hoster.example' : destination,
  connections: 20,
  messagesPerMinute: 0,
})

function openSchedule(locateSite = domainsShare) {
  const clock = new FakeClock()
  const schedule = new Schedule({
    clock,
    rests: { firstMs: 30_000, longestMs: 900_000 },
    locateSite,
    onChange: () => {},
  })
  const note = (destination: string, priority: Priority = 0, workspaceId = 'w1', dueAt = clock.now()) =>
    schedule.note(laneKey(destination, priority, workspaceId), dueAt)
  /** Lets located lanes come into their lines. */
  const turns = async (slots = 100, lanes = 100): Promise<Turn[]> => {
    const before = schedule.takeTurns(slots, lanes)
    if (before.length > 0) return before
    await clock.advance(0)
    return schedule.takeTurns(slots, lanes)
  }
  return { clock, schedule, note, turns }
}

const shown = (turns: readonly Turn[]) => turns.map(({ lane, slots }) => `${lane.destination}:${slots}`)

t.test('domains of one site share its connections', async t => {
  const { note, turns } = openSchedule()
  note('a.hosted.example')
  note('b.hosted.example')
  note('alone.example')
  t.same(shown(await turns()).sort(), ['a.hosted.example:2', 'alone.example:4', 'b.hosted.example:2'])
})

t.test('a lane is not given out before it is due, and then by the clock alone', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('later.example', 0, 'w1', clock.now() + 60_000)
  t.same(await turns(), [])
  t.equal(schedule.wakeAt, clock.now() + 60_000)
  await clock.advance(60_000)
  t.same(shown(await turns()), ['later.example:4'])
})

t.test('every fourth slot is a campaign s while other mail waits, all of them when none does', async t => {
  const { schedule, note, turns } = openSchedule()
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
  for (const turn of first) schedule.looked(turn, [], turn.lane.priority === 1 ? 0 : undefined)
  t.same(
    (await turns()).map(({ lane, slots }) => [lane.workspaceId, slots]),
    [['bulk', 4]],
  )
})

t.test('workspaces take turns, however many domains one of them mails', async t => {
  const { note, turns } = openSchedule()
  for (let domain = 0; domain < 50; domain += 1) note(`d${domain}.hosted.example`, 0, 'big')
  note('one.hosted.example', 0, 'small')
  const given = await turns()
  const slotsOf = (workspace: string) =>
    given.filter(turn => turn.lane.workspaceId === workspace).reduce((sum, turn) => sum + turn.slots, 0)
  t.equal(slotsOf('small'), 2)
  t.equal(slotsOf('big'), 2)
})

t.test('slots that found nothing to deliver are free again', async t => {
  const { schedule, note, turns } = openSchedule()
  note('x.example')
  const [turn] = await turns()
  schedule.looked(turn!, ['m1'], undefined)
  note('x.example')
  t.same(shown(await turns()), ['x.example:3'], 'one of four is in use')
})

t.test('a full site is out of the round until a delivery ends', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('x.example')
  const [turn] = await turns()
  schedule.looked(turn!, ['m1', 'm2', 'm3', 'm4'], clock.now())
  t.same(await turns(), [])
  schedule.ended(turn!, { kind: 'neutral' }, 10)
  schedule.settled(turn!, 'm1', undefined)
  t.same(shown(await turns()), ['x.example:1'])
})

t.test('one resting site does not hold up another, and comes back by itself', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('rests.example')
  const [turn] = await turns()
  schedule.looked(turn!, ['m1'], clock.now())
  schedule.ended(turn!, { kind: 'asked', waitMs: 120_000 }, 10)
  schedule.settled(turn!, 'm1', clock.now() + 300_000)
  note('works.example')
  t.same(shown(await turns()), ['works.example:4'])
  t.equal(schedule.wakeAt, clock.now() + 120_000)
  await clock.advance(120_000)
  t.same(shown(await turns()), ['rests.example:1'], 'one message tries')
})

t.test('what is noted while the database is being asked is not forgotten', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('x.example')
  const [turn] = await turns()
  note('x.example')
  schedule.looked(turn!, [], undefined)
  t.same(shown(await turns()), ['x.example:4'])
  t.equal(clock.waiting, 0)
})

t.test('lanes and sites with nothing left are forgotten', async t => {
  const { schedule, note, turns } = openSchedule()
  for (let domain = 0; domain < 1_000; domain += 1) note(`d${domain}.example`)
  for (let round = 0; round < 100 && schedule.size.lanes > 0; round += 1)
    for (const turn of await turns()) schedule.looked(turn, [], undefined)
  t.match(schedule.size, { lanes: 0, sites: 0, dueTimes: 0 })
})

t.test('a deferred message that fails again and again leaves no trail of due times', async t => {
  const { clock, schedule, note, turns } = openSchedule()
  note('x.example', 0, 'w1', clock.now() + 86_400_000)
  for (let round = 0; round < 500; round += 1) {
    note('x.example')
    for (const turn of await turns()) schedule.looked(turn, [], clock.now() + 86_400_000)
  }
  t.ok(schedule.size.dueTimes <= 3, `${schedule.size.dueTimes} due times kept`)
})
