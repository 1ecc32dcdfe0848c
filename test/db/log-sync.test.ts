/** No commit is reported before it is on disk, however slow the disk. */
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import type { Database } from '../../src/db/database.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeDisk } from '../../src/world/fake-disk.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { sqliteFile } from '../support/db/database.js'
import { until } from '../support/until.js'

async function server(t: Test, file = sqliteFile(t)) {
  const [clock, disk, log] = [new FakeClock(), new FakeDisk(), new FakeLog()]
  const database = await openSqlite({ file, clock, watch: { disk, log, reserve: 0 } })
  let isClosed = false
  const close = async () => {
    if (!isClosed) await database[Symbol.asyncDispose]()
    isClosed = true
  }
  t.teardown(close)
  await database.write(({ db }) => sql`create table if not exists notes (text text)`.execute(db))
  return { file, clock, disk, log, database, close }
}

const note = (database: Database, text: string) =>
  database.write(({ db }) => sql`insert into notes values (${text})`.execute(db))

async function notes({ reader }: Database): Promise<string[]> {
  const { rows } = await sql<{ text: string }>`select text from notes order by rowid`.execute(reader)
  return rows.map(({ text }) => text)
}

/** From now on syncs do not return until released. */
function hold(disk: FakeDisk) {
  let letGo = () => {}
  disk.syncing = new Promise(resolve => (letGo = resolve))
  const before = disk.begun
  return { letGo: () => letGo(), asked: () => until('the disk is asked', () => disk.begun > before) }
}

/** A disk that takes 20 ms, of which it is known that it does. */
async function onSlowDisk(t: Test) {
  const all = await server(t)
  const { clock, disk, database } = all
  disk.onSync = () => clock.skip(20)
  for (let times = 0; times < 8; times += 1) await note(database, `before ${times}`)
  return all
}

t.test('while a slow disk takes its time, who reads is answered and who wrote is not', async t => {
  const { disk, database } = await onSlowDisk(t)
  const { letGo, asked } = hold(disk)
  let isTold = false
  const writing = note(database, 'one').then(() => (isTold = true))
  await asked()
  t.equal((await notes(database))[0], 'before 0', 'a read comes in between')
  t.notOk(isTold)
  letGo()
  await writing
  t.equal((await notes(database)).at(-1), 'one')
})

t.test('what comes while a slow disk is busy shares the next commit', async t => {
  const { disk, database } = await onSlowDisk(t)
  const { letGo, asked } = hold(disk)
  const first = note(database, 'one')
  await asked()
  const before = disk.begun
  const others = ['two', 'three', 'four'].map(text => note(database, text))
  letGo()
  await Promise.all([first, ...others])
  t.equal(disk.begun - before, 1)
  t.equal((await notes(database)).length, 12)
})

for (const { name, open } of [
  { name: 'a quick disk', open: server },
  { name: 'a slow disk', open: onSlowDisk },
])
  t.test(`after ${name} fails for a commit, nothing more is stored until a restart`, async t => {
    const { file, disk, database, log, close } = await open(t)
    disk.onSync = () => {
      throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })
    }
    await t.rejects(note(database, 'lost'), { code: 'unavailable' })
    t.match(database.storage.fault, { code: 'database_failing', isFatal: true })
    t.match(log.lines, [{ event: 'database write failed' }])
    // The system calls the next attempt a success, with a hole in the log before it.
    disk.onSync = () => {}
    await t.rejects(note(database, 'refused'), { code: 'unavailable' })
    t.notOk((await notes(database)).includes('refused'), 'it was not even begun')
    await close()
    const { database: anew } = await server(t, file)
    await note(anew, 'kept')
    t.ok((await notes(anew)).includes('kept'))
  })
