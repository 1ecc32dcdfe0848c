/**
 * Writes a database of each kind, after all migrations and empty, for tests to begin with: `make` calls it, and again when a
 * migration is another one.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Kysely } from 'kysely'
import { migrateToLatest } from '../../../src/db/migrate.js'
import { POSTGRES_FILE, SQLITE_FILE } from './begin-with.js'
import { makeSqlite } from './database.js'
import { openPglite, pgliteDialect } from './pglite-dialect.js'

const postgres = openPglite()
await migrateToLatest(new Kysely({ dialect: pgliteDialect(postgres) }), 'postgres')
const folder = await postgres.dumpDataDir('none')
mkdirSync(dirname(POSTGRES_FILE), { recursive: true })
writeFileSync(SQLITE_FILE, await makeSqlite())
writeFileSync(POSTGRES_FILE, Buffer.from(await folder.arrayBuffer()))
