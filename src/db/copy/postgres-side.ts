/**
 * A PostgreSQL database as source or target of a copy, each within one transaction.
 *
 * A source is read as of one moment, and no server can join meanwhile. A target shows nothing until it is complete. Rows are read with a
 * cursor, and written by arrays of columns, 1,000 at a time. Throws Errors an operator can act on, without the URL.
 */
import { AppError } from '../../core/errors.js'
import { openClient } from '../postgres/connections.js'
import { openPostgres, type PostgresOptions } from '../postgres/open-postgres.js'
import { Servers } from '../postgres/servers.js'
import { copiedOnly, kindOf, type Column, type Kinds, type Row, type TableShape } from './copied-table.js'
import { MAX_OCTETS, MAX_ROWS, sizeOf, type CopySide, type CopySource, type CopyTarget } from './copy-side.js'

const KINDS: Kinds = {
  text: 'text',
  'character varying': 'text',
  integer: 'number',
  bigint: 'number',
  'double precision': 'number',
  bytea: 'octets',
  jsonb: 'json',
}

/** One connection. Rows are arrays; bigint is a number. */
export interface Session {
  query(text: string, values?: readonly unknown[]): Promise<readonly (readonly unknown[])[]>
  end(): Promise<void>
}

export type PostgresPlace = Pick<PostgresOptions, 'url' | 'clock' | 'random' | 'log'>

/** @throws Error for a database that cannot be reached, is served, or has another schema */
export async function openPostgresSource(place: PostgresPlace): Promise<CopySource> {
  const database = await openPostgres({ ...place, mayCreate: false, mayMigrate: false })
  await database[Symbol.asyncDispose]()
  return postgresSource(await connect(place.url))
}

/** @throws Error for a database that cannot be reached, or is not empty */
export async function openPostgresTarget(place: PostgresPlace): Promise<CopyTarget> {
  const session = await connect(place.url)
  try {
    await requireOwnTables(session)
    const database = await openPostgres(place)
    await database[Symbol.asyncDispose]()
  } catch (error) {
    await session.end()
    throw error
  }
  return postgresTarget(session)
}

async function connect(url: string): Promise<Session> {
  const client = openClient(new Servers(url), 'postroad copy')
  // One that is lost fails its query as well; unheard, the event would end the process.
  client.on('error', () => {})
  await client.connect()
  return {
    async query(text, values = []) {
      const { rows } = await client.query<unknown[]>({ text, values: [...values], rowMode: 'array' })
      return rows
    },
    end: () => client.end(),
  }
}

/** Before the schema is created among tables of something else. @throws AppError conflict */
async function requireOwnTables(session: Session): Promise<void> {
  const rows = await session.query(
    `select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm')`,
  )
  const names = rows.map(([name]) => String(name))
  if (names.length > 0 && !names.includes('schema_migrations'))
    throw new AppError(
      'conflict',
      `the target holds other tables (${names[0] ?? ''}); create an empty database for the copy`,
    )
}

/** @param session given up if this throws */
export async function postgresSource(session: Session): Promise<CopySource> {
  try {
    await begin(session)
    return new PostgresSource(session)
  } catch (error) {
    await session.end()
    throw error
  }
}

/** @param session on a migrated database; given up if this throws */
export async function postgresTarget(session: Session): Promise<CopyTarget> {
  try {
    await begin(session)
    const target = new PostgresTarget(session)
    await target.prepare()
    return target
  } catch (error) {
    await session.end()
    throw error
  }
}

/** Locks out servers: one that starts has to insert its row, and one that writes locks its own. @throws AppError conflict */
async function begin(session: Session): Promise<void> {
  for (const statement of [
    'begin isolation level repeatable read',
    'set local statement_timeout = 0',
    'set local idle_in_transaction_session_timeout = 0',
    `set local lock_timeout = '5s'`,
    // Numbers as short as they can be, and octets as this program reads them.
    'set local extra_float_digits = 1',
    `set local bytea_output = 'hex'`,
    'lock table nodes in exclusive mode',
  ])
    await session.query(statement)
  const nodes = await session.query(
    'select name from nodes where alive_until >= (extract(epoch from clock_timestamp()) * 1000)::bigint order by name',
  )
  if (nodes.length > 0)
    throw new AppError(
      'conflict',
      `servers use the database: ${nodes.map(([name]) => String(name)).join(', ')}; stop them first (one that crashed counts for 12 seconds)`,
    )
}

/** Rows fetched at once to begin with, and at most of tables with octets, whose rows can be large. */
const FEW_ROWS = 64

class PostgresSide implements CopySide {
  protected readonly session: Session

  constructor(session: Session) {
    this.session = session
  }

