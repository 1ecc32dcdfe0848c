/**
 * Migrates a database to this program's schema, or refuses.
 *
 * Migrations are numbered, run in order, and never edited once released. Each runs in one transaction with the row that records it (the
 * adapter in `sqlite-dialect.ts` allows that), so a crash leaves it either done or not begun. Refused, because writing could damage data: a
 * database with unknown migrations (from a newer version, or from before the first release), and one whose tables are not those that its
 * migrations make.
 */
import { sql, type Kysely } from 'kysely'
import { Migrator, type Migration } from 'kysely/migration'
import type { Dialect } from './database.js'
import { BASELINE, MIGRATIONS, type Migrations } from './migrations.js'
import { compareSchema, expectedSchema, readSchema } from './schema.js'
import type { Tables } from './tables.js'

/** The schema does not match this program. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError'
  readonly what: string
  /** Advice for the operator. */
  readonly fix: string

  constructor(what: string, fix: string) {
    super(`${what}; ${fix}`)
    this.what = what
    this.fix = fix
  }
}

export interface SchemaState {
  /** Applied migrations, in order; empty for an empty database. */
  readonly applied: readonly string[]
  /** Why this program cannot use the database. */
  readonly fault: SchemaError | undefined
  /** Tables, indexes and functions that no migration created, e.g. `index contacts_by_country`. They are left alone. */
  readonly foreign: readonly string[]
}

/** Follows the upgrade of a database that has a schema. None of them is called for an empty one. */
export interface UpgradeSteps {
  /** Called before the first migration; if it throws, the database is left as it was. */
  begin(db: Kysely<Tables>, applied: readonly string[], pending: readonly string[]): Promise<void>
  /** Awaited before each migration, which may keep the event loop busy for as long as it takes. */
  onMigrating(name: string): Promise<void>
  /** Called once a migration is committed. */
  onMigrated(name: string): void
  /** Called once the schema is this program's. */
  end(): void
}

/**
 * Applies pending migrations.
 *
 * @param known all migrations, or the first of them
 * @returns the applied ones
 * @throws SchemaError for a schema that this program cannot use, or an older one if `mayMigrate` is false
 */
export async function migrateToLatest(
  db: Kysely<Tables>,
  dialect: Dialect,
  mayMigrate = true,
  known: Migrations = MIGRATIONS,
  steps?: UpgradeSteps,
): Promise<readonly string[]> {
  const before = await requireUsable(db, dialect, known)
  const pending = pendingMigrations(before, known)
  if (pending.length === 0) return []
  if (!mayMigrate) throw new SchemaError(OLDER_SCHEMA, 'run `postroad migrate` first')
  const followed = before.length === 0 ? undefined : steps
  await followed?.begin(db, before, pending)
  const applied = await applyPending(db, dialect, known, followed)
  await requireUsable(db, dialect, known)
  followed?.end()
  return applied
}

export const OLDER_SCHEMA = 'the database has an older schema'

/** In the order in which they are applied. */
export function pendingMigrations(
  applied: readonly string[],
  known: Migrations = MIGRATIONS,
): readonly string[] {
  return Object.keys(known).filter(name => !applied.includes(name))
}

/** @returns the applied migrations @throws SchemaError */
export async function requireUsable(
  db: Kysely<Tables>,
  dialect: Dialect,
  known: Migrations = MIGRATIONS,
): Promise<readonly string[]> {
  const { applied, fault } = await inspectSchema(db, dialect, known)
  if (fault) throw fault
  return applied
}

