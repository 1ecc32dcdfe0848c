/** An installation of the oldest version that is upgraded, as that version left it; on PostgreSQL where tests have a server. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { newDatabase, POSTGRES_SERVER } from '../support/db/real-postgres.js'
import { serverProgram } from '../support/db/server-programs.js'
import { install, type Installation } from '../support/program/process.js'
import { postgresFile, sqliteFile } from './old-installation.js'

export function installOld(t: Test, env: Readonly<Record<string, string>> = {}): Installation {
  const database = POSTGRES_SERVER === undefined ? undefined : newDatabase(t)
  const installation = install(t, { env, ...(database === undefined ? {} : { database }) })
  mkdirSync(installation.dataDir, { mode: 0o700 })
  if (database === undefined)
    writeFileSync(join(installation.dataDir, 'postroad.db'), gunzipSync(readFileSync(sqliteFile)), {
      mode: 0o600,
    })
  else
    execFileSync(serverProgram('psql'), ['--quiet', '--set=ON_ERROR_STOP=1', database], {
      input: gunzipSync(readFileSync(postgresFile)),
      stdio: ['pipe', 'ignore', 'inherit'],
    })
  return installation
}
