/**
 * Writes `config/postroad.toml` and `config/REFERENCE.md` anew after a change of the schema.
 *
 * Run from the project's folder: `node build/src/config/write-generated.js`. Never part of the running program.
 */
import { writeFileSync } from 'node:fs'
import { commentedToml, referenceMarkdown } from './generate.js'

writeFileSync('config/postroad.toml', commentedToml())
writeFileSync('config/REFERENCE.md', referenceMarkdown())
