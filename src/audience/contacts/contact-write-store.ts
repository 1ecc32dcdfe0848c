/**
 * SQL that writes contacts: new ones, and all fields of existing ones.
 *
 * Takes one contact or a thousand at a time. Counts (`audience-store.ts`) change in the same call as the rows. Columns for rules and
 * searches are computed from the fields on each write (`traits.ts`); imports compute them in the reader thread and pass them in.
 */
import { sql, type RawBuilder } from 'kysely'
import { dialectOf } from '../../db/database.js'
import { rowsInsert } from '../../db/insert-rows.js'
import type { Queries } from '../../db/database.js'
import { compilable, rowsStatement } from '../../db/statement.js'
import { flag } from '../../db/tables.js'
import { applyCounts, CountChange, reserveSeqs } from '../audience-store.js'
import { forgetSearchTexts, indexNew } from '../search/search-store.js'
import type { Contact, NewContact } from './contact.js'
import { givePlaces, PLACE_COLUMNS, placeColumns, placed } from './places-store.js'
import { storedForm, type StoredForm } from './traits.js'

/** In the order of `newRow`. Bounce and visit columns have defaults; attribute columns are appended. */
const NEW_COLUMNS = [
  ...[
    'seq',
    'audience',
    'subscribed',
    'is_suspended',
    'is_bounced',
    'created_at',
    'updated_at',
    'is_indexed',
  ],
  ...['email', 'first_folded', 'last_folded', 'traits'],
  ...['id', 'first_name', 'last_name', 'search_text', 'attributes'],
]

const insertRows = rowsInsert({
  table: 'contacts',
  columns: width => [...NEW_COLUMNS, ...PLACE_COLUMNS.slice(0, width - NEW_COLUMNS.length)],
  written,
})

/** Column groups that changed. Unchanged groups are not written, which saves their index updates. */
interface Changed {
  readonly fate: boolean
  readonly words: boolean
  readonly attributes: boolean
}

/** In the order of `changedRow`. */
const FATE_COLUMNS = ['subscribed', 'is_suspended', 'is_bounced', 'bounced_at', 'bounce_type']
const WORD_COLUMNS = ['email', 'first_folded', 'last_folded', 'first_name', 'last_name', 'search_text']
const ATTRIBUTE_COLUMNS = ['traits', 'attributes']

/** Updates one row; its last parameter is the contact's number. */
function updateRowOf({ fate, words, attributes }: Changed) {
  const first = [
    'updated_at',
    ...(fate ? FATE_COLUMNS : []),
    ...(words ? WORD_COLUMNS : []),
    ...(attributes ? ATTRIBUTE_COLUMNS : []),
  ]
  return rowsStatement((db, rows) => {
    const [row = []] = rows
    const columns = [...first, ...PLACE_COLUMNS.slice(0, row.length - first.length - 1)]
    const settings = columns.map(
      (column, at) => sql`${sql.ref(column)} = ${written(db, column, sql`${row[at]}`)}`,
    )
    return compilable(db, sql`update contacts set ${sql.join(settings)} where seq = ${row.at(-1)}`)
  })
}

const updateRows = Array.from({ length: 8 }, (_, bits) =>
  updateRowOf({ fate: (bits & 1) > 0, words: (bits & 2) > 0, attributes: (bits & 4) > 0 }),
)

async function updateRow(db: Queries, { fate, words, attributes }: Changed, row: unknown[]): Promise<void> {
  await updateRows[(fate ? 1 : 0) + (words ? 2 : 0) + (attributes ? 4 : 0)]?.(db, [row])
}

/** Stores traits in binary JSON, which need not be parsed on reading. */
function written(db: Queries, column: string, value: RawBuilder<unknown>): RawBuilder<unknown> {
  if (column !== 'traits') return value
  return dialectOf(db) === 'sqlite' ? sql`jsonb(${value})` : sql`cast(${value} as jsonb)`
}

/**
 * Inserts contacts, 64 rows per statement. The caller has checked in the same transaction that their addresses are new.
 *
 * @param forms stored forms, if already computed
 */
export async function insertContacts(
  db: Queries,
  workspaceId: string,
  contacts: readonly NewContact[],
  forms: readonly StoredForm[] = contacts.map(storedForm),
): Promise<Contact[]> {
  return insertAll(db, workspaceId, contacts, forms, false)
}

