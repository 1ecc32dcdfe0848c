/**
 * Workspace names are unique without regard to case, since commands take a name in place of an id: of several with one name all but the
 * oldest get a number. And addresses erased while an import is under way, as SHA-256: the import drops their rows.
 */
import { sql, type Kysely } from 'kysely'

const MAX_NAME = 100

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ id: string; name: string }>`
    select id, name from workspaces where deleted_at is null order by id`.execute(db)
  const taken = new Set(rows.map(({ name }) => name.toLowerCase()))
  const seen = new Set<string>()
  for (const { id, name } of rows) {
    if (!seen.has(name.toLowerCase())) {
      seen.add(name.toLowerCase())
      continue
    }
    let number = 2
    const numbered = () => `${name.slice(0, MAX_NAME - ` (${number})`.length)} (${number})`
    while (taken.has(numbered().toLowerCase())) number += 1
    taken.add(numbered().toLowerCase())
    await sql`update workspaces set name = ${numbered()} where id = ${id}`.execute(db)
  }
  await sql`create unique index workspaces_by_name on workspaces (lower(name)) where deleted_at is null`.execute(
    db,
  )
  await db.schema
    .createTable('contact_import_erasures')
    .addColumn('import', 'bigint', c => c.notNull())
    .addColumn('email_hash', 'text', c => c.notNull())
    .addPrimaryKeyConstraint('contact_import_erasures_pk', ['import', 'email_hash'])
    .execute()
}
