/** The ground under a server's database moves: files vanish, the disk fills, writes fail. Nothing is acknowledged that is not on disk. */
import { mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import BetterSqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { healthOf } from '../../src/db/health.js'
import { FolderEntries } from '../../src/db/sqlite/storage-watch.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { pauseFor } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeDisk } from '../../src/world/fake-disk.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { sqliteDatabase, sqliteFile } from '../support/db/database.js'

const RESERVE = 500_000_000

async function open(t: Test, isLink = false) {
  const real = sqliteFile(t)
  // For its tables only.
  await sqliteDatabase(t, real)
  const file = isLink ? linkTo(real) : real
  const [clock, disk, log] = [new FakeClock(), new FakeDisk(), new FakeLog()]
  const database = await openSqlite({ file, clock, watch: { disk, log, reserve: RESERVE } })
  t.teardown(() => database[Symbol.asyncDispose]())
  await database.write(({ db }) => sql`create table notes (text)`.execute(db))
  return {
    file,
    clock,
    disk,
    log,
    database,
    check: healthOf(database, clock),
    write: () => database.write(({ db }) => sql`insert into notes values ('a')`.execute(db)),
    events: () => log.lines.map(({ level, event }) => `${level}: ${event}`),
  }
}

function linkTo(file: string): string {
  const folder = join(dirname(file), 'elsewhere')
  mkdirSync(folder)
  symlinkSync(file, join(folder, 'link.db'))
  return join(folder, 'link.db')
}

const LOST = { code: 'unavailable', message: /lost its database/, retryAfterMs: Number }

for (const ending of ['', '-wal', '-shm'])
  t.test(`no write is acknowledged once the file *.db${ending} was deleted`, async t => {
    const { file, write, check, events } = await open(t)
    await write()
    rmSync(file + ending)
    await t.rejects(write(), LOST)
    t.match(await check(), { isFatal: true, reason: /deleted while the server runs: .*test\.db/ })
    await t.rejects(write(), LOST)
    t.same(events(), ['error: database files missing'])
  })

for (const ending of ['', '-wal', '-shm'])
  t.test(`no write is acknowledged after *.db${ending} was deleted from a long unchanged folder`, async t => {
    const { file, clock, write } = await open(t)
    for (let writes = 0; writes < 4; writes += 1) {
      await clock.advance(3_000)
      await write()
    }
    rmSync(file + ending)
    await t.rejects(write(), LOST)
  })

t.test(
  'no write is acknowledged once the file was deleted that the path of the database is a link to',
  async t => {
    const { clock, write, file } = await open(t, true)
    for (let writes = 0; writes < 4; writes += 1) {
      await clock.advance(3_000)
      await write()
    }
    rmSync(realpathSync(file))
    await t.rejects(write(), LOST)
  },
)

t.test('a second change within the same tick of the file system is looked for', async t => {
  const folder = { entries: 'as before' }
  const entries = new FolderEntries(() => folder.entries)
  for (const now of [0, 3_000]) t.notOk(entries.areAsBefore(now))
  t.ok(entries.areAsBefore(6_000))
  folder.entries = 'changed'
  // What comes in the rest of the tick looks the same, so that the files are looked at until it is over, and once more then.
  for (const later of [1, 5, 900, 2_400, 3_000])
    t.notOk(entries.areAsBefore(6_000 + later), `after ${later} ms`)
  t.ok(entries.areAsBefore(9_001))
})

t.test('a file that is deleted while its transaction runs keeps that from being acknowledged', async t => {
  const { file, database } = await open(t)
  const written = database.write(async ({ db }) => {
    await sql`insert into notes values ('a')`.execute(db)
    rmSync(file)
  })
  await t.rejects(written, LOST)
})

t.test('nothing is written any more into files that were moved away', async t => {
  const { file, clock, database, write } = await open(t)
  await write()
  renameSync(file, `${file}.aside`)
  await clock.advance(20)
  await t.rejects(write(), LOST)
  renameSync(`${file}.aside`, file)
  await write()
  const { rows } = await sql<{ notes: number }>`select count(*) as notes from notes`.execute(database.reader)
  t.same(rows, [{ notes: 2 }])
})

t.test(
  'a file replaced by another one is noticed by the clock; one that is put back is used again',
  async t => {
    const { file, clock, events, write, check } = await open(t)
    renameSync(file, `${file}.aside`)
    writeFileSync(file, '')
    await clock.advance(1_000)
    t.same(events(), ['error: database files missing'])
    renameSync(`${file}.aside`, file)
    await clock.advance(1_000)
    t.same(events().slice(1), ['info: database files restored'])
    await write()
    t.equal(await check(), undefined)
  },
)

t.test('below the reserve new mail is refused until space is freed; other writes continue', async t => {
  const { clock, disk, database, write, check, events } = await open(t)
  database.storage.requireRoom()
  disk.free = RESERVE - 1
  await clock.advance(1_000)
  t.throws(() => database.storage.requireRoom(), { code: 'unavailable', message: /nearly full/ })
  t.match(await check(), { isFatal: false, reason: /limits\.disk_reserve/ })
  await write()
  disk.free = RESERVE + 1
  await clock.advance(1_000)
  t.throws(() => database.storage.requireRoom(), { code: 'unavailable' }, 'it does not come and go')
  disk.free = 1.2 * RESERVE
  await clock.advance(1_000)
  database.storage.requireRoom()
  t.equal(await check(), undefined)
  t.same(events(), ['error: disk space exhausted', 'info: disk space recovered'])
})

/** As a full disk does: the file cannot grow. */
async function fillDisk(database: Awaited<ReturnType<typeof open>>['database'], isFull: boolean) {
  await database.write(({ db }) => sql.raw(`pragma max_page_count = ${isFull ? 1 : 1_000_000}`).execute(db))
}

t.test('a full disk refuses writes as unavailable, and is logged once a minute and when it ends', async t => {
  const { clock, database, check, log } = await open(t)
  const writeMuch = () =>
    database.write(({ db }) => sql`insert into notes values (${'x'.repeat(100_000)})`.execute(db))
  await fillDisk(database, true)
  for (let tries = 0; tries < 20; tries += 1)
    await t.rejects(writeMuch(), { code: 'unavailable', message: /the disk is full/, retryAfterMs: 60_000 })
  t.match(database.storage.fault, { isFatal: true, reason: /cannot be written: database or disk is full/ })
  await clock.advance(60_000)
  await t.rejects(writeMuch())
  await fillDisk(database, false)
  await clock.advance(10_000)
  await writeMuch()
  t.equal(await check(), undefined)
  t.match(
    log.lines.map(({ event, fields }) => [event, fields['failures']]),
    [
      ['database write failed', 1],
      ['database write failed', 21],
      ['database writes resumed', 21],
    ],
  )
})

t.test('a work that fails for another reason is not reported as a disk fault', async t => {
  const { database, check, events } = await open(t)
  const twice = database.write(async ({ db }) => {
    await sql`create unique index one_note on notes (text)`.execute(db)
    for (let time = 0; time < 2; time += 1) await sql`insert into notes values ('a')`.execute(db)
  })
  await t.rejects(twice, { code: 'SQLITE_CONSTRAINT_UNIQUE' })
  t.equal(await check(), undefined)
  t.same(events(), [])
})

t.test('while little writes still find room on a full disk and large ones do not, it is full', async t => {
  const { clock, database, check, write, events } = await open(t)
  const writeMuch = () =>
    database.write(({ db }) => sql`insert into notes values (${'x'.repeat(100_000)})`.execute(db))
  await fillDisk(database, true)
  for (let tries = 0; tries < 5; tries += 1) {
    await t.rejects(writeMuch(), { code: 'unavailable' })
    await write()
    t.match(await check(), { code: 'database_failing', isFatal: true })
    await clock.advance(2_000)
  }
  await clock.advance(8_000)
  t.equal(await check(), undefined, 'its own trial says that it is over')
  t.same(events(), ['error: database write failed', 'info: database writes resumed'])
})

t.test('the health check writes, once a second however often it is asked, and waits for two', async t => {
  const { file, clock, database, check } = await open(t)
  const tried = async () => (await sql`select tried_at from write_trials`.execute(database.reader)).rows
  t.equal(await check(), undefined)
  const first = await tried()
  t.same(first, [{ tried_at: clock.now() }])
  await clock.advance(999)
  await Promise.all([check(), check(), check()])
  t.same(await tried(), first)
  await clock.advance(1)
  await check()
  t.same(await tried(), [{ tried_at: clock.now() }])
  await clock.advance(1_000)
  const other = new BetterSqlite(file)
  t.teardown(() => void other.close())
  other.exec('begin immediate')
  const asked = Promise.all([check(), check()])
  await pauseFor(5)
  await clock.advance(2_000)
  const late = {
    code: 'database_busy',
    isFatal: true,
    reason: 'the database has taken no write for 2 seconds',
  }
  t.same(await asked, [late, late])
})
