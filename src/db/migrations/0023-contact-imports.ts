/**
 * Imports of contacts: the file as it came, how far it is worked off, and the rows of it that cannot be contacts.
 */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('contact_imports')
    .$call(t =>
      dialect === 'sqlite'
        ? t.addColumn('seq', 'integer', c => c.primaryKey().autoIncrement())
        : t.addColumn('seq', 'bigserial', c => c.primaryKey()),
    )
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    // receiving, queued, processing, completed, failed or cancelled.
    .addColumn('status', 'text', c => c.notNull())
    .addColumn('file_name', 'text')
    .addColumn('charset', 'text', c => c.notNull())
    // JSON: list, tags, what was said of the columns, and what each of them is.
    .addColumn('options', 'text', c => c.notNull())
    .addColumn('octets', 'bigint', c => c.notNull())
    .addColumn('octets_read', 'bigint', c => c.notNull())
    // Of the file, its heading not counted: those before are done.
    .addColumn('rows_done', 'integer', c => c.notNull())
    .addColumn('created', 'integer', c => c.notNull())
    .addColumn('updated', 'integer', c => c.notNull())
    .addColumn('unchanged', 'integer', c => c.notNull())
    .addColumn('rejected', 'integer', c => c.notNull())
    .addColumn('error', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('started_at', 'bigint')
    .addColumn('finished_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('contact_imports_by_workspace')
    .on('contact_imports')
    .columns(['workspace_id', 'seq'])
    .execute()
  await sql`create index contact_imports_unfinished on contact_imports (seq) where finished_at is null`.execute(
    db,
  )
  await sql`create index contact_imports_finished on contact_imports (finished_at, seq) where finished_at is not null`.execute(
    db,
  )
  await db.schema
    .createTable('contact_import_parts')
    .addColumn('import', 'bigint', c => c.notNull())
    .addColumn('part', 'integer', c => c.notNull())
    .addColumn('octets', dialect === 'sqlite' ? 'blob' : 'bytea', c => c.notNull())
    .addPrimaryKeyConstraint('contact_import_parts_pk', ['import', 'part'])
    .execute()
  await db.schema
    .createTable('contact_import_rejections')
    .addColumn('import', 'bigint', c => c.notNull())
    // Of the file, from 1.
    .addColumn('line', 'integer', c => c.notNull())
    .addColumn('reason', 'text', c => c.notNull())
    // JSON, as they stood there.
    .addColumn('cells', 'text', c => c.notNull())
    .addPrimaryKeyConstraint('contact_import_rejections_pk', ['import', 'line'])
    .$call(t => (dialect === 'sqlite' ? t.modifyEnd(sql`without rowid`) : t))
    .execute()
}
