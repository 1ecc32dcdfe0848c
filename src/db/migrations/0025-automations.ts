/** Automations and their steps. */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const numbered = <T extends string>(table: CreateTableBuilder<T>) =>
    dialect === 'sqlite'
      ? table.addColumn('seq', 'integer', c => c.primaryKey().autoIncrement())
      : table.addColumn('seq', 'bigserial', c => c.primaryKey())
  await db.schema
    .createTable('automations')
    .$call(numbered)
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    // draft, active or paused.
    .addColumn('status', 'text', c => c.notNull())
    .addColumn('trigger_type', 'text', c => c.notNull())
    // JSON.
    .addColumn('trigger_config', 'text', c => c.notNull())
    // Runs that are not at an end, and those that ended, by how.
    .addColumn('runs_active', 'integer', c => c.notNull())
    .addColumn('runs_completed', 'integer', c => c.notNull())
    .addColumn('runs_failed', 'integer', c => c.notNull())
    .addColumn('runs_cancelled', 'integer', c => c.notNull())
    .addColumn('activated_at', 'bigint')
    // JSON: how far the audience was looked through, for triggers that look at all of it.
    .addColumn('scan', 'text')
    // When its runs were to follow it: go on, or end.
    .addColumn('unsettled_at', 'bigint')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
  await sql`create index automations_by_workspace on automations (workspace_id, seq) where deleted_at is null`.execute(
    db,
  )
  await sql`create index automations_by_trigger on automations (trigger_type) where deleted_at is null`.execute(
    db,
  )
  await sql`create index automations_unsettled on automations (unsettled_at) where unsettled_at is not null`.execute(
    db,
  )
  await db.schema
    .createTable('automation_steps')
    .$call(numbered)
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('automation', 'bigint', c => c.notNull())
    .addColumn('position', 'integer', c => c.notNull())
    .addColumn('step_type', 'text', c => c.notNull())
    // JSON.
    .addColumn('config', 'text', c => c.notNull())
    // Of one that was deleted: the step that runs go on with, and when those that wait on it were to.
    .addColumn('successor', 'bigint')
    .addColumn('unsettled_at', 'bigint')
    .addColumn('deleted_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('automation_steps_by_automation')
    .on('automation_steps')
    .columns(['automation', 'position'])
    .execute()
  await sql`create index automation_steps_unsettled on automation_steps (unsettled_at) where unsettled_at is not null`.execute(
    db,
  )
}
