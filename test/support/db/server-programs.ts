/** PostgreSQL's own programs. Debian's wrappers of the same names, in Perl, take longer than what they start. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const VERSIONS = '/usr/lib/postgresql'

/** @returns path of the newest version's program @throws Error if none is installed */
export function serverProgram(name: string): string {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).map(Number) : []
  if (versions.length === 0)
    throw new Error(`no PostgreSQL server in ${VERSIONS}: install Debian's postgresql package`)
  return join(VERSIONS, String(Math.max(...versions)), 'bin', name)
}
