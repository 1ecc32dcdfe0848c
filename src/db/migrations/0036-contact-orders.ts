/**
 * Indexes for listing contacts by when they were created or last changed, and for the automation runs of one contact.
 */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const live = sql`where deleted_at is null`
  await sql`create index contacts_by_created on contacts (audience, created_at, seq) ${live}`.execute(db)
  await sql`create index contacts_by_updated on contacts (audience, updated_at, seq) ${live}`.execute(db)
  await sql`create index automation_runs_by_contact on automation_runs (contact_id, seq)`.execute(db)
}
