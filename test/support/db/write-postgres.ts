/** Writes the data folder of a new PostgreSQL (PGlite) into the given file, for tests to begin with: `make` calls it once. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { openPglite } from './pglite-dialect.js'

const file = process.argv[2]
if (file === undefined) throw new Error('usage: write-postgres FILE')
const postgres = openPglite()
await postgres.waitReady
const folder = await postgres.dumpDataDir('none')
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, Buffer.from(await folder.arrayBuffer()))
