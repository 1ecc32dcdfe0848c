/**
 * SQL of exports: contacts oldest first, a page at a time, and the names of their attributes.
 *
 * For `Database.exportReader`. Contacts created, changed or deleted during the export may or may not be included; all others are included
 * exactly once.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf } from '../../db/database.js'
import type { Queries } from '../../db/database.js'
import { contactsOf, findAudience, type SeqRange } from '../audience-store.js'
import type { Contact } from '../contacts/contact.js'
import { conditionsBy, readPage, type ContactFilter } from '../contacts/contact-page-store.js'
import { newestContact } from '../contacts/deletion-store.js'

/** Contacts of an export: those that existed when it began, filtered. */
export interface Exported {
  readonly first: number
  readonly last: number
  readonly conditions: (range: SeqRange) => readonly RawBuilder<boolean>[]
}

/** @param now reference time of conditions, ms since epoch UTC @returns undefined if there are no contacts */
export async function beginExport(
  db: Queries,
  workspaceId: string,
  filter: ContactFilter,
  now: number,
): Promise<Exported | undefined> {
  const audience = await findAudience(db, workspaceId)
  if (!audience) return undefined
  const isMet = await conditionsBy(db, workspaceId, { ...filter, now })
  const { first } = contactsOf(audience.number)
  return {
    first,
    last: await newestContact(db, audience.number),
    // Each page reads part of the range only.
    conditions: range => isMet(range),
  }
}

/** The next contacts from a number on, oldest first. */
export async function exportPage(
  db: Queries,
  { last, conditions }: Exported,
  from: number,
  limit: number,
): Promise<Contact[]> {
  const range = { first: from, last }
  const inRange = sql<boolean>`contacts.seq between ${from} and ${last}`
  // readPage returns newest first.
  return (await readPage(db, [inRange, ...conditions(range)], { order: 'asc', offset: 0, limit })).reverse()
}

/** Attribute names of the contacts in a range, both ends inclusive. */
export async function attributeNames(
  db: Queries,
  { conditions }: Exported,
  first: number,
  last: number,
): Promise<string[]> {
  const inRange = sql<boolean>`contacts.seq between ${first} and ${last}`
  const where = sql.join([inRange, ...conditions({ first, last })], sql` and `)
  const { rows } =
    dialectOf(db) === 'sqlite'
      ? await sql<{ name: string }>`
          select distinct entries.key as name from contacts, json_each(contacts.attributes) as entries
          where ${where}`.execute(db)
      : await sql<{ name: string }>`
          select distinct entries.name as name from contacts
          cross join lateral json_object_keys(contacts.attributes::json) as entries (name)
          where ${where}`.execute(db)
  return rows.map(({ name }) => name)
}
