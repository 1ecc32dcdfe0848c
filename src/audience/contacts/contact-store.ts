/**
 * SQL of contacts: one row each, found by id or address within an audience.
 *
 * Counts (`audience-store.ts`) change in the same call as the rows. A deleted contact that can still be restored is none for whoever
 * asks here. What rules and searches look at is made of the fields at each write (`traits.ts`, `fold.ts`).
 */
import { sql, type Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { compilable, inLists, inPieces, rowsStatement, statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Permanence } from '../../mail/outcome.js'
import {
  applyCounts,
  contactsOf,
  CountChange,
  dialectOf,
  findAudience,
  reserveSeqs,
  type SeqRange,
} from '../audience-store.js'
import { fold } from '../../core/fold.js'
import type { Contact, ContactFields, NewContact } from './contact.js'
import { forgetSearchTexts } from '../search/search-store.js'
import { givePlaces, PLACE_COLUMNS, placeColumns, placed } from './places-store.js'
import type { Attributes } from './traits.js'

/** Without the columns of attributes that have a place (`places-store.ts`). */
interface ContactRow {
  seq: number
  audience: number
  subscribed: Flag
  is_bounced: Flag
  bounced_at: number | null
  bounce_type: Permanence | null
  last_opened_at: number | null
  last_clicked_at: number | null
  created_at: number
  updated_at: number
  deleted_at: number | null
  is_indexed: Flag
  first_folded: string | null
  last_folded: string | null
  /** Of attributes without a place. Written as JSON text. */
  traits: string
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
  }
}

/** Without what only rules and searches read. */
export const CONTACT_COLUMNS = [
  'seq',
  'subscribed',
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

/** Of a new contact, whose fate has nothing yet; those of its attributes come after them. */
const NEW_COLUMNS = [
  ...['seq', 'audience', 'subscribed', 'is_bounced', 'created_at', 'updated_at', 'is_indexed'],
  ...['email', 'first_folded', 'last_folded', 'traits'],
  ...['id', 'first_name', 'last_name', 'search_text', 'attributes'],
] as readonly NewColumn[]

type NewColumn = Exclude<
  keyof ContactRow,
  'bounced_at' | 'bounce_type' | 'last_opened_at' | 'last_clicked_at' | 'deleted_at'
>

const insertRows = rowsStatement((db, rows) => {
  const [{ length } = []] = rows
  const columns = [...NEW_COLUMNS, ...PLACE_COLUMNS.slice(0, length - NEW_COLUMNS.length)]
  const tuples = rows.map(
    row => sql`(${sql.join(row.map((value, at) => written(db, columns[at] ?? '', value)))})`,
  )
  const names = columns.map(column => sql.ref(column))
  return compilable(db, sql`insert into contacts (${sql.join(names)}) values ${sql.join(tuples)}`)
})

/** One row, whose last value is the number of the contact. */
const updateRow = rowsStatement((db, rows) => {
  const [row = []] = rows
  const columns = [...CHANGING_COLUMNS, ...PLACE_COLUMNS.slice(0, row.length - CHANGING_COLUMNS.length - 1)]
  const settings = columns.map((column, at) => sql`${sql.ref(column)} = ${written(db, column, row[at])}`)
  return compilable(db, sql`update contacts set ${sql.join(settings)} where seq = ${row.at(-1)}`)
})

const CHANGING_COLUMNS = [
  ...['subscribed', 'is_bounced', 'bounced_at', 'bounce_type', 'updated_at'],
  ...['email', 'first_folded', 'last_folded', 'traits'],
  ...['first_name', 'last_name', 'search_text', 'attributes'],
] as readonly ChangingColumn[]

type ChangingColumn = Exclude<
  NewColumn | 'bounced_at' | 'bounce_type',
  'seq' | 'audience' | 'created_at' | 'is_indexed' | 'id'
>

function written(db: Queries, column: string, value: unknown) {
  return column === 'traits' ? binaryJson(db, value) : sql`${value}`
}

/** JSON that need not be parsed to be read. */
function binaryJson(db: Queries, text: unknown) {
  return dialectOf(db) === 'sqlite' ? sql`jsonb(${text})` : sql`cast(${text} as jsonb)`
}

/**
 * Makes contacts of addresses that are none in this audience yet; whoever calls has looked, in the same transaction.
 * Made for imports as well: some 64 rows to a statement, whatever their number.
 */
export async function insertContacts(
  db: Queries,
  workspaceId: string,
  contacts: readonly NewContact[],
): Promise<Contact[]> {
  if (contacts.length === 0) return []
  const { audience, first } = await reserveSeqs(db, workspaceId, contacts.length)
  const change = new CountChange()
  const made = contacts.map((contact, at): Contact => {
    change.add({ subscribed: contact.subscribed, bounced: false })
    return { ...contact, seq: first + at, ...NOTHING_YET, updatedAt: contact.createdAt }
  })
  const places = await givePlaces(db, audience, contacts)
  // PostgreSQL's index is never behind.
  const isIndexed = flag(dialectOf(db) === 'postgres')
  const columns = placeColumns(places)
  const rows = made.map(contact => {
    const { values, traits } = placed(contact.attributes, places, columns)
    const row: Pick<ContactRow, NewColumn> = {
      seq: contact.seq,
      audience,
      is_bounced: 0,
      created_at: contact.createdAt,
      updated_at: contact.updatedAt,
      is_indexed: isIndexed,
      id: contact.id,
      ...fieldsToRow(contact),
      traits,
    }
    return [...NEW_COLUMNS.map(column => row[column]), ...values]
  })
  for (const piece of inPieces(rows)) await insertRows(db, piece)
  await applyCounts(db, audience, change)
  return made
}

const NOTHING_YET = {
  bounced: false,
  bouncedAt: null,
  bounceType: null,
  lastOpenedAt: null,
  lastClickedAt: null,
} as const

function fieldsToRow({ email, firstName, lastName, attributes, subscribed }: ContactFields) {
  const [first, last] = [firstName && fold(firstName), lastName && fold(lastName)]
  return {
    subscribed: flag(subscribed),
    first_folded: first,
    last_folded: last,
    email,
    first_name: firstName,
    last_name: lastName,
    search_text: `${fold(email)}\n${first ?? ''}\n${last ?? ''}`,
    attributes: JSON.stringify(attributes),
  }
}

const selectByIds = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('contacts').select(CONTACT_COLUMNS).where('id', 'in', ids).where('deleted_at', 'is', null),
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
  db.selectFrom('contacts').select(CONTACT_COLUMNS).where('seq', 'in', seqs).where('deleted_at', 'is', null),
)

