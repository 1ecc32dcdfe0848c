/** The database of an installation, opened beside its server. */
import { join } from 'node:path'
import type { Database } from '../../../src/db/database.js'
import { openPostgres } from '../../../src/db/postgres/open-postgres.js'
import { openSqlite } from '../../../src/db/sqlite/open-sqlite.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemRandom } from '../../../src/world/random.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import type { Initialised } from './process.js'

/** Works as another process would. */
export async function beside(
  { dataDir, environment }: Initialised,
  work: (database: Database) => Promise<unknown>,
): Promise<void> {
  const url = environment['POSTROAD_DATABASE_URL']
  const clock = new FakeClock()
  const database =
    url === undefined
      ? await openSqlite({ file: join(dataDir, 'postroad.db'), clock })
      : await openPostgres({ url, clock, random: systemRandom, log: new FakeLog() })
  await work(database)
  await database[Symbol.asyncDispose]()
}