  async listTables(): Promise<TableShape[]> {
    const columns = await this.session.query(`
      select relname, attname, format_type(atttypid, null), pg_get_expr(adbin, adrelid) like 'nextval(%'
      from pg_class join pg_attribute on attrelid = pg_class.oid
      left join pg_attrdef on adrelid = attrelid and adnum = attnum
      where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
      and attnum > 0 and not attisdropped and attgenerated = ''
      order by relname, attnum`)
    const tables = new Map<string, { name: string; columns: Column[]; serial: string | undefined }>()
    for (const [table, column, type, isSerial] of columns as [string, string, string, boolean | null][]) {
      const shape = tables.get(table) ?? { name: table, columns: [], serial: undefined }
      tables.set(table, shape)
      shape.columns.push({ name: column, kind: kindOf(table, column, type, KINDS) })
      if (isSerial) shape.serial = column
    }
    return [...tables.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  async countRows({ name }: TableShape): Promise<number> {
    const [row] = await this.session.query(`select count(*) from "${name}"`)
    return Number(row?.[0])
  }

  async *read({ name, columns }: TableShape): AsyncGenerator<Row[]> {
    const selected = columns.map(column =>
      column.kind === 'json' ? `"${column.name}"::text` : `"${column.name}"`,
    )
    const most = columns.some(({ kind }) => kind === 'octets') ? FEW_ROWS : MAX_ROWS
    await this.session.query(
      `declare copied no scroll cursor for select ${selected.join(', ')} from "${name}"`,
    )
    for (let wanted = FEW_ROWS; ;) {
      const rows = (await this.session.query(`fetch forward ${wanted} from copied`)) as Row[]
      if (rows.length > 0) yield rows
      if (rows.length < wanted) break
      const mean = rows.reduce((sum, row) => sum + sizeOf(row), 0) / rows.length
      wanted = Math.max(1, Math.min(most, 2 * wanted, Math.floor(MAX_OCTETS / mean)))
    }
    await this.session.query('close copied')
  }

  async readPosition(table: TableShape): Promise<number> {
    const [row] = await this.session.query(
      `select case when is_called then last_value else 0 end from ${await this.sequenceOf(table)}`,
    )
    return Number(row?.[0])
  }

  protected async sequenceOf({ name, serial }: TableShape): Promise<string> {
    const [row] = await this.session.query('select pg_get_serial_sequence($1, $2)', [`"${name}"`, serial])
    return String(row?.[0])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The server rolls back what a closed connection has begun.
    await this.session.end().catch(() => {})
  }
}

class PostgresSource extends PostgresSide implements CopySource {}

class PostgresTarget extends PostgresSide implements CopyTarget {
  /** Statements that create references and indexes, which are dropped until all rows are there. */
  private readonly structure: string[] = []
  private readonly types = new Map<string, string>()

  /** @throws AppError conflict if there are rows */
  async prepare(): Promise<void> {
    for (const { name } of copiedOnly(await this.listTables())) {
      const [row] = await this.session.query(`select exists (select from "${name}")`)
      if (row?.[0] === true)
        throw new AppError(
          'conflict',
          `the target holds data (table ${name}); drop that database and create an empty one, or name another`,
        )
    }
    const references = await this.session.query(`
      select conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) from pg_constraint
      where connamespace = current_schema()::regnamespace and contype = 'f' and conparentid = 0 order by 1, 2`)
    const indexes = await this.session.query(`
      select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index join pg_class on pg_class.oid = indexrelid
      where relnamespace = current_schema()::regnamespace and not relispartition
      and not exists (select from pg_constraint where conindid = indexrelid) order by 1`)
    for (const [table, name, definition] of references as string[][]) {
      await this.session.query(`alter table ${table} drop constraint ${name}`)
      this.structure.push(`alter table ${table} add constraint ${name} ${definition}`)
    }
    for (const [name, definition] of indexes as string[][]) {
      await this.session.query(`drop index ${name}`)
      this.structure.unshift(definition ?? '')
    }
    const types = await this.session.query(`
      select relname || '.' || attname, format_type(atttypid, null) from pg_class join pg_attribute on attrelid = pg_class.oid
      where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and attnum > 0`)
    for (const [column, type] of types as [string, string][]) this.types.set(column, type)
  }

  async write({ name, columns }: TableShape, rows: readonly Row[]): Promise<void> {
    const parameters = columns.map((column, at) => `$${at + 1}::${this.passedType(name, column)}[]`)
    const names = columns.map((_, at) => `c${at}`)
    const selected = columns.map(({ kind }, at) =>
      kind === 'octets' ? `decode(c${at}, 'base64')` : kind === 'json' ? `c${at}::jsonb` : `c${at}`,
    )
    try {
      await this.session.query(
        `insert into "${name}" (${columns.map(column => `"${column.name}"`).join(', ')})
          select ${selected.join(', ')} from unnest(${parameters.join(', ')}) as given (${names.join(', ')})`,
        columns.map((_, at) => rows.map(row => passed(row[at]))),
      )
    } catch (error) {
      const nul = rows.find(row => row.some(value => typeof value === 'string' && value.includes('\0')))
      if (nul === undefined) throw new Error(`${name}: ${(error as Error).message}`, { cause: error })
      const at = nul.findIndex(value => typeof value === 'string' && value.includes('\0'))
      throw new Error(
        `${name}.${columns[at]?.name ?? ''} holds a NUL character, which PostgreSQL cannot store, in the row that begins with ${String(nul[0])}`,
        { cause: error },
      )
    }
  }

  private passedType(table: string, { name, kind }: Column): string {
    return kind === 'number' ? (this.types.get(`${table}.${name}`) ?? 'bigint') : 'text'
  }

  async build(): Promise<void> {
    for (const statement of this.structure) await this.session.query(statement)
    // A new database has no statistics until the server gathers them, a minute later.
    await this.session.query('analyze')
  }

  async writePosition(table: TableShape, position: number): Promise<void> {
    await this.session.query('select setval($1::regclass, $2, $3)', [
      await this.sequenceOf(table),
      Math.max(1, position),
      position > 0,
    ])
  }

  async commit(): Promise<void> {
    await this.session.query('commit')
  }
}

function passed(value: Row[number] | undefined): unknown {
  return value instanceof Uint8Array
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
    : value
}