/** Compares the database with what its migrations make. An older schema is no fault. */
export async function inspectSchema(
  db: Kysely<Tables>,
  dialect: Dialect,
  known: Migrations = MIGRATIONS,
): Promise<SchemaState> {
  const applied = await appliedMigrations(db, dialect)
  const unknown = faultOfNames(applied, known)
  const expected = expectedSchema(applied, dialect)
  if (unknown || !expected || applied.length === 0) return { applied, fault: unknown, foreign: [] }
  const { missing, changed, harmful, harmless } = compareSchema(expected, await readSchema(db, dialect))
  const differences = [
    ...missing.map(object => `${object} is missing`),
    ...changed.map(object => `${object} differs`),
    ...harmful.map(object => `${object} was added`),
  ]
  if (differences.length === 0) return { applied, fault: undefined, foreign: harmless }
  // Another node may have migrated between the two reads.
  if ((await appliedMigrations(db, dialect)).length !== applied.length)
    return inspectSchema(db, dialect, known)
  const fault = new SchemaError(
    `the database does not match its schema version ${applied.at(-1) ?? ''}: ${firstOf(differences)}`,
    missing.length + changed.length === 0 ? 'drop what was added' : mismatchFix(applied),
  )
  return { applied, fault, foreign: harmless }
}

/** Fault of a database whose migration names alone show that it is of another version. */
function faultOfNames(applied: readonly string[], known: Migrations): SchemaError | undefined {
  if (applied.length > 0 && !applied.includes(BASELINE))
    return new SchemaError(
      `the database was created before the first release (schema change ${applied[0] ?? ''}) and cannot be migrated`,
      'move it away to start with a new database, or export what you need with the version that created it',
    )
  const newer = applied.filter(name => !(name in known))
  if (newer.length === 0) return undefined
  return new SchemaError(
    `the database was written by a newer Postroad (it has schema change ${newer.join(', ')})`,
    'install that version again, or restore a backup made with this one',
  )
}

/** Builds before the first release changed the baseline under the same name; later changes are separate migrations. */
function mismatchFix(applied: readonly string[]): string {
  return applied.length > 1
    ? 'it was changed by hand: undo the change, or restore a backup'
    : 'it was changed by hand, or created by a build before the first release: ' +
        'restore a backup made with this version, or move it away to start with a new database'
}

const SHOWN_DIFFERENCES = 3

function firstOf(differences: readonly string[]): string {
  const more = differences.length - SHOWN_DIFFERENCES
  const isTable = (difference: string) => difference.startsWith('table ')
  const tablesFirst = [...differences.filter(isTable), ...differences.filter(one => !isTable(one))]
  const shown = tablesFirst.slice(0, SHOWN_DIFFERENCES).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}

/**
 * Applies pending migrations whatever the database looks like; `migrateToLatest` checks it.
 *
 * One at a time: Kysely runs all pending migrations in one transaction, and a failure would repeat the long ones.
 * @returns the applied ones
 */
export async function applyPending(
  db: Kysely<Tables>,
  dialect: Dialect,
  known: Migrations,
  steps?: UpgradeSteps,
): Promise<string[]> {
  const migrator = migratorFor(db, dialect, known)
  const applied: string[] = []
  for (;;) {
    const [next] = steps ? pendingMigrations(await appliedMigrations(db, dialect), known) : []
    if (next !== undefined) await steps?.onMigrating(next)
    const { error, results = [] } = await migrator.migrateUp()
    if (error !== undefined) throw error instanceof Error ? error : new Error(JSON.stringify(error))
    // Another process may have applied it.
    if (results.length === 0) return applied
    for (const { migrationName } of results) {
      applied.push(migrationName)
      steps?.onMigrated(migrationName)
    }
  }
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

/** Whether no migration was ever applied. */
export async function isEmpty(db: Kysely<Tables>, dialect: Dialect): Promise<boolean> {
  return (await appliedMigrations(db, dialect)).length === 0
}

async function appliedMigrations(db: Kysely<Tables>, dialect: Dialect): Promise<string[]> {
  const { rows: tables } = await (
    dialect === 'sqlite'
      ? // A view of that name is no table of migrations, and reading it could take for ever.
        sql`select name from sqlite_schema where name = 'schema_migrations' and type = 'table'`
      : sql`select relname from pg_class where oid = to_regclass('schema_migrations')`
  ).execute(db)
  if (tables.length === 0) return []
  const { rows } = await sql<{ name: string }>`select name from schema_migrations order by name`.execute(db)
  return rows.map(({ name }) => name)
}
