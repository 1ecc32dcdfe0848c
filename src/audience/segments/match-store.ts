/**
 * SQL that tests some contacts against conditions: given contacts, or those in a range of numbers.
 *
 * For automations, which process contacts one by one. Pass few contacts at a time: a few milliseconds.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import { contactsOf, findAudience, type SeqRange } from '../audience-store.js'
import type { Contact } from '../contacts/contact.js'
import { findContactsBySeq } from '../contacts/contact-store.js'
import { liveContacts } from '../scan-store.js'
import { conditionsOf, type Asking } from './conditions-store.js'
import type { Group } from './read-conditions.js'

/** @param contacts numbers, of this workspace's audience @returns the matching ones */
export async function findMatching(
  db: Queries,
  group: Group,
  asking: Asking,
  contacts: readonly number[],
): Promise<ReadonlySet<number>> {
  const meant = new Set<number>()
  const audience = contacts.length === 0 ? undefined : await findAudience(db, asking.workspaceId)
  if (!audience) return meant
  const isMeant = (await conditionsOf(db, group, asking))(contactsOf(audience.number), 'some')
  for (const list of inLists(contacts)) {
    const { rows } = await sql<{ seq: number }>`
      select seq from contacts where seq in (${sql.join(list)}) and deleted_at is null and ${isMeant}`.execute(
      db,
    )
    for (const { seq } of rows) meant.add(seq)
  }
  return meant
}

/** Numbers of the matching contacts in the range, in order. */
export async function listMatchingSeqs(
  db: Queries,
  group: Group,
  asking: Asking,
  range: SeqRange,
): Promise<number[]> {
  const audience = await findAudience(db, asking.workspaceId)
  if (!audience) return []
  const isMeant = (await conditionsOf(db, group, asking))(range, 'all')
  const { rows } = await sql<{ seq: number }>`
    select seq from ${liveContacts(db)}
    where seq between ${range.first} and ${range.last} and deleted_at is null and ${isMeant} order by seq`.execute(
    db,
  )
  return rows.map(({ seq }) => seq)
}

/** `listMatchingSeqs`, returning contacts. */
export async function listMatchingContacts(
  db: Queries,
  group: Group,
  asking: Asking,
  range: SeqRange,
): Promise<Contact[]> {
  return findContactsBySeq(db, await listMatchingSeqs(db, group, asking, range))
}
