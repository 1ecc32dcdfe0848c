/**
 * Copies a database in use to one file, and verifies such a file.
 *
 * Used by `postroad backup` and `restore`, which run as separate processes, by the server's backup thread, and before an upgrade. Uses SQLite's backup API within one read transaction: in
 * WAL mode it blocks neither reads nor commits of the server. Without the transaction every commit would restart the copy; `VACUUM INTO` takes several
 * times as long and delays checkpoints for that time. Throws Errors naming the file and the fault; an unfinished backup is deleted.
 */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { Kysely } from 'kysely'
import { describeError } from '../../core/errors.js'
import { requireUsable } from '../migrate.js'
import type { Tables } from '../tables.js'
import { signBackup } from './backup-signature.js'
import { checkBackupHeader } from './check-file.js'
import { sqliteDialect } from './sqlite-dialect.js'

export interface BackupFacts {
  /** Ms since epoch UTC. */
  readonly madeAt: number
  /** Version of the program that made it. */
  readonly version: string
  /** Its last migration. */
  readonly schema: string
  /** Rows by table. */
  readonly rows: Readonly<Record<string, number>>
}

export interface BackupRequest {
  readonly source: string
  readonly target: string
  readonly now: number
  readonly version: string
  /** `secrets.key`, which signs the backup; undefined if none is set. */
  readonly secretKey: Uint8Array | undefined
  /** Does not read the file back, which takes several times as long as writing it; `restore` does. */
  readonly isUnverified?: boolean
  /** @param done 0 to 1 */
  readonly onProgress?: (done: number) => void
}

/** Of a thread that makes one backup. */
export const BACKUP_PROGRAM = new URL('./backup-main.js', import.meta.url)

/** 8 MB, copied before timers and signals are processed. */
const PAGES_AT_ONCE = 2_000
export const PARTIAL = '.partial'

