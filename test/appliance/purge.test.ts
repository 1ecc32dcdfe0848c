/** The end of removed workspaces, on both databases, with rows of every table there is. */
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import { RESTORABLE_MS, restoreWorkspace } from '../../src/accounts/workspace-store.js'
import {
  CHILDREN,
  CASCADED,
  INDEXED,
  APPLIANCE_TABLES,
  SCANNED,
} from '../../src/appliance/purge/owned-tables.js'
import { listPurgeable } from '../../src/appliance/purge/purge-store.js'
import { purging } from '../../src/appliance/purge/purge-workspaces.js'
import type { Database } from '../../src/db/database.js'
import { migrateToLatest } from '../../src/db/migrate.js'
import { MIGRATION_ROWS, type Rows, type RowValue } from '../db/migration-rows.js'
import { eachDatabase } from '../support/db/database.js'
import { MIGRATION_NAMES, openForMigration, upTo } from '../support/db/migrating.js'
import { insertRows, readAllRows, type ReadRow } from '../support/db/rows.js'
import { often } from '../support/long.js'

const WORKSPACE = '0199-workspace'
const NOW = 1_900_000_000_000
/** Foreign keys lead to these. */
const FIRST = ['workspaces', 'domains', 'templates', 'message_contents', 'messages', 'nodes']

/** All that the migrations' tests put in, in the tables as they are now. */
async function rowsOfEverything(t: Test): Promise<Rows> {
  const file = join(t.testdir(), 'everything.db')
  const db = openForMigration(file)
  for (const name of MIGRATION_NAMES) {
    const { before = {}, after = {} } = MIGRATION_ROWS[name] ?? {}
    await insertRows(db, before)
    await migrateToLatest(db, 'sqlite', true, upTo(name))
    await insertRows(db, after)
  }
  const tables = (await db.introspection.getTables()).map(({ name }) => name)
  await db.destroy()
  const handle = new BetterSqlite(file, { readonly: true })
  const rows: [string, Record<string, RowValue>[]][] = tables
    .filter(name => !/^(schema_migrations|contact_search|sqlite_)/.test(name))
    .map(name => [name, handle.prepare(`select * from "${name}"`).all() as Record<string, RowValue>[]])
  handle.close()
  const place = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length)
  return Object.fromEntries(rows.sort(([a], [b]) => place(a) - place(b)))
}

let everything: Promise<Rows> | undefined

/** The workspace was removed long ago. */
async function fill(t: Test, database: Database): Promise<void> {
  const rows = await (everything ??= rowsOfEverything(t))
  await database.write(async tx => {
    for (const table of Object.keys(rows).reverse()) await sql`delete from ${sql.table(table)}`.execute(tx.db)
    await insertRows(tx.db, rows)
    await tx.db.updateTable('workspaces').set({ deleted_at: 1_000 }).where('id', '=', WORKSPACE).execute()
  })
}

/** @param most steps until the kill */
async function purge(database: Database, limit: number, most = Infinity): Promise<number> {
  const step = purging(await listPurgeable(database.reader, NOW - RESTORABLE_MS))
  for (let steps = 0; ; steps += 1) {
    if (steps === most || !(await step(limit, work => database.write(work))).hasMore) return steps
  }
}

const ownerOf = (row: ReadRow) => row['workspace_id'] ?? row['owner']

eachDatabase(t, 'all that was a removed workspace’s goes, and nothing else', async (t, database) => {
  await fill(t, database)
  const before = await readAllRows(database.reader)
  const sandboxes = (before.get('sandboxes') ?? []).filter(row => row['workspace_id'] === WORKSPACE)
  const ids: readonly unknown[] = [WORKSPACE, ...sandboxes.map(row => row['id'])]
  await purge(database, 3)
  const after = await readAllRows(database.reader)
  const workspaces = (rows: typeof before) => (rows.get('workspaces') ?? []).map(row => row['id'])
  t.same(
    workspaces(after),
    workspaces(before).filter(id => id !== WORKSPACE),
  )
  for (const [table, rows] of before) {
    const left = after.get(table) ?? []
    t.same(
      left.filter(row => ids.includes(ownerOf(row))),
      [],
      table,
    )
    const others = rows.filter(row => ownerOf(row) !== undefined && !ids.includes(ownerOf(row)))
    t.same(
      left.filter(row => ownerOf(row) !== undefined),
      others,
      `${table}: of others`,
    )
    if (APPLIANCE_TABLES.includes(table)) t.same(left, rows, table)
    else if (table === 'workspaces') continue
    else if (!rows.some(row => ownerOf(row) !== undefined))
      t.same(left, [], `${table}: it hung on what is gone`)
  }
})

eachDatabase(t, 'a purge killed after any step resumes and cannot be undone', async (t, database) => {
  await fill(t, database)
  const steps = await purge(database, 3)
  const whole = await readAllRows(database.reader)
  t.ok(steps > 40)
  for (let most = 1; most < steps; most += often(29, 3)) {
    await fill(t, database)
    await purge(database, 3, most)
    t.notOk(
      await database.write(tx => restoreWorkspace(tx.db, WORKSPACE, RESTORABLE_MS)),
      'once it has begun',
    )
    await purge(database, 3)
    t.same(await readAllRows(database.reader), whole, `after ${most} steps`)
  }
})

eachDatabase(t, 'a workspace that can still be restored is left alone', async (t, database) => {
  await fill(t, database)
  const removedAt = NOW - RESTORABLE_MS
  await database.write(tx =>
    tx.db.updateTable('workspaces').set({ deleted_at: removedAt }).where('id', '=', WORKSPACE).execute(),
  )
  const before = await readAllRows(database.reader)
  await purge(database, 100)
  t.same(await readAllRows(database.reader), before)
})

eachDatabase(t, 'of every table it is said whose it is', async (t, database) => {
  const tables = [...(await readAllRows(database.reader)).keys()]
  const said = [...CHILDREN, ...INDEXED, ...SCANNED].map(({ table }): string => table)
  t.same(
    [...said, ...CASCADED, ...APPLIANCE_TABLES].sort(),
    tables.sort(),
    'see src/appliance/purge/owned-tables.ts',
  )
})
