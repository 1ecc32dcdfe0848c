/** Templates, with all their versions. What a template is now is its newest version. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('templates')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    // As it is searched: without case and accents.
    .addColumn('name_folded', 'text', c => c.notNull())
    .addColumn('description', 'text')
    .addColumn('version', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('templates_by_workspace')
    .on('templates')
    .columns(['workspace_id', 'id'])
    .execute()
  await db.schema
    .createTable('template_versions')
    .addColumn('template_id', 'text', c => c.notNull().references('templates.id').onDelete('cascade'))
    .addColumn('version', 'integer', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('description', 'text')
    .addColumn('html', 'text', c => c.notNull())
    .addColumn('json_structure', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('template_versions_pk', ['template_id', 'version'])
    .execute()
}
