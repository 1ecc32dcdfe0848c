/** Forms, and what they took that waits to be confirmed by mail. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('forms')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('title', 'text')
    .addColumn('description', 'text')
    // JSON.
    .addColumn('list_ids', 'text', c => c.notNull())
    .addColumn('fields', 'text', c => c.notNull())
    .addColumn('redirect_url', 'text')
    .addColumn('double_opt_in', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
  await db.schema.createIndex('forms_by_workspace').on('forms').columns(['workspace_id', 'id']).execute()
  await db.schema
    .createTable('opt_ins')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('form_id', 'text', c => c.notNull())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('email', 'text', c => c.notNull())
    // JSON: what was filled in, by field.
    .addColumn('fields', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('confirmed_at', 'bigint')
    .execute()
  // How often somebody was asked lately.
  await db.schema
    .createIndex('opt_ins_by_email')
    .on('opt_ins')
    .columns(['workspace_id', 'email', 'created_at'])
    .execute()
}
