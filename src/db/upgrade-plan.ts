/** Which migrations an upgrade would run, the rows they touch, and roughly what they take. Reads only; changes nothing. */
import { sql, type Kysely } from 'kysely'
import { must } from '../core/must.js'
import type { Dialect } from './database.js'
import { MIGRATION_NOTES, type TouchedTable } from './migration-notes.js'
import { pendingMigrations, requireUsable, SchemaError } from './migrate.js'
import { MIGRATIONS, type Migrations } from './migrations.js'
import { readSchema } from './schema.js'
import type { Tables } from './tables.js'

export interface UpgradePlan {
  /** The newest migration of the database. */
  readonly schema: string
  readonly pending: readonly PlannedMigration[]
}

export interface PlannedMigration {
  readonly name: string
  /** One sentence. */
  readonly does: string
  /** Rows touched, by table. */
  readonly rows: Readonly<Record<string, number>>
  /** Rough. */
  readonly estimateMs: number
  /** Growth of the database and its log; rough. */
  readonly octets: number
}

/** Whether migrations are pending; false for an empty database. @throws SchemaError for one that this program cannot use */
export async function isOlder(db: Kysely<Tables>, dialect: Dialect): Promise<boolean> {
  const applied = await requireUsable(db, dialect)
  return applied.length > 0 && pendingMigrations(applied).length > 0
}

/** @throws SchemaError for an empty database, or one that this program cannot upgrade */
export async function planUpgrade(
  db: Kysely<Tables>,
  dialect: Dialect,
  known: Migrations = MIGRATIONS,
): Promise<UpgradePlan> {
  const applied = await requireUsable(db, dialect, known)
  if (applied.length === 0) throw new SchemaError('the database is empty', 'run `postroad init` first')
  const existing = await readSchema(db, dialect)
  const pending: PlannedMigration[] = []
  for (const name of pendingMigrations(applied, known)) {
    const { does, touches } = MIGRATION_NOTES[name] ?? { does: 'Not described.', touches: [] }
    const counted: { readonly touched: TouchedTable; readonly count: number }[] = []
    for (const touched of touches)
      // An earlier migration may create it.
      if (existing.has(`table ${touched.table}`))
        counted.push({ touched, count: await countRows(db, touched) })
    const sum = (of: (touched: TouchedTable) => number) =>
      Math.round(counted.reduce((total, { touched, count }) => total + count * of(touched), 0))
    pending.push({
      name,
      does,
      rows: Object.fromEntries(counted.map(({ touched, count }) => [touched.table, count])),
      estimateMs: SLOWER[dialect] * (LEAST_MS + sum(({ microseconds }) => microseconds / 1_000)),
      octets: LEAST_OCTETS + sum(({ octets }) => octets),
    })
  }
  return { schema: applied.at(-1) ?? '', pending }
}

/** Of a migration that touches no row: the check of the schema around it, and the pages of the catalog. */
const LEAST_MS = 100
const LEAST_OCTETS = 100_000
/** Costs in the notes are those of SQLite. */
const SLOWER: Readonly<Record<Dialect, number>> = { sqlite: 1, postgres: 2 }

async function countRows(db: Kysely<Tables>, { table, where }: TouchedTable): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)} ${sql.raw(
    where === undefined ? '' : `where ${where}`,
  )}`.execute(db)
  return must(rows[0], 'the count').count
}
