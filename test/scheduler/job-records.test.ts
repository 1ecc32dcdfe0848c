/** Job state: bounded writes, restarts and crashes; and jobs that a restored copy holds back. */
import t from 'tap'
import { JobRecords, listJobs } from '../../src/scheduler/job-store.js'
import { Scheduler, type Job } from '../../src/scheduler/scheduler.js'
import type { Database } from '../../src/db/database.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { until } from '../support/until.js'

const MINUTE_MS = 60_000

async function open(database: Database, jobs: readonly Job[], isHeld = () => false) {
  const clock = new FakeClock('2026-01-05T10:00:00.000Z')
  const log = new FakeLog()
  const records = new JobRecords({ database, clock, log })
  await records.open(jobs)
  await records.deleteOthers(jobs.map(({ name }) => name))
  const random = { bytes: (count: number) => Buffer.alloc(count), fraction: () => 0, keyPair: () => never() }
  const scheduler = new Scheduler({ clock, log, random, records, isHeld }, jobs)
  scheduler.start()
  return { clock, scheduler, advance: (ms: number) => clock.advance(ms) }
}

function never(): never {
  throw new Error('not used')
}

const job = (name: string, run: Job['run'] = async () => {}): Job => ({ name, schedule: '* * * * *', run })

eachDatabase(t, 'last run, result and next run of each job are stored', async (t, database) => {
  let isBroken = true
  const { advance, scheduler } = await open(database, [
    job('good'),
    job('bad', async () => {
      if (isBroken) throw new Error('the disk is full')
    }),
    { ...job('rare'), schedule: '0 0 1 1 *' },
  ])
  await advance(MINUTE_MS + 15_000)
  const [bad, good, rare] = await until('the runs to be written', async () => {
    const jobs = await listJobs(database.reader)
    return jobs[1]?.endedAt !== null && jobs[0]?.endedAt !== null && jobs.length === 3 && jobs
  })
  t.match(good, { name: 'good', isRunning: false, durationMs: 0, lastError: null, schedule: '* * * * *' })
  t.equal(good?.startedAt, Date.parse('2026-01-05T10:01:00.000Z'))
  t.equal(good?.nextRunAt, Date.parse('2026-01-05T10:02:00.000Z'))
  t.match(bad, { lastError: 'the disk is full', failedAt: Date.parse('2026-01-05T10:01:00.000Z') })
  t.match(rare, { startedAt: null, endedAt: null, nextRunAt: Date.parse('2027-01-01T00:00:00.000Z') })
  isBroken = false
  await advance(MINUTE_MS)
  await scheduler.stop(0)
  t.match((await listJobs(database.reader))[0], { lastError: 'the disk is full' }, 'the last failure stays')
  t.same(
    (await listJobs(database.reader)).map(({ nextRunAt }) => nextRunAt),
    [null, null, null],
    'nothing comes any more',
  )
})

t.test('a long job is shown as running, but not after a crash; removed jobs disappear', async t => {
  const database = await sqliteDatabase(t)
  const { advance } = await open(database, [
    { ...job('lasting', () => new Promise(() => {})), isRunAtStart: true },
    job('gone'),
  ])
  await advance(15_000)
  await written(database)
  t.match(await listJobs(database.reader), [{ name: 'gone' }, { name: 'lasting', isRunning: true }])
  const next = await open(database, [job('lasting')])
  await next.advance(15_000)
  await written(database)
  const kept = await listJobs(database.reader)
  t.match(kept, [{ name: 'lasting', isRunning: false, startedAt: Date.parse('2026-01-05T10:00:00.000Z') }])
  t.equal(kept.length, 1)
})

t.test('frequent runs cause few writes', async t => {
  const database = await sqliteDatabase(t)
  let writes = 0
  const counting: Database = {
    ...database,
    reader: database.reader,
    write: (work, options) => {
      writes += 1
      return database.write(work, options)
    },
  }
  const jobs = Array.from({ length: 20 }, (_, n) => job(`job ${n}`))
  const { advance } = await open(counting, jobs)
  writes = 0
  for (let minute = 0; minute < 10; minute += 1) {
    await advance(MINUTE_MS)
    await written(database)
  }
  t.ok(writes <= 20, `${writes} writes for 200 runs`)
})

t.test('jobs that send wait until a restored copy is released', async t => {
  const database = await sqliteDatabase(t)
  const ran: string[] = []
  let isHeld = true
  const noting = (name: string): Job => job(name, async () => void ran.push(name))
  const { advance } = await open(
    database,
    [{ ...noting('campaigns'), isHeldAfterRestore: true, isRunAtStart: true }, noting('retention')],
    () => isHeld,
  )
  await advance(MINUTE_MS)
  t.same(ran, ['retention'])
  isHeld = false
  await advance(MINUTE_MS)
  t.same(ran.sort(), ['campaigns', 'retention', 'retention'])
})

/** Writes take turns, so those that wait have ended when this one has. */
async function written(database: Database): Promise<void> {
  await database.write(async () => {})
}
