/** When the setup checklist of a workspace was dismissed. Workspaces that are there already were set up without it. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table workspaces add column setup_dismissed_at bigint').execute(db)
  await sql.raw('update workspaces set setup_dismissed_at = created_at').execute(db)
}
