/**
 * Migrates a database to this program's schema, or refuses.
 *
 * Migrations are numbered, run in order, and never edited once released. Each runs in one transaction with the row that records it (the
 * adapter in `sqlite-dialect.ts` allows that), so a crash leaves it either done or not begun. A database with unknown migrations was
 * written by a newer version, or by one from before the first release, and is refused: writing to it could damage data.
 */
import type { Kysely } from 'kysely'
import { Migrator, type Migration } from 'kysely/migration'
import type { Dialect } from './database.js'
import { BASELINE, MIGRATIONS, type Migrations } from './migrations.js'
import type { Tables } from './tables.js'

/** The schema does not match this program; the message says what to do. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError'
}

function migratorFor(db: Kysely<Tables>, dialect: Dialect, known: Migrations): Migrator {
  const migrations: Record<string, Migration> = {}
  for (const [name, migration] of Object.entries(known))
    migrations[name] = { up: async anyDb => migration(anyDb, dialect) }
  return new Migrator({
    db,
    provider: { getMigrations: async () => migrations },
    migrationTableName: 'schema_migrations',
    migrationLockTableName: 'schema_migrations_lock',
  })
}

/**
 * Applies pending migrations.
 *
 * @param known all migrations, or the first of them
 * @returns the applied ones
 * @throws SchemaError for a newer schema, one from before the first release, or an older one if `mayMigrate` is false
 */
export async function migrateToLatest(
  db: Kysely<Tables>,
  dialect: Dialect,
  mayMigrate = true,
  known: Migrations = MIGRATIONS,
): Promise<readonly string[]> {
  const executed = await executedMigrations(db)
  if (executed.length > 0 && !executed.includes(BASELINE))
    throw new SchemaError(
      `the database was created before the first release (schema change ${executed[0] ?? ''}) and cannot be migrated; ` +
        `move the file away to start with a new database, or export what you need with the version that created it`,
    )
  const newer = executed.filter(name => !(name in known))
  if (newer.length > 0)
    throw new SchemaError(
      `the database was written by a newer Postroad (it has schema change ${newer.join(', ')}); ` +
        `install that version again, or restore a backup made with this one`,
    )
  const missing = Object.keys(known).filter(name => !executed.includes(name))
  if (missing.length === 0) return []
  if (!mayMigrate) throw new SchemaError('the database has an older schema; run `postroad migrate` first')
  return oneByOne(migratorFor(db, dialect, known))
}

/** One at a time: Kysely runs all pending migrations in one transaction, and a failure would repeat the long ones. */
async function oneByOne(migrator: Migrator): Promise<string[]> {
  const applied: string[] = []
  for (;;) {
    const { error, results = [] } = await migrator.migrateUp()
    if (error !== undefined) throw error instanceof Error ? error : new SchemaError(JSON.stringify(error))
    // Another process may have applied it.
    if (results.length === 0) return applied
    applied.push(...results.map(({ migrationName }) => migrationName))
  }
}

/** Whether no migration was ever applied. */
export async function isEmpty(db: Kysely<Tables>): Promise<boolean> {
  return (await executedMigrations(db)).length === 0
}

async function executedMigrations(db: Kysely<Tables>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some(table => table.name === 'schema_migrations')) return []
  const rows = await (db as unknown as Kysely<{ schema_migrations: { name: string } }>)
    .selectFrom('schema_migrations')
    .select('name')
    .orderBy('name')
    .execute()
  return rows.map(row => row.name)
}
