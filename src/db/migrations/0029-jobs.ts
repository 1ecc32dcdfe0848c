/**
 * What the scheduler remembers of its jobs over a restart, and the hold that a restored copy begins with.
 */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('jobs')
    .addColumn('name', 'text', c => c.primaryKey())
    .addColumn('schedule', 'text', c => c.notNull())
    .addColumn('is_running', 'integer', c => c.notNull())
    .addColumn('started_at', 'bigint')
    .addColumn('ended_at', 'bigint')
    // Of the last run that came to its end, ms of the monotonic clock.
    .addColumn('duration_ms', 'bigint')
    .addColumn('next_run_at', 'bigint')
    .addColumn('last_error', 'text')
    .addColumn('failed_at', 'bigint')
    .execute()
  // One row at most.
  await db.schema
    .createTable('restore_holds')
    .addColumn('id', 'integer', c => c.primaryKey())
    .addColumn('since', 'bigint', c => c.notNull())
    .execute()
}
