/** The schema after all migrations as text, in an order that does not depend on the order of creation. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { sql, type Kysely } from 'kysely'
import { openSqlite } from '../../../src/db/sqlite/open-sqlite.js'
import type { Tables } from '../../../src/db/tables.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'

const folder = join(process.cwd(), 'test/db')
export const SNAPSHOTS = {
  sqlite: join(folder, 'schema.snapshot.sqlite.sql'),
  postgres: join(folder, 'schema.snapshot.postgres.sql'),
}

/** @param file path at which there is no database yet */
export async function sqliteSchema(file: string): Promise<string> {
  const database = await openSqlite({ file, clock: new FakeClock() })
  await database[Symbol.asyncDispose]()
  const handle = new BetterSqlite(file, { readonly: true })
  try {
    const statements = handle
      .prepare(
        "select sql from sqlite_schema where sql is not null and name not like 'sqlite_%' order by type desc, name",
      )
      .pluck()
      .all() as string[]
    return statements.map(statement => `${statement};\n`).join('\n')
  } finally {
    handle.close()
  }
}

/** @param db a database after all migrations */
export async function postgresSchema(db: Kysely<Tables>): Promise<string> {
  const lines = async (query: ReturnType<typeof sql<{ line: string }>>) =>
    (await query.execute(db)).rows.map(({ line }) => `${line};\n`)
  const columns = await lines(sql`
    select 'create table ' || relname || E' (\n  ' || string_agg(
      attname || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end ||
      coalesce(' default ' || pg_get_expr(adbin, adrelid), ''), E',\n  ' order by attnum) || E'\n)' as line
    from pg_class join pg_attribute on attrelid = pg_class.oid
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relnamespace = 'public'::regnamespace and relkind = 'r' and attnum > 0 and not attisdropped
    group by relname order by relname`)
  const constraints = await lines(sql`
    select 'alter table ' || conrelid::regclass || ' add constraint ' || conname || ' ' || pg_get_constraintdef(oid) as line
    from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'
    order by conrelid::regclass::text, conname`)
  const indexes = await lines(sql`
    select indexdef as line from pg_indexes
    where schemaname = 'public' and indexname not in (select conname from pg_constraint) order by indexname`)
  const functions = await lines(sql`
    select trim(pg_get_functiondef(oid), E'\n') as line from pg_proc
    where pronamespace = 'public'::regnamespace order by proname`)
  const triggers = await lines(sql`
    select pg_get_triggerdef(oid) as line from pg_trigger where not tgisinternal order by tgname`)
  return [...columns, ...constraints, ...indexes, ...functions, ...triggers].join('\n')
}
