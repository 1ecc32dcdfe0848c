/** The schema of a SQLite database as text, in an order that does not depend on the order of its making. */
import BetterSqlite from 'better-sqlite3'
import { openSqlite } from '../../../src/db/sqlite/open-sqlite.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'

/** What all migrations together make of an empty database. @param file path at which there is none yet */
export async function schemaAfterMigrations(file: string): Promise<string> {
  const database = await openSqlite({ file, clock: new FakeClock() })
  await database[Symbol.asyncDispose]()
  const handle = new BetterSqlite(file, { readonly: true })
  try {
    const statements = handle
      .prepare(
        "select sql from sqlite_schema where sql is not null and name not like 'sqlite_%' order by type desc, name",
      )
      .pluck()
      .all() as string[]
    return statements.map(statement => `${onLines(statement)};\n`).join('\n')
  } finally {
    handle.close()
  }
}

/** One column to a line, so that a change shows as the line it is. */
function onLines(statement: string): string {
  if (!statement.startsWith('CREATE TABLE') && !statement.startsWith('create table')) return statement
  return statement
    .replace('(', '(\n  ')
    .replaceAll(/, (?="|constraint)/g, ',\n  ')
    .replace(/\)$/, '\n)')
}
