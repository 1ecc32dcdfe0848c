/**
 * A database that changes while it is read: a write commits after one of the statements of an answer, as another connection's may at any time.
 *
 * For tests that an answer is of one moment. PGlite has only one connection, on which the write would wait for the answer.
 */
import type { Test } from 'tap'
import type { KyselyPlugin } from 'kysely'
import type { Database, Queries } from '../../../src/db/database.js'
import { sqliteDatabase } from './database.js'
import { POSTGRES_SERVER, realPostgres } from './real-postgres.js'

export interface ChangingDatabase {
  /** Its readers count statements. */
  readonly database: Database
  /** @param statements of `read` after which `change` commits @returns undefined if there were fewer */
  readonly answerChanged: <T>(
    read: () => Promise<T>,
    statements: number,
    change: () => Promise<void>,
  ) => Promise<T | undefined>
}

export function changingDatabase(original: Database): ChangingDatabase {
  let statementsLeft = 0
  let change = async () => {}
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      statementsLeft -= 1
      if (statementsLeft === 0) await change()
      return result
    },
  }
  const counting = (reader: Queries): Queries => reader.withPlugin(plugin)
  return {
    database: {
      ...original,
      reader: counting(original.reader),
      slowReader: counting(original.slowReader),
      exportReader: counting(original.exportReader),
    },
    async answerChanged(read, statements, changing) {
      statementsLeft = statements
      change = changing
      const answer = await read()
      const hasChanged = statementsLeft <= 0
      statementsLeft = 0
      return hasChanged ? answer : undefined
    },
  }
}

/** Like `eachDatabase`, but for PGlite: on SQLite, or where tests have a PostgreSQL server, on that. */
export function eachDatabaseWithConnections(
  t: Test,
  name: string,
  test: (t: Test, database: Database) => Promise<void>,
): void {
  if (POSTGRES_SERVER === undefined)
    void t.test(`${name} (SQLite)`, async t => test(t, await sqliteDatabase(t)))
  else void t.test(`${name} (PostgreSQL)`, async t => test(t, await realPostgres(t)))
}
