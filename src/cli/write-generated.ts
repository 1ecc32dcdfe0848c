/**
 * Regenerates `config/postroad.toml`, `config/REFERENCE.md` and `docs/logs.md`.
 *
 * Run from the project's root: `node build/src/cli/write-generated.js`. Not part of the running program.
 */
import { writeFileSync } from 'node:fs'
import { commentedToml, referenceMarkdown } from '../config/generate.js'
import { CONFIG_SCHEMA } from '../appliance/resources.js'
import { logsMarkdown } from '../world/log-events.js'

writeFileSync('config/postroad.toml', commentedToml(CONFIG_SCHEMA))
writeFileSync('config/REFERENCE.md', referenceMarkdown(CONFIG_SCHEMA))
writeFileSync('docs/logs.md', logsMarkdown())
