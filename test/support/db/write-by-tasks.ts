/**
 * A thread that writes by itself, as `writing-thread.ts` runs it: does what the rows of the table `tasks` say, one transaction each.
 *
 * `note`: writes its text into `notes`; `time`: the day that it is, after its text; `wrong`: writes it and throws; `die`: writes it and ends the thread in the middle of the transaction.
 * What became of each is written into `outcomes`.
 */
import { sql } from 'kysely'
import type { Queries } from '../../../src/db/database.js'
import { openThreadDatabase } from '../../../src/db/threads/thread-database.js'
import { ownThread } from '../../../src/world/threads.js'

const { database, clock, stopping, finished } = openThreadDatabase(ownThread())
const note = (db: Queries, table: string, text: string) =>
  sql`insert into ${sql.table(table)} (text) values (${text})`.execute(db)
const { rows } = await sql<{
  text: string
  what: string
}>`select text, what from tasks order by rowid`.execute(database.reader)
for (const { text, what } of rows) {
  if (stopping.aborted) break
  try {
    await database.write(async ({ db }) => {
      await note(
        db,
        'notes',
        what === 'time' ? `${text} ${new Date(clock.now()).toISOString().slice(0, 10)}` : text,
      )
      if (what === 'wrong') throw new Error('thought better of it')
      if (what === 'die') process.exit(3)
    })
    await database.write(({ db }) => note(db, 'outcomes', `${text}: written`))
  } catch (error) {
    const outcome = `${text}: ${error instanceof Error ? error.message : String(error)}`
    await database.write(({ db }) => note(db, 'outcomes', outcome)).catch(() => undefined)
  }
}
await database[Symbol.asyncDispose]()
finished()
