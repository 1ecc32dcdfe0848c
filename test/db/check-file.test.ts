/** A server does not begin on a database that is not whole, and says what to do. */
import { cpSync, truncateSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeDisk } from '../../src/world/fake-disk.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { sqliteDatabase, sqliteFile } from '../support/db/database.js'

const PAGE = 4_096

/** With more rows than fit on a few pages, closed. */
async function filled(t: Test): Promise<string> {
  const template = sqliteFile(t)
  await sqliteDatabase(t, template)
  const file = `${template}.served`
  cpSync(template, file)
  await using database = await openSqlite({ file, clock: new FakeClock() })
  await database.write(async ({ db }) => {
    for (let n = 0; n < 100; n += 1)
      await sql`insert into secrets values (${`secret ${n}`}, 1, ${'x'.repeat(3_000)}, 1)`.execute(db)
  })
  return file
}

async function serve(file: string): Promise<void> {
  const watch = { disk: new FakeDisk(), log: new FakeLog(), reserve: 0 }
  await using database = await openSqlite({ file, clock: new FakeClock(), watch })
  await sql`select count(*) from secrets`.execute(database.reader)
}

async function overwrite(file: string, at: number, octets: Buffer): Promise<void> {
  const handle = await open(file, 'r+')
  await handle.write(octets, 0, octets.length, at)
  await handle.close()
}

t.test('a whole database is opened, also one whose log was not brought over', async t => {
  const file = await filled(t)
  await serve(file)
  const copy = `${file}.copy`
  const database = await openSqlite({ file, clock: new FakeClock() })
  await database.write(({ db }) => sql`delete from secrets`.execute(db))
  cpSync(file, copy)
  cpSync(`${file}-wal`, `${copy}-wal`)
  await database[Symbol.asyncDispose]()
  await serve(copy)
})

for (const [what, damage, fault] of [
  ['cut short', async (file: string) => truncateSync(file, 40 * PAGE), /has 163840 octets of \d+/],
  ['cut to less than a header', async (file: string) => truncateSync(file, 50), /has 50 octets/],
  [
    'that is text',
    async (file: string) => writeFileSync(file, 'Hello.\n'.repeat(100)),
    /not an SQLite database/,
  ],
  [
    'with an invalid page size',
    (file: string) => overwrite(file, 16, Buffer.from([3, 3])),
    /header is invalid/,
  ],
  [
    'whose schema is overwritten',
    (file: string) => overwrite(file, 100, Buffer.alloc(PAGE - 100, 0xff)),
    /malformed|not a database/,
  ],
  [
    'whose tables are overwritten',
    (file: string) => overwrite(file, PAGE, Buffer.alloc(60 * PAGE, 0xff)),
    /malformed/,
  ],
] as const)
  t.test(`a file ${what} is refused, and told to be damaged`, async t => {
    const file = await filled(t)
    await damage(file)
    await t.rejects(serve(file), { name: 'DamagedDatabaseError', message: fault })
    await t.rejects(serve(file), { message: /restore a backup/ })
  })
