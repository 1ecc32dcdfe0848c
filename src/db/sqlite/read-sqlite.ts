/**
 * Reads a database file of any version without changing anything, not even beside it.
 *
 * Used by `postroad migrate --dry-run`. SQLite opens a database with a write-ahead log only where it can create that log and its index, so a
 * copy on a read-only disk cannot be opened, and one that can is left with two more files. A file without a log is therefore opened as
 * immutable, which only Node's own driver can do: better-sqlite3 takes no URI. With a log, a server has it open or crashed; then both
 * files exist already.
 */
import { existsSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import BetterSqlite from 'better-sqlite3'
import {
  Kysely,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
} from 'kysely'
import type { Tables } from '../tables.js'
import { checkHeader } from './check-file.js'
import { OPENING_TIMEOUT_MS } from './connections.js'
import { OwnAdapter, sqliteDialect } from './sqlite-dialect.js'

/** @throws DamagedDatabaseError, SQLite's error */
export async function readSqlite<T>(file: string, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  checkHeader(file)
  const db = existsSync(`${file}-wal`) ? openBesideOthers(file) : openImmutable(file)
  try {
    return await work(db)
  } finally {
    await db.destroy()
  }
}

function openBesideOthers(file: string): Kysely<Tables> {
  const handle = new BetterSqlite(file, { readonly: true, timeout: OPENING_TIMEOUT_MS })
  return new Kysely<Tables>({ dialect: sqliteDialect(handle).dialect })
}

function openImmutable(file: string): Kysely<Tables> {
  const url = pathToFileURL(file)
  url.searchParams.set('immutable', '1')
  return new Kysely<Tables>({ dialect: immutableDialect(new DatabaseSync(url, { readOnly: true })) })
}

function immutableDialect(handle: DatabaseSync): Dialect {
  const refuse = () => Promise.reject(new Error('an immutable database has no transactions'))
  const connection: DatabaseConnection = {
    async executeQuery({ sql, parameters }) {
      return { rows: handle.prepare(sql).all(...(parameters as SQLInputValue[])) as never[] }
    },
    streamQuery: () => {
      throw new Error('no plan streams')
    },
  }
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connection,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    releaseConnection: async () => undefined,
    destroy: async () => handle.close(),
  }
  return {
    createAdapter: () => new OwnAdapter(),
    createDriver: () => driver,
    createIntrospector: db => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}
