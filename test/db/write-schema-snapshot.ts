/**
 * Notes what a new migration makes: `node build/test/db/write-schema-snapshot.js` in the project's folder, then read the difference.
 *
 * Rewrites the schema snapshots and `src/db/migrations/schema-digests.ts`, and freezes the sources of migrations that are not frozen yet.
 * What is frozen stays: a migration that was changed after its release fails `test/db/migrations.test.ts`.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { MIGRATIONS } from '../../src/db/migrations.js'
import { ABSENT, type SchemaDigests } from '../../src/db/schema.js'
import { FROZEN, makeSchema, SNAPSHOTS, sourceDigest } from '../support/db/schema.js'

const NOTHING: SchemaDigests = new Map()

const [sqlite, postgres] = [await makeSchema('sqlite'), await makeSchema('postgres')]
writeFileSync(SNAPSHOTS.sqlite, sqlite.text)
writeFileSync(SNAPSHOTS.postgres, postgres.text)

/** A line for each object that the migration made, changed or dropped. */
function linesOf(name: string, former: string | undefined): string {
  const after = [sqlite, postgres].map(({ digests }) => digests.get(name) ?? NOTHING)
  const before = [sqlite, postgres].map(({ digests }) => digests.get(former ?? '') ?? NOTHING)
  const objects = new Set([...before, ...after].flatMap(schema => [...schema.keys()]))
  return [...objects]
    .sort()
    .filter(object => after.some((schema, at) => schema.get(object) !== before[at]?.get(object)))
    .map(object => `${after.map(schema => schema.get(object) ?? ABSENT).join(' ')} ${object}\n`)
    .join('')
}

const names = Object.keys(MIGRATIONS)
writeFileSync(
  'src/db/migrations/schema-digests.ts',
  `/**
 * What each migration makes, changes or drops: the digest of its definition on SQLite, the one on PostgreSQL, kind and name; \`-\` if it does
 * not exist there. Read by \`../schema.ts\`.
 *
 * Written by \`node build/test/db/write-schema-snapshot.js\`; \`test/db/migrations.test.ts\` compares it.
 */
export const SCHEMA_DIGESTS: Readonly<Record<string, string>> = {
${names.map((name, at) => `  '${name}': \`\n${linesOf(name, names[at - 1])}\`,\n`).join('')}}
`,
)

const frozen = existsSync(FROZEN) ? (JSON.parse(readFileSync(FROZEN, 'utf8')) as Record<string, string>) : {}
for (const name of names) frozen[name] ??= sourceDigest(name)
writeFileSync(FROZEN, `${JSON.stringify(frozen, null, 2)}\n`)
