/** What column types and table options are called in each dialect. */
import type { Dialect } from '../../database.js'

export interface ColumnTypes {
  /** A primary key that grows with every insert and is never reused. */
  readonly serial: string
  /** The integer primary key of a table whose keys are given by the program; of SQLite, the row id. */
  readonly rowid: string
  readonly octets: string
  /** JSON that is stored parsed. */
  readonly json: string
  /** Rows in the order of their primary key, without a key of their own. */
  readonly withoutRowid: string
  /** For rows that may be lost with a crash of the database server, and are therefore written without waiting for the disk. */
  readonly unlogged: string
  /**
   * For a table that is empty now and has a million rows a minute later: it keeps its pages. The server would plan statements for a table
   * without pages by reading all of it, and keep those plans until it next analyses the table.
   */
  readonly keepsPages: string
}

export const COLUMN_TYPES: Readonly<Record<Dialect, ColumnTypes>> = {
  sqlite: {
    serial: 'integer primary key autoincrement',
    rowid: 'integer',
    octets: 'blob',
    json: 'blob',
    withoutRowid: ' without rowid',
    unlogged: '',
    keepsPages: '',
  },
  postgres: {
    serial: 'bigserial primary key',
    rowid: 'bigint',
    octets: 'bytea',
    json: 'jsonb',
    withoutRowid: '',
    unlogged: 'unlogged ',
    keepsPages: ' with (vacuum_truncate = off)',
  },
}