/** `insertContacts` for imports: also adds them to the search index. */
export async function insertManyContacts(
  db: Queries,
  workspaceId: string,
  contacts: readonly NewContact[],
  forms: readonly StoredForm[],
): Promise<Contact[]> {
  const made = await insertAll(db, workspaceId, contacts, forms, true)
  const [first, last] = [made[0], made.at(-1)]
  if (first && last) await indexNew(db, { first: first.seq, last: last.seq })
  return made
}

async function insertAll(
  db: Queries,
  workspaceId: string,
  contacts: readonly NewContact[],
  forms: readonly StoredForm[],
  isSearched: boolean,
): Promise<Contact[]> {
  if (contacts.length === 0) return []
  const { audience, first } = await reserveSeqs(db, workspaceId, contacts.length)
  const places = await givePlaces(db, audience, forms)
  const columns = placeColumns(places)
  // PostgreSQL maintains its index itself.
  const isIndexed = flag(isSearched || dialectOf(db) === 'postgres')
  const change = new CountChange()
  const made: Contact[] = []
  const rows: unknown[][] = []
  for (const [at, form] of forms.entries()) {
    const contact = madeOf(contacts[at] as NewContact, first + at)
    change.add(contact)
    made.push(contact)
    const { values, traits } = placed(form.traits, places, columns)
    const row = newRow(contact, audience, isIndexed, form, traits)
    for (const value of values) row.push(value)
    rows.push(row)
  }
  await insertRows(db, rows)
  await applyCounts(db, audience, change)
  return made
}

/** The contact as inserted. */
function madeOf(
  { id, email, firstName, lastName, attributes, subscribed, suspended = false, createdAt }: NewContact,
  seq: number,
): Contact {
  return {
    seq,
    id,
    email,
    firstName,
    lastName,
    attributes,
    subscribed,
    suspended,
    bounced: false,
    bouncedAt: null,
    bounceType: null,
    lastOpenedAt: null,
    lastClickedAt: null,
    createdAt,
    updatedAt: createdAt,
  }
}

function newRow(
  contact: Contact,
  audience: number,
  isIndexed: number,
  form: StoredForm,
  traits: string,
): unknown[] {
  const { seq, subscribed, suspended, createdAt, updatedAt, id, email, firstName, lastName } = contact
  const { firstFolded, lastFolded, searchText, attributesText } = form
  // One array literal, since this runs for each row of an import.
  // prettier-ignore
  return [
    seq, audience, flag(subscribed), flag(suspended), 0, createdAt, updatedAt, isIndexed,
    email, firstFolded, lastFolded, traits,
    id, firstName, lastName, searchText, attributesText,
  ]
}

/** Writes all fields. */
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

/** Writes all fields; each contact must occur once. */
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
  const forms = changes.map(({ after }) => storedForm(after))
  const places = await givePlaces(db, audience, forms)
  const columns = placeColumns(places)
  const change = new CountChange()
  for (const [at, { before, after }] of changes.entries()) {
    const form = forms[at] as StoredForm
    const changed = changedOf({ before, after })
    const row = changedRow(after, form, changed)
    if (changed.attributes) {
      const { values, traits } = placed(form.traits, places, columns)
      row.push(traits, form.attributesText)
      for (const value of values) row.push(value)
    }
    row.push(before.seq)
    await updateRow(db, changed, row)
    change.remove(before)
    change.add(after)
  }
  await applyCounts(db, audience, change)
}

function changedOf({ before, after }: ContactChange): Changed {
  return {
    fate:
      before.subscribed !== after.subscribed ||
      before.suspended !== after.suspended ||
      before.bounced !== after.bounced ||
      before.bouncedAt !== after.bouncedAt ||
      before.bounceType !== after.bounceType,
    words: isSearchedAnew({ before, after }),
    attributes: before.attributes !== after.attributes,
  }
}

/** Without attributes. */
function changedRow(after: Contact, form: StoredForm, { fate, words }: Changed): unknown[] {
  const { subscribed, suspended, bounced, bouncedAt, bounceType, updatedAt, email, firstName, lastName } =
    after
  const { firstFolded, lastFolded, searchText } = form
  return [
    updatedAt,
    ...(fate ? [flag(subscribed), flag(suspended), flag(bounced), bouncedAt, bounceType] : []),
    ...(words ? [email, firstFolded, lastFolded, firstName, lastName, searchText] : []),
  ]
}

function isSearchedAnew({ before, after }: ContactChange): boolean {
  return (
    before.email !== after.email || before.firstName !== after.firstName || before.lastName !== after.lastName
  )
}
