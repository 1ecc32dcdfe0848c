/** Retention looks for bodies of webhook deliveries that are still tried by their number. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      'create index webhook_deliveries_pending on webhook_deliveries (payload) where next_attempt_at is not null',
    )
    .execute(db)
}
