/**
 * Rewrites the schema snapshots after a migration was added: `node build/test/db/write-schema-snapshot.js` in the project's folder, then
 * read the difference.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyPostgres, endPostgres } from '../support/db/postgres.js'
import { postgresSchema, SNAPSHOTS, sqliteSchema } from '../support/db/schema.js'

const folder = mkdtempSync(join(tmpdir(), 'schema-'))
try {
  writeFileSync(SNAPSHOTS.sqlite, await sqliteSchema(join(folder, 'new.db')))
  writeFileSync(SNAPSHOTS.postgres, await postgresSchema(await emptyPostgres()))
} finally {
  await endPostgres()
  rmSync(folder, { recursive: true })
}
