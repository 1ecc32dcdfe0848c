/**
 * Runs of automations that are due are found by workspace as well, so that workspaces take turns.
 */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index automation_runs_due_of on automation_runs (workspace_id, due_at, seq) where due_at is not null`.execute(
    db,
  )
}
