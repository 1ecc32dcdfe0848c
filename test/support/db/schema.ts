/** What the migrations make: as text, in an order that does not depend on the order of creation, and as digests. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql } from 'kysely'
import type { Dialect } from '../../../src/db/database.js'
import { applyPending } from '../../../src/db/migrate.js'
import { MIGRATIONS } from '../../../src/db/migrations.js'
import { readSchema, type SchemaDigests } from '../../../src/db/schema.js'
import { sqliteDialect } from '../../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../../src/db/tables.js'
import { upTo } from './migrating.js'
import { openPglite, pgliteDialect } from './pglite-dialect.js'

const folder = join(process.cwd(), 'test/db')
export const SNAPSHOTS = {
  sqlite: join(folder, 'schema.snapshot.sqlite.sql'),
  postgres: join(folder, 'schema.snapshot.postgres.sql'),
}
/** Digest of the sources of each migration: `{"0001-baseline": "..."}`. */
export const FROZEN = join(folder, 'frozen-migrations.json')

export interface MadeSchema {
  readonly text: string
  /** By migration: what exists after it. */
  readonly digests: ReadonlyMap<string, SchemaDigests>
}

/** Runs all migrations on a database of its own. */
export async function makeSchema(dialect: Dialect): Promise<MadeSchema> {
  await using ends = new AsyncDisposableStack()
  if (dialect === 'sqlite') {
    const handle = ends.adopt(new BetterSqlite(':memory:'), opened => void opened.close())
    const db = new Kysely<Tables>({ dialect: sqliteDialect(handle).dialect })
    return { digests: await migrate(db, dialect), text: await sqliteSchema(db) }
  }
  const postgres = ends.adopt(openPglite(), opened => opened.close())
  const db = new Kysely<Tables>({ dialect: pgliteDialect(postgres) })
  return { digests: await migrate(db, dialect), text: await postgresSchema(db) }
}

/** Without comparing the schema with its digests, which may have to be written. */
async function migrate(db: Kysely<Tables>, dialect: Dialect): Promise<Map<string, SchemaDigests>> {
  const digests = new Map<string, SchemaDigests>()
  for (const name of Object.keys(MIGRATIONS)) {
    await applyPending(db, dialect, upTo(name))
    const found = await readSchema(db, dialect)
    digests.set(name, new Map([...found].map(([object, { digest }]) => [object, digest])))
  }
  return digests
}

const SOURCES = join(process.cwd(), 'src/db/migrations')

/** Of its file, and of the files in the folder named as it is without its number. */
export function sourceDigest(migration: string): string {
  const folder = migration.replace(/^\d+-/, '')
  const parts = existsSync(join(SOURCES, folder)) ? readdirSync(join(SOURCES, folder)).sort() : []
  const hash = createHash('sha256')
  for (const file of [`${migration}.ts`, ...parts.map(name => join(folder, name))])
    hash.update(`${file}\n`).update(readFileSync(join(SOURCES, file)))
  return hash.digest('hex')
}

/** @param db a database after all migrations */
export async function sqliteSchema(db: Kysely<Tables>): Promise<string> {
  const { rows } = await sql<{ statement: string }>`
    select sql as statement from sqlite_schema where sql is not null and name not like 'sqlite_%' order by type desc, name`.execute(
    db,
  )
  return rows.map(({ statement }) => `${statement};\n`).join('\n')
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
