/**
 * Migrates a SQLite file up to a migration and kills itself before one of its statements, or has done:
 * `migrate-and-die FILE NAME STATEMENT`, the first being 0.
 */
import { migrateFile } from './migrating.js'

const [file = '', name = '', fatal = ''] = process.argv.slice(2)
let statements = 0
await migrateFile(file, name, () => {
  if (statements === Number(fatal)) process.kill(process.pid, 'SIGKILL')
  statements += 1
})
