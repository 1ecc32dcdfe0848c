/** Imports as a job: what it does by itself while nobody imports anything. */
import t from 'tap'
import { ImportJob } from '../../../src/audience/transfer/import-job.js'
import { insertImport, insertImportPart } from '../../../src/audience/transfer/import-store.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { sqliteDatabase } from '../../support/db/database.js'
import { partsOf } from '../../support/imports.js'
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
