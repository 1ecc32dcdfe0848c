/**
 * Databases on the PostgreSQL server of the tests that several tests of a process use, one after the other.
 *
 * A copy of a database is some nine hundred files, so one that a test has used gets back the rows it began with, a tenth of the work. One whose
 * schema a test has changed, or that has grown, is dropped.
 */
import pg from 'pg'

/** A copy has 11 MB; dead rows are only removed with their database. */
const LARGE = 32 * 1024 * 1024

/** Changes with each statement that changes the schema. Sequences are rewritten when they are restarted. */
const SCHEMA = `
  select md5(string_agg(concat(what, oid, at), ',' order by what, oid, at)) as schema from (
    select 'class' as what, oid, xmin::text as at from pg_class where relnamespace = 'public'::regnamespace and relkind <> 'S'
    union all select 'trigger', oid, xmin::text from pg_trigger
    union all select 'default', oid, xmin::text from pg_attrdef
    union all select 'constraint', oid, xmin::text from pg_constraint
    union all select 'function', oid, xmin::text from pg_proc where pronamespace = 'public'::regnamespace
    union all select 'migration', 0, name from schema_migrations
  ) as parts`

/** Other connections are of servers that have just ended, or of a test that left one open. */
const END_OTHERS = `
  select pg_terminate_backend(pid, 5000) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`

/** Foreign keys would ask for an order. */
const EMPTY = `
  do $$ declare name text; begin
    for name in select tablename from pg_tables where schemaname = 'public' and tablename not like 'schema\\_migrations%'
    loop execute format('delete from %I', name); end loop;
    for name in select sequencename from pg_sequences where schemaname = 'public' and last_value is not null
    loop execute format('alter sequence %I restart', name); end loop;
  end $$`

/** The rows of a database, by table, and where its sequences are. */
interface Beginning {
  readonly schema: string
  readonly rows: readonly { readonly table: string; readonly json: string }[]
  readonly sequences: readonly { readonly name: string; readonly last: string }[]
}

export interface DatabaseParts {
  /** URL of the database to begin with, which nobody may be using. */
  readonly original: string
  /** Copies it. @returns the copy's URL */
  readonly copy: () => string
  readonly drop: (url: string) => void
}

export class ReusedDatabases {
  private readonly parts: DatabaseParts
  private readonly free: string[] = []
  private beginning: Promise<Beginning> | undefined

  constructor(parts: DatabaseParts) {
    this.parts = parts
    process.once('exit', () => this.free.forEach(parts.drop))
  }

  /** @returns URL of a database that is as the original */
  async take(): Promise<string> {
    const { original, copy } = this.parts
    await (this.beginning ??= connected(original, readBeginning))
    return this.free.pop() ?? copy()
  }

  /** The test must have closed it. */
  async giveBack(url: string): Promise<void> {
    const beginning = await this.beginning
    if (beginning && (await connected(url, client => restore(client, beginning)))) this.free.push(url)
    else this.parts.drop(url)
  }
}

async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function readBeginning(client: pg.Client): Promise<Beginning> {
  const { rows: tables } = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' and tablename not like 'schema\\_migrations%'`,
  )
  const rows: { table: string; json: string }[] = []
  for (const { name } of tables) {
    const { rows: found } = await client.query<{ json: string | null }>(
      `select json_agg(one)::text as json from ${client.escapeIdentifier(name)} as one`,
    )
    const json = found[0]?.json
    if (json) rows.push({ table: client.escapeIdentifier(name), json })
  }
  const { rows: sequences } = await client.query<{ name: string; last: string }>(
    `select quote_ident(sequencename) as name, last_value as last from pg_sequences where schemaname = 'public' and last_value is not null`,
  )
  return { schema: await schemaOf(client), rows, sequences }
}

/** @returns whether it could be restored */
async function restore(client: pg.Client, { schema, rows, sequences }: Beginning): Promise<boolean> {
  await client.query(END_OTHERS)
  if ((await schemaOf(client)) !== schema) return false
  const { rows: sizes } = await client.query<{ size: string }>(
    `select pg_database_size(current_database()) as size`,
  )
  if (Number(sizes[0]?.size) > LARGE) return false
  await client.query(`begin; set local session_replication_role = replica`)
  await client.query(EMPTY)
  for (const { table, json } of rows)
    await client.query(
      `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1)`,
      [json],
    )
  for (const { name, last } of sequences) await client.query('select setval($1, $2)', [name, last])
  await client.query('commit')
  return true
}

async function schemaOf(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ schema: string }>(SCHEMA)
  return rows[0]?.schema ?? ''
}
