/**
 * The PostgreSQL of this process (PGlite), as after all migrations and empty, for one test after the other.
 *
 * Used by `database.ts` only. A new data folder costs seconds and the migrations some more, so the folder is taken from a
 * file that `make` has written (`write-databases.ts`), migrations that it lacks run once, and later tests find their rows deleted.
 */
import type { PGlite } from '@electric-sql/pglite'
import { Kysely } from 'kysely'
import { migrateToLatest } from '../../../src/db/migrate.js'
import { MIGRATIONS } from '../../../src/db/migrations.js'
import type { Tables } from '../../../src/db/tables.js'
import { POSTGRES_FILE, readIfMade } from './begin-with.js'
import { openPglite, pgliteDialect } from './pglite-dialect.js'

const KNOWN_MIGRATIONS = Object.keys(MIGRATIONS)
  .map(name => `'${name}'`)
  .join(', ')

let postgres: PGlite | undefined
/** As the migrations made them. */
let tables: readonly string[] | undefined

/** One at a time: a second call returns the same one, emptied. */
export async function emptyPostgres(): Promise<Kysely<Tables>> {
  postgres ??= openPglite(readIfMade(POSTGRES_FILE))
  const db = new Kysely<Tables>({ dialect: pgliteDialect(postgres) })
  if (tables) {
    await empty(postgres, tables)
  } else {
    await migrateToLatest(db, 'postgres')
    tables = await tablesOf(postgres)
  }
  return db
}

/** Does nothing without one. */
export async function endPostgres(): Promise<void> {
  const ending = postgres
  postgres = undefined
  tables = undefined
  await ending?.close()
}

/** Deleting takes a tenth of what truncation does; foreign keys would ask for an order. */
async function empty(postgres: PGlite, tables: readonly string[]): Promise<void> {
  const strays = (await tablesOf(postgres)).filter(name => !tables.includes(name))
  const { rows: sequences } = await postgres.query<{ name: string }>(
    `select sequencename as name from pg_sequences where schemaname = 'public'`,
  )
  await postgres.exec(
    [
      'set session_replication_role = replica',
      ...strays.map(name => `drop table "${name}" cascade`),
      ...tables.filter(name => !name.startsWith('schema_migrations')).map(name => `delete from "${name}"`),
      `delete from schema_migrations where name not in (${KNOWN_MIGRATIONS})`,
      ...sequences.map(({ name }) => `alter sequence "${name}" restart`),
      'set session_replication_role = origin',
    ].join(';'),
  )
}

async function tablesOf(postgres: PGlite): Promise<string[]> {
  const { rows } = await postgres.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public'`,
  )
  return rows.map(({ name }) => name)
}
