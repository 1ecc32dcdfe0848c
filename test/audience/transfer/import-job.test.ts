/** Imports as a job: its idle behaviour. */
import t from 'tap'
import {
  findImportBySeq,
  insertImport,
  insertImportPart,
} from '../../../src/audience/transfer/import-store.js'
import { Importer, ImportJob } from '../../../src/audience/transfer/importer.js'
import { openSqlite } from '../../../src/db/sqlite/open-sqlite.js'
import { FakeDisk } from '../../../src/world/fake-disk.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { sqliteDatabase, sqliteFile } from '../../support/db/database.js'
import { NEVER, partsOf, receive } from '../../support/imports.js'
import { DAY_MS } from '../../support/mailroom.js'
import { until } from '../../support/turns.js'

const MINUTE_MS = 60_000

t.test('a file whose upload was cut off by a crash is gone an hour after its day at the latest', async t => {
  const [database, clock] = [await sqliteDatabase(t), new FakeClock()]
  await database.write(async ({ db }) => {
    const wishes = { id: 'left', workspaceId: 'w1', isSandbox: false, createdAt: clock.now() }
    await insertImportPart(db, await insertImport(db, wishes), 0, Buffer.from('email\n'))
  })
  const files = async () =>
    (await database.reader.selectFrom('contact_import_parts').select('import').execute()).length
  const stopping = new AbortController()
  const running = new ImportJob({ ...partsOf(database), clock }).run(stopping.signal)
  await clock.advance(MINUTE_MS)
  clock.skip(DAY_MS - 2 * MINUTE_MS)
  t.equal(await files(), 1)
  let minutes = 0
  await until('the file is gone', async () => {
    if (minutes++ < 61) await clock.advance(MINUTE_MS)
    return (await files()) === 0
  })
  stopping.abort()
  await running
})

t.test('no rows are imported into the disk space reserved for accepted mail', async t => {
  const file = sqliteFile(t)
  // For its tables.
  await sqliteDatabase(t, file)
  const [clock, log, disk] = [new FakeClock(), new FakeLog(), new FakeDisk()]
  const database = await openSqlite({ file, clock, watch: { disk, log, reserve: 1_000 } })
  t.teardown(() => database[Symbol.asyncDispose]())
  const parts = { ...partsOf(database), clock, log }
  const seq = await receive(parts, 'email\nann@x.example\n')
  disk.free = 999
  await clock.advance(1_000)
  const importing = new Importer(parts).finish(seq, NEVER)
  await until('it is refused', async () => log.lines.some(({ event }) => event === 'import interrupted'))
  t.equal((await findImportBySeq(database.reader, seq))?.rowsDone, 0)
  disk.free = 2_000
  await until('it is done', async () => {
    await clock.advance(1_000)
    return (await findImportBySeq(database.reader, seq))?.status === 'completed'
  })
  await importing
})
