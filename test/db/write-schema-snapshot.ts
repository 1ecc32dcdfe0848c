/**
 * Writes `test/db/schema.snapshot.sql` anew, after a migration was added:
 * `node build/test/db/write-schema-snapshot.js` in the project's folder, then read the difference.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { schemaAfterMigrations } from '../support/db/schema.js'

const folder = mkdtempSync(join(tmpdir(), 'schema-'))
try {
  writeFileSync('test/db/schema.snapshot.sql', await schemaAfterMigrations(join(folder, 'new.db')))
} finally {
  rmSync(folder, { recursive: true })
}