/** Those of an audience that there are, in no order. @param ids lower case */
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

/** Those that there are, by id, whatever their audience: for ids that were looked up in it. @param ids lower case */
export async function findContactsOf(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Contact>> {
  const found = new Map<string, Contact>()
  for (const list of inLists(ids))
    for (const row of (await selectByIds(db, { ids: list })).rows) found.set(row.id, contactFromRow(row))
  return found
}

/** Those that there are, in no order. @param emails as `normalizedAddress` writes them */
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

/** Whom the addresses belong to: ids by address. @param emails as `normalizedAddress` writes them */
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

/** Those that are not deleted, in the order given. */
export async function findContactsBySeq(db: Queries, seqs: readonly number[]): Promise<Contact[]> {
  const found = new Map<number, Contact>()
  for (const list of inLists(seqs))
    for (const row of (await selectBySeqs(db, { seqs: list })).rows) found.set(row.seq, contactFromRow(row))
  return seqs.flatMap(seq => found.get(seq) ?? [])
}

/** All fields as they are to be. */
export async function updateContact(
  db: Queries,
  audience: number,
  before: Contact,
  after: Contact,
): Promise<void> {
  await updateContacts(db, audience, [{ before, after }])
}

export interface ContactChange {
  readonly before: Contact
  readonly after: Contact
}

/** All fields as they are to be, of contacts that each stand there once. */
export async function updateContacts(
  db: Queries,
  audience: number,
  changes: readonly ContactChange[],
): Promise<void> {
  if (changes.length === 0) return
  await forgetSearchTexts(
    db,
    changes.filter(isSearchedAnew).map(({ before }) => before.seq),
  )
  const places = await givePlaces(
    db,
    audience,
    changes.map(({ after }) => after),
  )
  const columns = placeColumns(places)
  const change = new CountChange()
  for (const { before, after } of changes) {
    const { values, traits } = placed(after.attributes, places, columns)
    const row: Pick<ContactRow, ChangingColumn> = {
      ...fieldsToRow(after),
      traits,
      is_bounced: flag(after.bounced),
      bounced_at: after.bouncedAt,
      bounce_type: after.bounceType,
      updated_at: after.updatedAt,
    }
    await updateRow(db, [[...CHANGING_COLUMNS.map(column => row[column]), ...values, before.seq]])
    change.remove(before)
    change.add(after)
  }
  await applyCounts(db, audience, change)
}

function isSearchedAnew({ before, after }: ContactChange): boolean {
  return (
    before.email !== after.email || before.firstName !== after.firstName || before.lastName !== after.lastName
  )
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

/** When a mail was last opened, or a link clicked; an earlier moment than is known changes nothing. */
export async function noteVisit(db: Queries, seq: number, column: VisitColumn, at: number): Promise<void> {
  await noteVisits[column](db, { seq, at })
}

/** Whoever deletes rows that were not deleted before counts them himself. */
export async function deleteContactRows(db: Queries, seqs: readonly number[]): Promise<void> {
  await forgetSearchTexts(db, seqs)
  for (const list of inLists(seqs)) await db.deleteFrom('contacts').where('seq', 'in', list).execute()
}

/** Live ones after a number, in the order of their making. */
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
    bounced: row.is_bounced === 1,
    bouncedAt: row.bounced_at,
    bounceType: row.bounce_type,
    lastOpenedAt: row.last_opened_at,
    lastClickedAt: row.last_clicked_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
