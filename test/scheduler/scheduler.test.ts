/** The scheduler: when jobs run, and that neither a failing nor a slow one does any harm. */
import t from 'tap'
import { Scheduler, type Job } from '../../src/scheduler/scheduler.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { comeToRest } from '../support/turns.js'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** No offsets, so that times are those of the schedules. */
const random = { bytes: (count: number) => Buffer.alloc(count), fraction: () => 0, keyPair: () => never() }

function never(): never {
  throw new Error('not used')
}

function open(jobs: (clock: FakeClock, ran: string[]) => readonly Job[], fraction = 0) {
  const clock = new FakeClock('2026-01-05T10:00:00.000Z')
  const log = new FakeLog()
  const ran: string[] = []
  const scheduler = new Scheduler(
    { clock, log, random: { ...random, fraction: () => fraction } },
    jobs(clock, ran),
  )
  scheduler.start()
  return { clock, log, ran, scheduler, advance: (ms: number) => clock.advance(ms) }
}

/** Notes when it ran. */
const noting =
  (name: string, schedule: string) =>
  (clock: FakeClock, ran: string[]): Job[] => [
    {
      name,
      schedule,
      run: async () => void ran.push(`${name} ${new Date(clock.now()).toISOString().slice(11, 19)}`),
    },
  ]

t.test('each job runs on its schedule, and none before its first time', async t => {
  const { ran, advance } = open((clock, ran) => [
    ...noting('often', '*/30 * * * *')(clock, ran),
    ...noting('hourly', '7 * * * *')(clock, ran),
  ])
  await comeToRest()
  t.same(ran, [])
  await advance(2 * HOUR_MS)
  t.same(ran, [
    'hourly 10:07:00',
    'often 10:30:00',
    'often 11:00:00',
    'hourly 11:07:00',
    'often 11:30:00',
    'often 12:00:00',
  ])
})

t.test('a job can also run at start', async t => {
  const { ran, advance } = open((clock, ran) =>
    noting('job', '7 * * * *')(clock, ran).map(job => ({ ...job, isRunAtStart: true })),
  )
  await comeToRest()
  t.same(ran, ['job 10:00:00'])
  await advance(HOUR_MS)
  t.same(ran, ['job 10:00:00', 'job 10:07:00'])
})

t.test('each job has a fixed delay, so that not all start at once', async t => {
  const { ran, advance } = open(noting('job', '* * * * *'), 0.5)
  await advance(3 * MINUTE_MS)
  t.same(ran, ['job 10:00:10', 'job 10:01:10', 'job 10:02:10'])
})

t.test('a failed job is logged and runs again at its next time; others are unaffected', async t => {
  const { ran, log, advance } = open((clock, ran) => [
    {
      name: 'broken',
      schedule: '* * * * *',
      async run() {
        ran.push('broken')
        throw new Error('no space left')
      },
    },
    ...noting('sound', '* * * * *')(clock, ran),
  ])
  await advance(2 * MINUTE_MS)
  t.same(ran, ['broken', 'sound 10:01:00', 'broken', 'sound 10:02:00'])
  t.match(
    log.lines.filter(({ level }) => level === 'error'),
    [
      { event: 'job failed', fields: { job: 'broken', error: 'no space left' } },
      { event: 'job failed', fields: { job: 'broken' } },
    ],
  )
})

t.test('a job never overlaps with itself and delays no other', async t => {
  let finish = () => {}
  let begun = 0
  const { ran, advance } = open((clock, ran) => [
    {
      name: 'slow',
      schedule: '* * * * *',
      run: () => new Promise<void>(resolve => ((begun += 1), (finish = resolve))),
    },
    ...noting('quick', '* * * * *')(clock, ran),
  ])
  await advance(3 * MINUTE_MS)
  t.equal(begun, 1)
  t.equal(ran.length, 3)
  finish()
  await advance(MINUTE_MS)
  t.equal(begun, 2)
})

t.test('runs missed during suspend are made up for once, soon after waking', async t => {
  const { clock, ran, advance } = open(noting('job', '0 * * * *'))
  await advance(5 * MINUTE_MS)
  clock.jump(8 * HOUR_MS)
  await advance(MINUTE_MS)
  t.same(ran, ['job 18:05:30'])
  await advance(HOUR_MS)
  t.same(ran, ['job 18:05:30', 'job 19:00:00'])
})

t.test('setting back a clock that was a year ahead delays no job', async t => {
  const { clock, ran, advance } = open(noting('job', '0 * * * *'))
  clock.jump(365 * 24 * HOUR_MS)
  await advance(MINUTE_MS)
  ran.length = 0
  clock.jump(-365 * 24 * HOUR_MS)
  await advance(HOUR_MS)
  t.same(ran, ['job 11:00:00'])
})

t.test('stopping signals the running job, waits for it, and starts no other', async t => {
  let sawSignal = false
  let end = () => {}
  const { scheduler, ran, advance } = open((clock, ran) => [
    {
      name: 'long',
      schedule: '* * * * *',
      async run(stopping) {
        await new Promise<void>(resolve => (end = resolve))
        sawSignal = stopping.aborted
      },
    },
    ...noting('later', '5 * * * *')(clock, ran),
  ])
  await advance(MINUTE_MS)
  let isStopped = false
  const stopped = scheduler.stop(30_000).then(() => (isStopped = true))
  await comeToRest()
  t.notOk(isStopped)
  end()
  await stopped
  t.ok(sawSignal)
  await advance(HOUR_MS)
  t.same(ran, [])
})

t.test('a job that does not stop is abandoned after the grace period, and named', async t => {
  const { scheduler, log, advance } = open(() => [
    { name: 'stuck', schedule: '* * * * *', run: () => new Promise<void>(() => {}) },
  ])
  await advance(MINUTE_MS)
  const stopped = scheduler.stop(5_000)
  await advance(5_000)
  await stopped
  t.match(log.lines.at(-1), { level: 'warn', event: 'job interrupted', fields: { job: 'stuck' } })
})

t.test('a job run by request never overlaps a run of itself, and stays on its schedule', async t => {
  let finish = () => {}
  const { ran, advance, scheduler } = open((clock, ran) => [
    {
      name: 'slow',
      schedule: '7 * * * *',
      run: () => {
        ran.push(new Date(clock.now()).toISOString().slice(11, 19))
        return new Promise<void>(resolve => (finish = resolve))
      },
    },
  ])
  t.equal(scheduler.runNow('other'), 'unknown')
  t.equal(scheduler.runNow('slow'), 'started')
  t.equal(scheduler.runNow('slow'), 'running')
  await advance(10 * MINUTE_MS)
  t.same(ran, ['10:00:00'], 'its scheduled run was skipped')
  finish()
  await comeToRest()
  await advance(HOUR_MS)
  t.same(ran, ['10:00:00', '11:07:00'])
  finish()
  await scheduler.stop(0)
  t.equal(scheduler.runNow('slow'), 'stopping')
})
