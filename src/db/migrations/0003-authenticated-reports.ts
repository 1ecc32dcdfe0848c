/** Reports are stored with the domain that SPF authenticated, so that a flood of forged ones cannot take the place of genuine ones. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [
    // Null: not authenticated, as reports from before this migration.
    'alter table domain_reports add column authenticated_as text',
    'create index domain_reports_by_reporter on domain_reports (domain, kind, received_at, authenticated_as)',
  ])
    await sql.raw(statement).execute(db)
}
