/**
 * Measures the upgrade of a large installation: fills the one of the oldest version that is upgraded with copies of its own rows, then
 * applies this version's migrations one by one and prints what each takes.
 *
 * Run by hand; the number is that of messages, by default a million:
 *
 * ```
 * node build/test/upgrade/measure-upgrade.js 1000000
 * node build/test/support/db/with-postgres.js node build/test/upgrade/measure-upgrade.js 1000000
 * ```
 *
 * With POSTROAD_LARGE=FILE the filled SQLite database is kept there, and used again; a copy of it is upgraded.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import BetterSqlite from 'better-sqlite3'
import { Kysely, sql, type Dialect as KyselyDialect } from 'kysely'
import pg from 'pg'
import type { Dialect } from '../../src/db/database.js'
import { migrateToLatest } from '../../src/db/migrate.js'
import { MIGRATIONS } from '../../src/db/migrations.js'
import { postgresDialect } from '../../src/db/postgres/postgres-dialect.js'
import { openWriter } from '../../src/db/sqlite/connections.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { createDatabase, dropDatabase, POSTGRES_SERVER } from '../support/db/real-postgres.js'
import { serverProgram } from '../support/db/server-programs.js'
import { watched } from '../support/db/statement-by-statement.js'
import { multiplyRows } from './multiply-rows.js'
import { postgresFile, sqliteFile } from './old-installation.js'

/** Of messages in the installation that is multiplied. */
const MESSAGES = 189
/** Reports and items of feeds, of which it has none or few. */
const MORE_ROWS = 200_000

const REPORTS: Readonly<Record<string, string>> = {
  id: "'report ' || n",
  kind: "'dmarc'",
  domain: "'d' || n % 50 || '.test'",
  org_name: "'org ' || n % 100",
  report_id: "'report ' || n",
  begin_at: '1800000000000 + n',
  end_at: '1800000000000 + n',
  received_at: '1800000000000 + n',
  summary: "'{}'",
  records: "'[]'",
}

const wanted = Number(process.argv[2] ?? 1_000_000)
const kept = process.env['POSTROAD_LARGE']

await (POSTGRES_SERVER === undefined ? measureSqlite() : measurePostgres())

async function measureSqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'large-'))
  const file = join(folder, 'postroad.db')
  try {
    if (kept === undefined) await fillSqlite(file)
    else {
      if (!existsSync(kept)) await fillSqlite(kept)
      copyFileSync(kept, file)
    }
    console.log(`${(statSync(file).size / 1e9).toFixed(2)} GB`)
    const handle = openWriter(file)
    await upgrade(sqliteDialect(handle).dialect, 'sqlite', () => statSync(`${file}-wal`).size)
    handle.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function fillSqlite(file: string): Promise<void> {
  writeFileSync(file, gunzipSync(readFileSync(sqliteFile)))
  const handle = new BetterSqlite(file)
  handle.pragma('journal_mode = MEMORY')
  handle.pragma('synchronous = OFF')
  handle.pragma('cache_size = -1000000')
  const db = new Kysely<Tables>({ dialect: sqliteDialect(handle).dialect })
  await fill(db, 'sqlite')
  await db.destroy()
}

async function measurePostgres(): Promise<void> {
  const url = createDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  try {
    execFileSync(serverProgram('psql'), ['--quiet', '--set=ON_ERROR_STOP=1', url], {
      input: gunzipSync(readFileSync(postgresFile)),
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    const db = new Kysely<Tables>({ dialect: postgresDialect(pool) })
    await fill(db, 'postgres')
    await sql`analyze`.execute(db)
    await upgrade(postgresDialect(pool), 'postgres', () => 0)
  } finally {
    await pool.end()
    dropDatabase(url)
  }
}

async function fill(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const began = performance.now()
  await multiplyRows(db, dialect, Math.ceil(wanted / MESSAGES) - 1)
  const numbers = sql.raw(
    `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${MORE_ROWS})`,
  )
  await sql`insert into feed_items (feed, item, seen_at) ${numbers} select 1, 'item ' || n, 1800000000000 + n from numbers`.execute(
    db,
  )
  await sql`insert into domain_reports (${sql.raw(Object.keys(REPORTS).join(', '))}) ${numbers}
    select ${sql.raw(Object.values(REPORTS).join(', '))} from numbers`.execute(db)
  const { rows } = await sql<{ messages: number }>`select count(*) as messages from messages`.execute(db)
  console.log(`${rows[0]?.messages} messages, written in ${seconds(performance.now() - began)}`)
}

/** Prints what each migration takes, and its longest statement: so long does a node that shares the database wait for it. */
async function upgrade(dialect: KyselyDialect, kind: Dialect, logOctets: () => number): Promise<void> {
  let [began, text] = [performance.now(), 'begin']
  let longest = { ms: 0, text: '' }
  const note = (next: string) => {
    const ms = performance.now() - began
    if (ms > longest.ms) longest = { ms, text }
    ;[began, text] = [performance.now(), next]
  }
  const db = new Kysely<Tables>({ dialect: watched(dialect, note) })
  const names = Object.keys(MIGRATIONS)
  const start = performance.now()
  for (let at = 1; at < names.length; at += 1) {
    const known = Object.fromEntries(Object.entries(MIGRATIONS).slice(0, at + 1))
    longest = { ms: 0, text: '' }
    began = performance.now()
    const from = performance.now()
    await migrateToLatest(db, kind, true, known)
    note('')
    console.log(
      `${names[at]}: ${seconds(performance.now() - from)}, longest ${seconds(longest.ms)}: ${longest.text.replace(/\s+/g, ' ').slice(0, 90)}; log ${(logOctets() / 1e6).toFixed(1)} MB`,
    )
  }
  console.log(`all: ${seconds(performance.now() - start)}`)
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`
}
