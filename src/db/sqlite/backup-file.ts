/**
 * A copy of a database in one file, beside whoever works with it, and the reading back of such a file.
 *
 * Called by `postroad backup` and `restore`, each a process of its own. The copy is made by SQLite's backup within one read
 * transaction: in WAL mode neither the server's reads nor its commits wait for that, and it is begun only once, where without the
 * transaction every commit of the server would have it start anew, and `VACUUM INTO` would write every row again, which takes several
 * times as long and keeps the log from being brought over as much longer. What lies beside the database is put into
 * the file as rows. Fails: Errors whose text says what is wrong with which file; a file that was not finished is taken away.
 */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { describeError } from '../../core/errors.js'
import { checkHeader } from './check-file.js'

/** A file beside the database that belongs to it, e.g. `visits/0000000001.visits`. */
export interface CompanionFile {
  /** Relative to the data folder. */
  readonly name: string
  readonly octets: Buffer
}

export interface BackupFacts {
  /** Ms since epoch UTC. */
  readonly madeAt: number
  /** Of the program that made it. */
  readonly version: string
  /** The last schema change that it has. */
  readonly schema: string
  /** Rows by table. */
  readonly rows: Readonly<Record<string, number>>
}

export interface BackupRequest {
  readonly source: string
  readonly target: string
  readonly now: number
  readonly version: string
  /** Asked for after the database was copied: what they have beyond it does no harm. */
  readonly companions: () => Iterable<CompanionFile>
  /** @param done 0 to 1 */
  readonly onProgress?: (done: number) => void
}

/** Copied before timers and signals have their turn: 8 MB. */
const PAGES_AT_ONCE = 2_000
const PARTIAL = '.partial'

/** @throws Error naming the file */
export async function makeBackup(request: BackupRequest): Promise<BackupFacts> {
  const { source, target } = request
  if (existsSync(target)) throw new Error(`${target} exists already; name another file`)
  const partial = target + PARTIAL
  rmSync(partial, { force: true })
  try {
    const rows = await copy(source, partial, request)
    const facts = finish(partial, request, rows)
    readBackup(partial, facts)
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
    // The transaction sees the database from its first read on.
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

/** Makes it one file that needs no other, and says in it what it is. */
function finish(
  file: string,
  { now, version, companions }: BackupRequest,
  rows: BackupFacts['rows'],
): BackupFacts {
  const handle = new BetterSqlite(file)
  try {
    handle.pragma('journal_mode = delete')
    const facts = { madeAt: now, version, schema: schemaOf(handle), rows }
    handle.exec('create table backup_facts (facts text not null)')
    handle.prepare('insert into backup_facts values (?)').run(JSON.stringify(facts))
    handle.exec('create table backup_files (name text primary key, octets blob not null)')
    const insert = handle.prepare('insert into backup_files values (?, ?)')
    for (const { name, octets } of companions()) insert.run(name, octets)
    return facts
  } finally {
    handle.close()
  }
}

/**
 * Reads the whole file: that it is sound, of a schema, and holds as many rows of each table as it should.
 *
 * @param expected where absent, what the file says of itself
 * @throws Error saying what is wrong
 */
export function readBackup(file: string, expected?: BackupFacts): BackupFacts {
  if (!existsSync(file)) throw new Error(`there is no file ${file}`)
  checkHeader(file)
  const handle = new BetterSqlite(file, { readonly: true, timeout: 5_000 })
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

/** Takes what only a backup has out of a copy of it, which then is a database again. @param take gets one file after the other */
export function unpackBackup(file: string, take: (companion: CompanionFile) => void): void {
  const handle = new BetterSqlite(file)
  try {
    const rows = handle.prepare('select name, octets from backup_files order by name').iterate()
    for (const companion of rows) take(companion as CompanionFile)
    handle.exec('drop table backup_files; drop table backup_facts')
  } finally {
    handle.close()
  }
}

function factsIn(handle: BetterSqlite.Database, file: string): BackupFacts {
  try {
    return JSON.parse(handle.prepare('select facts from backup_facts').pluck().get() as string) as BackupFacts
  } catch {
    throw new Error(`${file} is a database and no backup of Postroad`)
  }
}

/** What Kysely keeps for itself changes with each start. */
const NOT_COUNTED = new Set(['backup_facts', 'backup_files', 'schema_migrations_lock'])

function countRows(handle: BetterSqlite.Database): Record<string, number> {
  const tables = handle
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'")
    .pluck()
    .all() as string[]
  return Object.fromEntries(
    tables
      .filter(table => !NOT_COUNTED.has(table))
      .sort()
      .map(table => [table, handle.prepare(`select count(*) from "${table}"`).pluck().get() as number]),
  )
}

function schemaOf(handle: BetterSqlite.Database): string {
  try {
    return String(handle.prepare('select max(name) from schema_migrations').pluck().get())
  } catch {
    throw new Error('it is no database of Postroad')
  }
}

/** Of a folder: that the new name is on disk. */
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
