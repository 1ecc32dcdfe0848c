/** What is deleted is given back to the file system, bit by bit and by night, and unsent mail is not what is deleted. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import type { Database } from '../../src/db/database.js'
import { compactFile, openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { shrinkDatabase } from '../../src/resource/upkeep.js'
import { FakeDisk } from '../../src/world/fake-disk.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { isQuietHour } from '../../src/world/time/zone-time.js'
import { systemClock } from '../../src/world/time/clock.js'

const MB = 1_024 * 1_024

async function open(t: Test, file: string, log = new FakeLog()): Promise<Database> {
  const database = await openSqlite({
    file,
    clock: systemClock,
    watch: { disk: new FakeDisk(), log, reserve: 0 },
  })
  t.teardown(() => database[Symbol.asyncDispose]())
  return database
}

/** A separate table, half a megabyte a row. @param rows kept at its end */
async function fillAndEmpty(database: Database, rows: number, kept: number): Promise<void> {
  await database.write(async ({ db }) => {
    await sql`create table ballast (id integer primary key, octets blob)`.execute(db)
    for (let row = 0; row < rows; row += 1)
      await sql`insert into ballast values (${row}, zeroblob(${MB / 2}))`.execute(db)
  })
  await database.write(({ db }) => sql`delete from ballast where id < ${rows - kept}`.execute(db))
}

t.test('by night a database of which much is unused becomes smaller, and keeps what is in it', async t => {
  const database = await open(t, join(t.testdir(), 'test.db'))
  await fillAndEmpty(database, 44, 4)
  const { octets, freeOctets } = database.file?.size() ?? { octets: 0, freeOctets: 0 }
  t.ok(freeOctets > 18 * MB)
  const log = new FakeLog()
  const parts = { database, log, isQuietHour: () => true }
  await shrinkDatabase({ ...parts, isQuietHour: () => false }, new AbortController().signal)
  t.equal(database.file?.size().octets, octets, 'by day nothing happens')
  await shrinkDatabase(parts, new AbortController().signal)
  const after = database.file?.size() ?? { octets: 0, freeOctets: 0 }
  t.ok(after.octets < octets - 18 * MB, `${octets} -> ${after.octets}`)
  const { rows } = await sql<{
    n: number
  }>`select count(*) as n from ballast where length(octets) = ${MB / 2}`.execute(database.reader)
  t.same(rows, [{ n: 4 }])
  t.match(log.lines, [{ event: 'database shrunk' }])
})

t.test('a little that is unused is left for what comes', async t => {
  const database = await open(t, join(t.testdir(), 'test.db'))
  await fillAndEmpty(database, 40, 38)
  const before = database.file?.size()
  const log = new FakeLog()
  const parts = { database, log, isQuietHour: () => true }
  await shrinkDatabase(parts, new AbortController().signal)
  t.same(database.file?.size(), before)
  t.same(log.lines, [])
})

t.test('a file of an earlier version learns it: at the start where it is small, else by compact', async t => {
  const file = join(t.testdir(), 'old.db')
  const first = await openSqlite({ file, clock: systemClock })
  await first[Symbol.asyncDispose]()
  const old = new BetterSqlite(file)
  old.pragma('auto_vacuum = none')
  old.exec('vacuum')
  old.close()
  const beside = await openSqlite({ file, clock: systemClock })
  t.equal(beside.file?.size().canShrink, false, 'a command beside a server leaves the file alone')
  await beside[Symbol.asyncDispose]()
  const served = await open(t, file)
  t.equal(served.file?.size().canShrink, true)
  const other = join(t.testdir(), 'large.db')
  const large = new BetterSqlite(other)
  large.exec('create table t (o blob); insert into t values (zeroblob(3000000)); delete from t')
  large.close()
  const before = statSync(other).size
  compactFile(other)
  t.ok(statSync(other).size < before / 10)
})

t.test('quiet hours are those from one to five by the clock on the wall', t => {
  const hours = Array.from({ length: 24 }, (_, hour) => new Date(2026, 4, 5, hour, 30).getTime())
  t.same(
    hours.flatMap((at, hour) => (isQuietHour(at) ? hour : [])),
    [1, 2, 3, 4],
  )
  t.end()
})
