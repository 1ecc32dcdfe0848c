/**
 * What tests begin with instead of running all migrations again, a matter of seconds for each test file: databases that `make` has
 * written (`write-databases.ts`). Where they are not there, tests make their own.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(process.cwd(), 'node_modules/.cache')

/** Both are written together, this one last. */
export const POSTGRES_FILE = join(FOLDER, 'postgres.tar')
export const SQLITE_FILE = join(FOLDER, 'sqlite.db')

/** @returns what the file holds; undefined where `make` has not written it */
export function readIfMade(file: string): Buffer<ArrayBuffer> | undefined {
  return existsSync(file) ? readFileSync(file) : undefined
}
