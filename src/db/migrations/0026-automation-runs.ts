/** Runs of automations: who is where in which, what became of each step, and what triggers remember. */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const numbered = <T extends string>(table: CreateTableBuilder<T>) =>
    dialect === 'sqlite'
      ? table.addColumn('seq', 'integer', c => c.primaryKey().autoIncrement())
      : table.addColumn('seq', 'bigserial', c => c.primaryKey())
  const lean = <T extends string>(table: CreateTableBuilder<T>) =>
    dialect === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table
  await db.schema
    .createTable('automation_runs')
    .$call(numbered)
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('automation', 'bigint', c => c.notNull())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    .addColumn('contact_id', 'text', c => c.notNull())
    .addColumn('contact_email', 'text', c => c.notNull())
    // active, completed, failed or cancelled.
    .addColumn('status', 'text', c => c.notNull())
    // The step that is next, or that it waits in.
    .addColumn('step', 'bigint')
    // What it waits for: time, an event, the answer of a web server; null before the step has begun.
    .addColumn('wait', 'text')
    .addColumn('wait_event', 'text')
    // The message that the event has to be about.
    .addColumn('wait_message', 'text')
    // When it goes on; null while it is at an end or its automation is paused, which is then kept beside it.
    .addColumn('due_at', 'bigint')
    .addColumn('parked_due_at', 'bigint')
    .addColumn('steps_done', 'integer', c => c.notNull())
    // Of the step that is next, in a row.
    .addColumn('failures', 'integer', c => c.notNull())
    .addColumn('last_message_id', 'text')
    .addColumn('trigger_type', 'text', c => c.notNull())
    // JSON.
    .addColumn('trigger_data', 'text', c => c.notNull())
    .addColumn('exit_reason', 'text')
    .addColumn('error', 'text')
    .addColumn('started_at', 'bigint', c => c.notNull())
    .addColumn('ended_at', 'bigint')
    .execute()
  for (const index of [
    sql`create index automation_runs_due on automation_runs (due_at, seq) where due_at is not null`,
    sql`create index automation_runs_waiting on automation_runs (contact_id, wait_event) where ended_at is null`,
    sql`create index automation_runs_in_step on automation_runs (step) where ended_at is null`,
    sql`create index automation_runs_parked on automation_runs (automation, seq) where parked_due_at is not null`,
    sql`create index automation_runs_unfinished on automation_runs (automation, seq) where ended_at is null`,
    sql`create index automation_runs_by_automation on automation_runs (automation, seq)`,
    sql`create index automation_runs_by_status on automation_runs (automation, status, seq)`,
    sql`create index automation_runs_ended on automation_runs (ended_at) where ended_at is not null`,
  ])
    await index.execute(db)
  await db.schema
    .createTable('automation_run_steps')
    .$call(numbered)
    .addColumn('run', 'bigint', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .addColumn('step_id', 'text', c => c.notNull())
    .addColumn('step_type', 'text', c => c.notNull())
    // waiting, completed, skipped, retrying or failed.
    .addColumn('outcome', 'text', c => c.notNull())
    // JSON.
    .addColumn('detail', 'text')
    .execute()
  await db.schema
    .createIndex('automation_run_steps_by_run')
    .on('automation_run_steps')
    .columns(['run', 'seq'])
    .execute()
  // Who has gone through what, and how often in an hour.
  await db.schema
    .createTable('automation_entries')
    .addColumn('automation', 'bigint', c => c.notNull())
    .addColumn('contact_id', 'text', c => c.notNull())
    .addColumn('hour', 'bigint', c => c.notNull())
    .addColumn('entries', 'integer', c => c.notNull())
    .addPrimaryKeyConstraint('automation_entries_pk', ['automation', 'contact_id'])
    .$call(lean)
    .execute()
  // The content that mails of a step share.
  await db.schema
    .createTable('automation_mails')
    .addColumn('step', 'bigint', c => c.primaryKey())
    .addColumn('content_id', 'text', c => c.notNull())
    .addColumn('fingerprint', 'text', c => c.notNull())
    .addColumn('stored_at', 'bigint', c => c.notNull())
    .execute()
  // Whom a segment meant when it was looked at last, by their numbers.
  await db.schema
    .createTable('automation_members')
    .addColumn('automation', 'bigint', c => c.notNull())
    .addColumn('contact', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('automation_members_pk', ['automation', 'contact'])
    .$call(lean)
    .execute()
}
