/**
 * The program of the thread in which long reads run: one statement after the other, on a connection that cannot write.
 *
 * Started by `slow-reader.ts`, never imported. Each statement is a transaction of its own, so that it sees every commit made
 * before it.
 */
import { given } from '../../core/given.js'
import BetterSqlite, { type Statement } from 'better-sqlite3'
import { describeError } from '../../core/errors.js'
import { ownThread } from '../../world/threads.js'
import type { SlowAnswer, SlowQuestion, SlowReaderOptions } from './slow-reader-protocol.js'
import { sqliteCode } from '../sqlite/storage-fault.js'

/** Here nobody else waits while a lock is waited for. */
const BUSY_TIMEOUT_MS = 2_000

const thread = ownThread()
const { file, mostRows } = thread.options as SlowReaderOptions
const handle = new BetterSqlite(file, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })

/** Statements that are asked again and again with other parameters; what comes once goes soon. */
const KEPT_STATEMENTS = 50
const kept = new Map<string, Prepared>()

interface Prepared {
  readonly statement: Statement<unknown[], unknown[]>
  /** As they are for good: no schema changes while a server has its threads. */
  readonly columns: readonly string[]
}

function prepared(sql: string): Prepared {
  const known = kept.get(sql) ?? prepare(sql)
  // Put in anew, so that the map stays in the order of last use.
  kept.delete(sql)
  kept.set(sql, known)
  const [oldest] = kept.keys()
  if (kept.size > KEPT_STATEMENTS && oldest !== undefined) kept.delete(oldest)
  return known
}

function prepare(sql: string): Prepared {
  const statement = handle.prepare<unknown[], unknown[]>(sql).raw(true)
  return { statement, columns: statement.columns().map(({ name }) => name) }
}

function answer({ sql, parameters }: SlowQuestion): SlowAnswer {
  const { statement, columns } = prepared(sql)
  const rows: unknown[][] = []
  for (const row of statement.iterate(...parameters)) {
    if (rows.length === mostRows) throw new Error(`more than ${mostRows} rows in one answer`)
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
