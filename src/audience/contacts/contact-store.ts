/**
 * SQL of contacts: one row each, looked up by id or address within an audience.
 *
 * Written by `contact-write-store.ts`. Queries here never return deleted contacts, even restorable ones.
 */
import { sql, type Generated, type Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'
import type { Flag } from '../../db/tables.js'
import type { Permanence } from '../../mail/outcome.js'
import { contactsOf, findAudience, type SeqRange } from '../audience-store.js'
import { mergeSearchIndex } from './search-store.js'
import type { Attributes, Contact } from './contact.js'

interface ContactRow {
  seq: number
  audience: number
  subscribed: Flag
  /** Unsubscribed only because of a suppression. */
  is_suspended: Generated<Flag>
  is_bounced: Flag
  bounced_at: number | null
  bounce_type: Permanence | null
  last_opened_at: number | null
  last_clicked_at: number | null
  created_at: number
  updated_at: number
  deleted_at: number | null
  first_folded: string | null
  last_folded: string | null
  id: string
  email: string
  first_name: string | null
  last_name: string | null
  search_text: string
  attributes: string
}

declare module '../../db/tables.js' {
  interface Tables {
    contacts: ContactRow
    contact_attributes: { contact: number; compared: string }
  }
}

/** Excludes columns that only rules and searches read. */
export const CONTACT_COLUMNS = [
  'seq',
  'subscribed',
  'is_suspended',
  'is_bounced',
  'bounced_at',
  'bounce_type',
  'last_opened_at',
  'last_clicked_at',
  'created_at',
  'updated_at',
  'id',
  'email',
  'first_name',
  'last_name',
  'attributes',
] as const satisfies readonly (keyof ContactRow)[]

type ShownRow = Pick<Selectable<ContactRow>, (typeof CONTACT_COLUMNS)[number]>

/**
 * As `deleted_at is null`, but matches no partial index. Until PostgreSQL has statistics of what was imported, it takes those for nearly empty, and
 * would read all contacts to find a few hundred by their keys.
 */
const isLive = sql<boolean>`coalesce(deleted_at, 0) = 0`

const selectByIds = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('contacts').select(CONTACT_COLUMNS).where('id', 'in', ids).where(isLive),
)

const selectByEmails = statement(
  (db, { audience, emails }: { audience: number; emails: readonly string[] }) =>
    db
      .selectFrom('contacts')
      .select(CONTACT_COLUMNS)
      .where('audience', '=', audience)
      .where('email', 'in', emails)
      .where('deleted_at', 'is', null),
)

const selectIds = statement((db, { audience, emails }: { audience: number; emails: readonly string[] }) =>
  db
    .selectFrom('contacts')
    .select(['id', 'email'])
    .where('audience', '=', audience)
    .where('email', 'in', emails)
    .where('deleted_at', 'is', null),
)

const selectBySeqs = statement((db, { seqs }: { seqs: readonly number[] }) =>
  db.selectFrom('contacts').select(CONTACT_COLUMNS).where('seq', 'in', seqs).where(isLive),
)

/** Contacts of an audience, in no order. @param ids lower case */
export async function findContactsById(
  db: Queries,
  audience: number,
  ids: readonly string[],
): Promise<Contact[]> {
  const { first, last } = contactsOf(audience)
  const found: Contact[] = []
  for (const list of inLists(ids))
    for (const row of (await selectByIds(db, { ids: list })).rows)
      if (row.seq >= first && row.seq <= last) found.push(contactFromRow(row))
  return found
}

/** In any audience: for ids that were already looked up in one. @param ids lower case */
export async function findContactsOf(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Contact>> {
  const found = new Map<string, Contact>()
  for (const list of inLists(ids))
    for (const row of (await selectByIds(db, { ids: list })).rows) found.set(row.id, contactFromRow(row))
  return found
}

/** In no order. @param emails normalized (`normalizedAddress`) */
export async function findContactsByEmail(
  db: Queries,
  audience: number,
  emails: readonly string[],
): Promise<Contact[]> {
  const found: Contact[] = []
  for (const list of inLists(emails))
    found.push(...(await selectByEmails(db, { audience, emails: list })).rows.map(contactFromRow))
  return found
}

/** Contact ids by address. @param emails normalized (`normalizedAddress`) */
export async function findContactIds(
  db: Queries,
  workspaceId: string,
  emails: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>()
  const audience = emails.length === 0 ? undefined : await findAudience(db, workspaceId)
  if (!audience || audience.contacts === 0) return ids
  for (const list of inLists(emails))
    for (const { email, id } of (await selectIds(db, { audience: audience.number, emails: list })).rows)
      ids.set(email, id)
  return ids
}

/** In the order given; skips deleted contacts. */
export async function findContactsBySeq(db: Queries, seqs: readonly number[]): Promise<Contact[]> {
  const found = new Map<number, Contact>()
  for (const list of inLists(seqs))
    for (const row of (await selectBySeqs(db, { seqs: list })).rows) found.set(row.seq, contactFromRow(row))
  return seqs.flatMap(seq => found.get(seq) ?? [])
}

type VisitColumn = 'last_opened_at' | 'last_clicked_at'

const noteIn = (column: VisitColumn) =>
  statement((db, { seq, at }: { seq: number; at: number }) =>
    db
      .updateTable('contacts')
      .set({ [column]: at })
      .where('seq', '=', seq)
      .where(e => e.or([e(column, 'is', null), e(column, '<', at)])),
  )

const noteVisits = { last_opened_at: noteIn('last_opened_at'), last_clicked_at: noteIn('last_clicked_at') }

/** Records the latest open or click; an earlier time changes nothing. */
export async function noteVisit(db: Queries, seq: number, column: VisitColumn, at: number): Promise<void> {
  await noteVisits[column](db, { seq, at })
}

/** Does not adjust counts; a caller that deletes live contacts must. */
export async function deleteContactRows(db: Queries, seqs: readonly number[]): Promise<void> {
  for (const list of inLists(seqs)) {
    await db.deleteFrom('contact_attributes').where('contact', 'in', list).execute()
    await db.deleteFrom('contact_hours').where('contact', 'in', list).execute()
    await db.deleteFrom('contacts').where('seq', 'in', list).execute()
  }
  await mergeSearchIndex(db, seqs.length)
}

/** Live contacts of a range, oldest first. */
export async function contactsAfter(db: Queries, range: SeqRange, limit: number): Promise<Contact[]> {
  const rows = await db
    .selectFrom('contacts')
    .select(CONTACT_COLUMNS)
    .where('seq', '>=', range.first)
    .where('seq', '<=', range.last)
    .where('deleted_at', 'is', null)
    .orderBy('seq')
    .limit(limit)
    .execute()
  return rows.map(contactFromRow)
}

export function contactFromRow(row: ShownRow): Contact {
  return {
    seq: row.seq,
    id: row.id,
    email: row.email,
    firstName: row.first_name,
    lastName: row.last_name,
    attributes: JSON.parse(row.attributes) as Attributes,
    subscribed: row.subscribed === 1,
    suspended: row.is_suspended === 1,
    bounced: row.is_bounced === 1,
    bouncedAt: row.bounced_at,
    bounceType: row.bounce_type,
    lastOpenedAt: row.last_opened_at,
    lastClickedAt: row.last_clicked_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
