/** How many attempts at a run's step were answered with a failure: the next request is a new one, with an Idempotency-Key of its own. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('automation_runs')
    .addColumn('refusals', 'integer', c => c.notNull().defaultTo(0))
    .execute()
}
