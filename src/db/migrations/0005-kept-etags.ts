/** Answers that are stored for repeats have the ETag of the first. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table kept_answers add column etag text').execute(db)
}
