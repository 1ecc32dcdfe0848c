/**
 * Main module of a reader thread: runs one statement after the other on a read-only connection.
 *
 * Started by `slow-reader.ts`, never imported. Each statement is its own transaction, so that it sees every earlier commit, unless it is
 * between `begin` and `commit`.
 */
import { given } from '../../core/given.js'
import BetterSqlite, { type Statement } from 'better-sqlite3'
import { describeError } from '../../core/errors.js'
import { ownThread } from '../../world/threads.js'
import type { SlowAnswer, SlowQuestion, SlowReaderOptions } from './slow-reader.js'
import { sqliteCode } from '../faults/storage-fault.js'

/** May block on a lock, since it only blocks this thread. */
const BUSY_TIMEOUT_MS = 2_000

const thread = ownThread()
const { file, maxRows } = thread.options as SlowReaderOptions
const handle = new BetterSqlite(file, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })

/** Cache of prepared statements; rare ones are evicted first. */
const KEPT_STATEMENTS = 50
const kept = new Map<string, Prepared>()

interface Prepared {
  readonly statement: Statement<unknown[], unknown[]>
  /** Column names never change: no migration runs while a server has threads. Undefined for `begin` and `commit`, which return no rows. */
  readonly columns: readonly string[] | undefined
}

function prepared(sql: string): Prepared {
  const known = kept.get(sql) ?? prepare(sql)
  // Re-inserted to keep the map in order of last use.
  kept.delete(sql)
  kept.set(sql, known)
  const [oldest] = kept.keys()
  if (kept.size > KEPT_STATEMENTS && oldest !== undefined) kept.delete(oldest)
  return known
}

function prepare(sql: string): Prepared {
  const statement = handle.prepare<unknown[], unknown[]>(sql)
  if (!statement.reader) return { statement, columns: undefined }
  return { statement: statement.raw(true), columns: statement.columns().map(({ name }) => name) }
}

function answer({ sql, parameters }: SlowQuestion): SlowAnswer {
  const { statement, columns } = prepared(sql)
  if (!columns) {
    statement.run(...parameters)
    return { columns: [], rows: [] }
  }
  const rows: unknown[][] = []
  for (const row of statement.iterate(...parameters)) {
    if (rows.length === maxRows) throw new Error(`more than ${maxRows} rows in one result`)
    rows.push(row)
  }
  return { columns, rows }
}

thread.listen(question => {
  try {
    thread.post(answer(question as SlowQuestion))
  } catch (error) {
    const code = sqliteCode(error)
    thread.post({ error: describeError(error), ...given({ code }) })
  }
})