/** Disk space that a backup needs: the database with its log. */
export function octetsToBackUp(databaseFile: string): number {
  return ['', '-wal'].reduce(
    (sum, end) => sum + (statSync(databaseFile + end, { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
}

/** @throws Error unless a backup can be written there */
export function requireFree(target: string): void {
  if (existsSync(target)) throw new Error(`${target} exists already; name another file`)
  const folder = dirname(target)
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(
      `there is no folder ${folder} for the backup; create it, or name a file in another folder`,
    )
}

/** @throws Error naming the file */
export async function makeBackup(request: BackupRequest): Promise<BackupFacts> {
  const { source, target } = request
  requireFree(target)
  const partial = target + PARTIAL
  rmSync(partial, { force: true })
  // Whatever the umask: it contains everything.
  closeSync(openSync(partial, 'wx', 0o600))
  try {
    const rows = await copy(source, partial, request)
    const facts = finish(partial, request, rows)
    if (!request.isUnverified) readBackup(partial, facts)
    signBackup(partial, request.secretKey)
    sync(partial)
    renameSync(partial, target)
    sync(dirname(target))
    return facts
  } catch (error) {
    rmSync(partial, { force: true })
    throw error instanceof Error ? named(error, target) : error
  }
}

async function copy(
  source: string,
  target: string,
  { onProgress }: BackupRequest,
): Promise<BackupFacts['rows']> {
  const handle = new BetterSqlite(source, { readonly: true, timeout: 5_000 })
  try {
    handle.exec('begin')
    // The snapshot begins with the transaction's first read.
    const rows = countRows(handle)
    await handle.backup(target, {
      progress({ totalPages, remainingPages }) {
        onProgress?.(totalPages === 0 ? 1 : 1 - remainingPages / totalPages)
        return PAGES_AT_ONCE
      },
    })
    return rows
  } finally {
    handle.close()
  }
}

/** Merges the log into the file and adds the backup's facts. */
function finish(file: string, { now, version }: BackupRequest, rows: BackupFacts['rows']): BackupFacts {
  const handle = new BetterSqlite(file)
  try {
    handle.pragma('journal_mode = delete')
    const facts = { madeAt: now, version, schema: schemaOf(handle), rows }
    handle.exec('create table backup_facts (facts text not null)')
    handle.prepare('insert into backup_facts values (?)').run(JSON.stringify(facts))
    return facts
  } finally {
    handle.close()
  }
}

/**
 * Verifies the whole file: integrity, schema, and row counts of all tables.
 *
 * @param expected default: the facts stored in the file
 * @throws Error saying what is wrong
 */
export function readBackup(file: string, expected?: BackupFacts): BackupFacts {
  if (!existsSync(file)) throw new Error(`there is no file ${file}`)
  checkBackupHeader(file)
  const handle = openToRead(file)
  try {
    const facts = factsIn(handle, file)
    const faults = handle.pragma('integrity_check(5)') as { integrity_check: string }[]
    if (faults[0]?.integrity_check !== 'ok')
      throw new Error(`it is damaged: ${faults.map(fault => fault.integrity_check).join('; ')}`)
    const wanted = expected ?? facts
    if (schemaOf(handle) !== wanted.schema) throw new Error(`its schema is not ${wanted.schema}`)
    const rows = countRows(handle)
    for (const [table, count] of Object.entries(wanted.rows))
      if (rows[table] !== count)
        throw new Error(`it has ${rows[table] ?? 'no'} rows of ${table} in place of ${count}`)
    return facts
  } catch (error) {
    throw error instanceof Error ? named(error, file) : error
  } finally {
    handle.close()
  }
}

/**
 * Whether this program can serve a backup: another version's schema is no damage. Reads the catalog and the list of migrations alone, so
 * that a view or trigger of the file does nothing; call it before `readBackup`, for a file that others may have changed.
 *
 * @throws Error saying why not
 */
export async function requireRestorable(file: string): Promise<void> {
  checkBackupHeader(file)
  const handle = openToRead(file)
  const db = new Kysely<Tables>({ dialect: sqliteDialect(handle).dialect })
  try {
    const applied = await requireUsable(db, 'sqlite')
    if (applied.length === 0) throw new Error('it is no backup of Postroad')
  } catch (error) {
    throw new Error(`${file} cannot be restored: ${describeError(error)}`, { cause: error })
  } finally {
    await db.destroy()
  }
}

/** Removes the backup's own table from a copy of it, which is then a regular database. */
export function unpackBackup(file: string): void {
  const handle = new BetterSqlite(file)
  try {
    handle.exec('drop table backup_facts')
  } finally {
    handle.close()
  }
}

/** With functions in its schema that have effects disabled. */
function openToRead(file: string): BetterSqlite.Database {
  const handle = new BetterSqlite(file, { readonly: true, timeout: 5_000 })
  handle.pragma('trusted_schema = off')
  return handle
}

function factsIn(handle: BetterSqlite.Database, file: string): BackupFacts {
  try {
    return JSON.parse(handle.prepare('select facts from backup_facts').pluck().get() as string) as BackupFacts
  } catch {
    throw new Error(`${file} is a database and no backup of Postroad`)
  }
}

/** Kysely's own tables change at each start. */
const NOT_COUNTED = new Set(['backup_facts', 'schema_migrations_lock'])

function countRows(handle: BetterSqlite.Database): Record<string, number> {
  const tables = handle
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'")
    .pluck()
    .all() as string[]
  return Object.fromEntries(
    tables
      .filter(table => !NOT_COUNTED.has(table))
      .sort()
      .map(table => [
        table,
        handle
          .prepare(`select count(*) from "${table.replaceAll('"', '""')}"`)
          .pluck()
          .get() as number,
      ]),
  )
}

function schemaOf(handle: BetterSqlite.Database): string {
  try {
    return String(handle.prepare('select max(name) from schema_migrations').pluck().get())
  } catch {
    throw new Error('it is no database of Postroad')
  }
}

/** Of a folder: makes a rename durable. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function named(error: Error, file: string): Error {
  const text = describeError(error)
  return text.includes(file) ? error : new Error(`${file}: ${text}`, { cause: error })
}
