/**
 * The index of the search for contacts lets eight pieces of a size come together before they are made one, not four: what an import puts
 * into it is then written anew less often. What lies in it stays as it is.
 */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect === 'postgres') return
  await sql`insert into contact_search (contact_search, rank) values ('usermerge', 8)`.execute(db)
}
