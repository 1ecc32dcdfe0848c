/**
 * SQL that writes contacts: new ones, and all fields of existing ones, one or a thousand at a time.
 *
 * Counts (`audience-store.ts`) change in the same call as the rows. What conditions and searches read is computed from the fields on
 * each write (`compared-attributes.ts`); imports compute it in their reader thread and pass it in.
 */
import { sql, type RawBuilder } from 'kysely'
import { rowsInsert } from '../../db/insert-rows.js'
import { dialectOf, type Queries } from '../../db/database.js'
import { inLists, statement, type Rows } from '../../db/statement.js'
import { flag } from '../../db/tables.js'
import { applyCounts, CountChange, reserveSeqs } from '../audience-store.js'
import { storedForm, type StoredForm } from './compared-attributes.js'
import type { Contact, NewContact } from './contact.js'
import { mergeSearchIndex } from './search-store.js'

/** In the order of `newRow`. Bounce and visit columns have defaults. */
const NEW_COLUMNS = [
  ...['seq', 'audience', 'subscribed', 'is_suspended', 'is_bounced', 'created_at', 'updated_at'],
  ...['email', 'first_folded', 'last_folded', 'id', 'first_name', 'last_name', 'search_text', 'attributes'],
]

const insertRows = rowsInsert({ table: 'contacts', columns: () => NEW_COLUMNS })

const ATTRIBUTES_INSERT = {
  table: 'contact_attributes',
  columns: () => ['contact', 'compared'],
  /** Binary JSON need not be parsed on reading. */
  written: (db: Queries, column: string, value: RawBuilder<unknown>) =>
    column !== 'compared'
      ? value
      : dialectOf(db) === 'sqlite'
        ? sql`jsonb(${value})`
        : sql`cast(${value} as jsonb)`,
}

const insertAttributes = rowsInsert(ATTRIBUTES_INSERT)

const replaceAttributes = rowsInsert({
  ...ATTRIBUTES_INSERT,
  rest: sql`on conflict (contact) do update set compared = excluded.compared`,
})

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
  if (contacts.length === 0) return []
  const { audience, first } = await reserveSeqs(db, workspaceId, contacts.length)
  const change = new CountChange()
  const inserted: Contact[] = []
  const rows: unknown[][] = []
  const attributes: unknown[][] = []
  for (const [at, form] of forms.entries()) {
    const contact = insertedContact(contacts[at] as NewContact, first + at)
    change.add(contact)
    inserted.push(contact)
    rows.push(newRow(contact, audience, form))
    if (form.comparedText !== null) attributes.push([contact.seq, form.comparedText])
  }
  await insertRows(db, rows)
  await insertAttributes(db, attributes)
  await mergeSearchIndex(db, rows.length)
  await applyCounts(db, audience, change)
  return inserted
}

function insertedContact(
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

function newRow(contact: Contact, audience: number, form: StoredForm): unknown[] {
  const { seq, subscribed, suspended, createdAt, updatedAt, id, email, firstName, lastName } = contact
  const { firstFolded, lastFolded, searchText, attributesText } = form
  // One array literal, since this runs for each row of an import.
  // prettier-ignore
  return [
    seq, audience, flag(subscribed), flag(suspended), 0, createdAt, updatedAt,
    email, firstFolded, lastFolded, id, firstName, lastName, searchText, attributesText,
  ]
}

/** Column groups that changed. Unchanged groups are not written, which saves their index updates. */
interface Changed {
  readonly fate: boolean
  readonly words: boolean
  readonly attributes: boolean
}

/** In the order of `changedRow`. */
const FATE_COLUMNS = ['subscribed', 'is_suspended', 'is_bounced', 'bounced_at', 'bounce_type']
const WORD_COLUMNS = ['email', 'first_folded', 'last_folded', 'first_name', 'last_name', 'search_text']

/** Updates one row; its last parameter is the contact's number. */
function updateRowOf({ fate, words, attributes }: Changed) {
  const columns = [
    'updated_at',
    ...(fate ? FATE_COLUMNS : []),
    ...(words ? WORD_COLUMNS : []),
    ...(attributes ? ['attributes'] : []),
  ]
  return statement((_, { rows }: Rows) => {
    const [row = []] = rows
    const settings = columns.map((column, at) => sql`${sql.ref(column)} = ${row[at]}`)
    return sql`update contacts set ${sql.join(settings)} where seq = ${row.at(-1)}`
  })
}

const updateRows = Array.from({ length: 8 }, (_, bits) =>
  updateRowOf({ fate: (bits & 1) > 0, words: (bits & 2) > 0, attributes: (bits & 4) > 0 }),
)

async function updateRow(db: Queries, { fate, words, attributes }: Changed, row: unknown[]): Promise<void> {
  await updateRows[(fate ? 1 : 0) + (words ? 2 : 0) + (attributes ? 4 : 0)]?.(db, { rows: [row] })
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
  const counts = new CountChange()
  const attributes: unknown[][] = []
  const without: number[] = []
  let texts = 0
  for (const change of changes) {
    const { before, after } = change
    const form = storedForm(after)
    const changed = changedOf(change)
    await updateRow(db, changed, changedRow(after, form, changed, before.seq))
    if (changed.words) texts += 1
    if (changed.attributes && form.comparedText === null) without.push(before.seq)
    else if (changed.attributes) attributes.push([before.seq, form.comparedText])
    counts.remove(before)
    counts.add(after)
  }
  await replaceAttributes(db, attributes)
  for (const list of inLists(without))
    await db.deleteFrom('contact_attributes').where('contact', 'in', list).execute()
  await mergeSearchIndex(db, texts)
  await applyCounts(db, audience, counts)
}

function changedOf({ before, after }: ContactChange): Changed {
  return {
    fate:
      before.subscribed !== after.subscribed ||
      before.suspended !== after.suspended ||
      before.bounced !== after.bounced ||
      before.bouncedAt !== after.bouncedAt ||
      before.bounceType !== after.bounceType,
    words:
      before.email !== after.email ||
      before.firstName !== after.firstName ||
      before.lastName !== after.lastName,
    attributes: before.attributes !== after.attributes,
  }
}

function changedRow(
  after: Contact,
  form: StoredForm,
  { fate, words, attributes }: Changed,
  seq: number,
): unknown[] {
  const { subscribed, suspended, bounced, bouncedAt, bounceType, email, firstName, lastName } = after
  return [
    after.updatedAt,
    ...(fate ? [flag(subscribed), flag(suspended), flag(bounced), bouncedAt, bounceType] : []),
    ...(words ? [email, form.firstFolded, form.lastFolded, firstName, lastName, form.searchText] : []),
    ...(attributes ? [form.attributesText] : []),
    seq,
  ]
}
