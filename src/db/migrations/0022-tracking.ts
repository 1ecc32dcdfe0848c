/** Clicks and opens: what a workspace wants tracked and adds to its links, and up to where visits were counted. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const workspaces = () => db.schema.alterTable('workspaces')
  for (const column of ['track_opens', 'track_clicks'])
    await workspaces()
      .addColumn(column, 'integer', c => c.notNull().defaultTo(1))
      .execute()
  for (const column of ['utm_source', 'utm_medium', 'utm_campaign'])
    await workspaces().addColumn(column, 'text').execute()
  // One row: a file of the journal, and how much of it was counted.
  await db.schema
    .createTable('visit_places')
    .addColumn('id', 'integer', c => c.primaryKey())
    .addColumn('file', 'bigint', c => c.notNull())
    .addColumn('octets', 'bigint', c => c.notNull())
    .execute()
}
