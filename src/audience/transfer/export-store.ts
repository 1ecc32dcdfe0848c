/**
 * SQL of exports: contacts in the order of their making, a page at a time, and the names of their attributes.
 *
 * For `Database.exportReader`. What is made, changed or deleted meanwhile may be in it or not; nobody else is in it twice, and
 * nobody else is left out.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf } from '../../db/dialect.js'
import type { Queries } from '../../db/database.js'
import { contactsOf, findAudience, type SeqRange } from '../audience-store.js'
import type { Contact } from '../contacts/contact.js'
import { conditionsBy, readPage, type ContactFilter } from '../contacts/contact-page-store.js'
import { newestContact } from '../contacts/deletion-store.js'

/** What an export is of: those of an audience that there were when it began, as far as a filter leaves them. */
export interface Exported {
  readonly first: number
  readonly last: number
  readonly conditions: (range: SeqRange) => readonly RawBuilder<boolean>[]
}

/** @param now ms since epoch UTC, what conditions go by @returns undefined where there are no contacts */
export async function beginExport(
  db: Queries,
  workspaceId: string,
  filter: ContactFilter,
  now: number,
): Promise<Exported | undefined> {
  const audience = await findAudience(db, workspaceId)
  if (!audience) return undefined
  const isMet = await conditionsBy(db, workspaceId, audience.number, { ...filter, now })
  const { first } = contactsOf(audience.number)
  return {
    first,
    last: await newestContact(db, audience.number),
    // Of each page a few are looked at, not all of the range.
    conditions: range => isMet(range),
  }
}

/** The next ones from a number on, those made first first. */
export async function exportPage(
  db: Queries,
  { last, conditions }: Exported,
  from: number,
  limit: number,
): Promise<Contact[]> {
  const range = { first: from, last }
  const inRange = sql<boolean>`contacts.seq between ${from} and ${last}`
  // Pages are turned round so that the newest is shown first.
  return (await readPage(db, [inRange, ...conditions(range)], { order: 'asc', offset: 0, limit })).reverse()
}

/** Names of attributes of those whose number is in a range, both ends included. */
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
