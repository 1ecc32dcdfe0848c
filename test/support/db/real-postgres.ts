/**
 * A real PostgreSQL server for tests, where `make test-nodes` or `make test-postgres` has started one: `TEST_POSTGRES_URL` is its URL, and
 * `TEST_POSTGRES_MIGRATED` that of a database after all migrations, to make others from.
 */
import { execFileSync } from 'node:child_process'
import { openPostgres, type PostgresOptions } from '../../../src/db/postgres/open-postgres.js'
import type { Database } from '../../../src/db/database.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemRandom } from '../../../src/world/random.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import type { Scope } from '../scope.js'
import { ReusedDatabases } from './reused-databases.js'
import { serverProgram } from './server-programs.js'

/** Undefined if tests have no server. */
export const POSTGRES_SERVER = process.env['TEST_POSTGRES_URL']

let names = 0
let migrated: ReusedDatabases | undefined

/** A database of this test with the schema and without rows. @returns its URL */
export async function postgresUrl(t: Scope): Promise<string> {
  migrated ??= reusing(migratedUrl())
  return reusedDatabase(t, migrated)
}

/** A database of this test that begins as the original of the others. @returns its URL */
export async function reusedDatabase(t: Scope, databases: ReusedDatabases): Promise<string> {
  const url = await databases.take()
  t.teardown(() => databases.giveBack(url))
  return url
}

/** Databases that begin as this one. @param original URL; nobody may be using it */
export function reusing(original: string): ReusedDatabases {
  return new ReusedDatabases({ original, copy: () => createDatabase(original), drop: dropDatabase })
}

/** The database after all migrations. */
export function migratedUrl(): string {
  return fromMake('TEST_POSTGRES_MIGRATED')
}

/** An open one; further options for several nodes on the same URL. */
export async function realPostgres(t: Scope, more: Partial<PostgresOptions> = {}): Promise<Database> {
  const url = more.url ?? (await postgresUrl(t))
  const database = await openPostgres({
    url,
    clock: new FakeClock(),
    random: systemRandom,
    log: new FakeLog(),
    ...more,
  })
  t.teardown(() => database[Symbol.asyncDispose]())
  return database
}

/** An empty database without a schema, dropped with the test. @returns its URL */
export function newDatabase(t: Scope): string {
  const url = createDatabase()
  t.teardown(() => dropDatabase(url))
  return url
}

/** A database that stays until the server ends. @param from URL of the one to copy, which nobody may be using; empty without @returns its URL */
export function createDatabase(from?: string): string {
  const server = fromMake('TEST_POSTGRES_URL')
  names += 1
  const name = `t${process.pid}_${names}`
  psql(server, `create database ${name}${from === undefined ? '' : ` template ${nameIn(from)}`}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

/** Whoever is connected to it is cut off. */
export function dropDatabase(url: string): void {
  psql(fromMake('TEST_POSTGRES_URL'), `drop database if exists ${nameIn(url)} with (force)`)
}

/** Runs statements as the server's administrator. @returns the rows, values separated by | */
export function psql(url: string, statements: string): string[] {
  const out = execFileSync(serverProgram('psql'), ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', statements, url], {
    encoding: 'utf8',
  })
  return out.split('\n').filter(line => line !== '')
}

function nameIn(url: string): string {
  return new URL(url).pathname.slice(1)
}

function fromMake(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set: run make test-nodes or make test-postgres`)
  return value
}
