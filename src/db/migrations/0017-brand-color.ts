/** A workspace has a colour, which its public pages show. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('workspaces').addColumn('brand_color', 'text').execute()
}
