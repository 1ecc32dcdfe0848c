/**
 * A SQLite file as source or target of a copy.
 *
 * A source is opened for this process alone, so that no server uses it meanwhile. A target is written beside its place without waiting for
 * the disk, and moved there once it is complete. Throws Errors an operator can act on.
 */
import { closeSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { AppError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import { sync } from '../sqlite/backup-file.js'
import { checkHeader } from '../sqlite/check-file.js'
import { openSqlite } from '../sqlite/open-sqlite.js'
import { sqliteCode } from '../faults/storage-fault.js'
import { kindOf, type Column, type Kinds, type Row, type TableShape } from './copied-table.js'
import { MAX_OCTETS, MAX_ROWS, sizeOf, type CopySide, type CopySource, type CopyTarget } from './copy-side.js'

const KINDS: Kinds = {
  text: 'text',
  'varchar(255)': 'text',
  integer: 'number',
  bigint: 'number',
  'double precision': 'number',
  blob: 'octets',
}

const WAIT_MS = 300
/** Page cache of a target, whose indexes are built at the end. */
const CACHE_KILOBYTES = 65_536

/** @throws Error for a file that is missing, damaged, in use, or has another schema */
export async function openSqliteSource(file: string, clock: Clock): Promise<CopySource> {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0)
    throw new AppError('not_found', `there is no database at ${file}`)
  checkHeader(file)
  const database = await openSqlite({ file, clock, mayMigrate: false })
  await database[Symbol.asyncDispose]()
  const handle = new BetterSqlite(file, { timeout: WAIT_MS, fileMustExist: true })
  try {
    requireAlone(handle, file)
    return new SqliteSource(handle)
  } catch (error) {
    handle.close()
    throw error
  }
}

/** In this mode, the first read of a file in WAL mode locks out every other connection, also open ones. @throws AppError conflict */
function requireAlone(handle: BetterSqlite.Database, file: string): void {
  try {
    handle.pragma('locking_mode = exclusive')
    handle.prepare('select count(*) from sqlite_schema').get()
  } catch (error) {
    if (!sqliteCode(error)?.startsWith('SQLITE_BUSY')) throw error
    throw new AppError('conflict', `${file} is in use by another process; stop the server first`)
  }
}

class SqliteSide implements CopySide {
  protected readonly handle: BetterSqlite.Database

  constructor(handle: BetterSqlite.Database) {
    this.handle = handle
  }

  async listTables(): Promise<TableShape[]> {
    const tables = this.handle
      .prepare(
        `select name, sql from sqlite_schema join pragma_table_list using (name)
        where schema = 'main' and pragma_table_list.type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name`,
      )
      .all() as { name: string; sql: string }[]
    return tables.map(({ name, sql }) => {
      const columns = this.handle
        .prepare('select name, type, pk from pragma_table_xinfo(?) where hidden = 0')
        .all(name) as { name: string; type: string; pk: number }[]
      return {
        name,
        columns: columns.map(column => ({
          name: column.name,
          kind: kindOf(name, column.name, column.type, KINDS),
        })),
        serial: /\bautoincrement\b/i.test(sql) ? columns.find(({ pk }) => pk === 1)?.name : undefined,
      }
    })
  }

  async countRows({ name }: TableShape): Promise<number> {
    return this.handle.prepare(`select count(*) from "${name}"`).pluck().get() as number
  }

  async *read({ name, columns }: TableShape): AsyncGenerator<Row[]> {
    const selected = columns.map(column =>
      column.kind === 'json' ? `json("${column.name}")` : `"${column.name}"`,
    )
    const statement = this.handle.prepare(`select ${selected.join(', ')} from "${name}"`).raw()
    let rows: Row[] = []
    let octets = 0
    for (const row of statement.iterate() as IterableIterator<Row>) {
      rows.push(row)
      octets += sizeOf(row)
      if (rows.length < MAX_ROWS && octets < MAX_OCTETS) continue
      yield rows
      rows = []
      octets = 0
    }
    if (rows.length > 0) yield rows
  }

  async readPosition({ name }: TableShape): Promise<number> {
    const position = this.handle.prepare('select seq from sqlite_sequence where name = ?').pluck().get(name)
    return typeof position === 'number' ? position : 0
  }
}

class SqliteSource extends SqliteSide implements CopySource {
  async [Symbol.asyncDispose](): Promise<void> {
    this.handle.close()
  }
}

const PARTIAL = '.copying'

/** @throws AppError conflict if the file exists */
export async function openSqliteTarget(file: string, clock: Clock): Promise<CopyTarget> {
  requireAbsent(file)
  const partial = file + PARTIAL
  removeDatabase(partial)
  // Whatever the umask: it will contain everything.
  closeSync(openSync(partial, 'wx', 0o600))
  const database = await openSqlite({ file: partial, clock })
  await database[Symbol.asyncDispose]()
  const handle = new BetterSqlite(partial, { timeout: WAIT_MS })
  // Synced as a whole by `commit`; references are checked by `build`.
  handle.pragma('synchronous = off')
  handle.pragma('foreign_keys = off')
  handle.pragma(`cache_size = -${CACHE_KILOBYTES}`)
  return new SqliteTarget(handle, file)
}

function requireAbsent(file: string): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new AppError('conflict', `${file} exists already; move it away, or name another file`)
}

function removeDatabase(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
}

class SqliteTarget extends SqliteSide implements CopyTarget {
  private readonly file: string
  /** Statements that create the indexes, which are dropped until all rows are there. */
  private readonly indexes: readonly string[]
  private readonly inserts = new Map<string, BetterSqlite.Statement>()

  constructor(handle: BetterSqlite.Database, file: string) {
    super(handle)
    this.file = file
    const indexes = handle
      .prepare(`select name, sql from sqlite_schema where type = 'index' and sql is not null order by name`)
      .all() as { name: string; sql: string }[]
    for (const { name } of indexes) handle.exec(`drop index "${name}"`)
    this.indexes = indexes.map(({ sql }) => sql)
  }

  async write(table: TableShape, rows: readonly Row[]): Promise<void> {
    const insert = this.insertInto(table)
    this.handle.exec('begin')
    for (const row of rows) insert.run(row)
    this.handle.exec('commit')
  }

  private insertInto({ name, columns }: TableShape): BetterSqlite.Statement {
    const known = this.inserts.get(name)
    if (known) return known
    const names = columns.map(column => `"${column.name}"`).join(', ')
    const insert = this.handle.prepare(
      `insert into "${name}" (${names}) values (${columns.map(placeOf).join(', ')})`,
    )
    this.inserts.set(name, insert)
    return insert
  }

  async build(): Promise<void> {
    for (const index of this.indexes) this.handle.exec(index)
    const [dangling] = this.handle.pragma('foreign_key_check') as { table: string; parent: string }[]
    if (dangling)
      throw new Error(`a row of ${dangling.table} refers to a row of ${dangling.parent} that does not exist`)
  }

  async writePosition({ name }: TableShape, position: number): Promise<void> {
    this.handle.prepare('delete from sqlite_sequence where name = ?').run(name)
    this.handle.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(name, position)
  }

  async commit(): Promise<void> {
    const partial = this.file + PARTIAL
    this.handle.pragma('wal_checkpoint(truncate)')
    this.handle.close()
    sync(partial)
    requireAbsent(this.file)
    renameSync(partial, this.file)
    sync(dirname(this.file))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.handle.close()
    removeDatabase(this.file + PARTIAL)
  }
}

function placeOf({ kind }: Column): string {
  return kind === 'json' ? 'jsonb(?)' : '?'
}
