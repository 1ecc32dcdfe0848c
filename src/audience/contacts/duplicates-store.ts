/** SQL of contacts that are in several lists. For `Database.slowReader`, since it scans list members. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import { contactsOf, findAudience } from '../audience-store.js'
import type { Contact } from './contact.js'
import { findContactsBySeq } from './contact-store.js'

/** Newest first. @param list number of a list they must be in */
export async function listDuplicates(
  db: Queries,
  workspaceId: string,
  list: number | undefined,
  page: Page,
): Promise<Listing<Contact>> {
  const audience = await findAudience(db, workspaceId)
  if (!audience) return { items: [], total: 0 }
  const { first, last } = contactsOf(audience.number)
  const inList =
    list === undefined ? sql`` : sql`and contact in (select contact from list_members where list = ${list})`
  const repeated = sql`
    select contact from list_members
    where contact between ${first} and ${last} ${inList}
      and list in (select seq from lists where workspace_id = ${workspaceId} and deleted_at is null)
    group by contact having count(*) > 1`
  const isLive = sql`exists (select 1 from contacts where seq = repeated.contact and deleted_at is null)`
  const { rows: counted } = await sql<{ total: number }>`
    select count(*) as total from (${repeated}) as repeated where ${isLive}`.execute(db)
  const { rows } = await sql<{ contact: number }>`
    select contact from (${repeated}) as repeated where ${isLive}
    order by contact desc limit ${page.limit} offset ${page.offset}`.execute(db)
  const items = await findContactsBySeq(
    db,
    rows.map(({ contact }) => contact),
  )
  return { items, total: counted[0]?.total ?? 0 }
}
