/**
 * A real PostgreSQL server for tests, where `make test-nodes` or `make test-postgres` has started one (`TEST_POSTGRES_URL` is its URL): databases made in
 * milliseconds from one that the migrations have filled.
 */
import { execFileSync } from 'node:child_process'
import type { Test } from 'tap'
import { openPostgres, type PostgresOptions } from '../../../src/db/postgres/open-postgres.js'
import type { Database } from '../../../src/db/database.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemRandom } from '../../../src/world/random.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'

/** Undefined if tests have no server. */
export const POSTGRES_SERVER = process.env['TEST_POSTGRES_URL']

let names = 0
let template: Promise<string> | undefined

/** A database of this test with the schema, dropped with the test. @returns its URL */
export async function postgresUrl(t: Test): Promise<string> {
  return newDatabase(t, await (template ??= makeTemplate()))
}

/** An open one; further options for several nodes on the same URL. */
export async function realPostgres(t: Test, more: Partial<PostgresOptions> = {}): Promise<Database> {
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

/** A database dropped with the test. @param from URL of the one to copy, which nobody may be using; empty without @returns its URL */
export function newDatabase(t: Test, from?: string): string {
  const url = createDatabase(from)
  t.teardown(() => psql(requireServer(), `drop database if exists ${nameIn(url)} with (force)`))
  return url
}

/** A database that stays until `make test-nodes` ends. */
export function createDatabase(from?: string): string {
  const server = requireServer()
  names += 1
  const name = `t${process.pid}_${names}`
  psql(server, `create database ${name}${from === undefined ? '' : ` template ${nameIn(from)}`}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

/** Runs statements as the server's administrator. @returns the rows, values separated by | */
export function psql(url: string, statements: string): string[] {
  const out = execFileSync('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', statements, url], {
    encoding: 'utf8',
  })
  return out.split('\n').filter(line => line !== '')
}

function nameIn(url: string): string {
  return new URL(url).pathname.slice(1)
}

async function makeTemplate(): Promise<string> {
  const url = createDatabase()
  const database = await openPostgres({
    url,
    clock: new FakeClock(),
    random: systemRandom,
    log: new FakeLog(),
  })
  await database[Symbol.asyncDispose]()
  return url
}

function requireServer(): string {
  if (POSTGRES_SERVER === undefined) throw new Error('set TEST_POSTGRES_URL, or run make test-nodes')
  return POSTGRES_SERVER
}
