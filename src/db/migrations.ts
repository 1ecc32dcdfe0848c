/** Every schema change, in order. Append here; never edit or reorder what was released. */
import type { Kysely } from 'kysely'
import type { Dialect } from './database.js'
import { up as initial } from './migrations/0001-initial.js'

export type MigrateUp = (db: Kysely<unknown>, dialect: Dialect) => Promise<void>

export const MIGRATIONS: Readonly<Record<string, MigrateUp>> = {
  '0001-initial': initial,
}
