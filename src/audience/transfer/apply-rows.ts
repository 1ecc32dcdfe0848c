/**
 * Applies a batch of import rows: creates and updates contacts, adds list and tags, and appends the events.
 *
 * Runs in the importer's transaction, which also records progress; a few hundred rows take a few milliseconds. Rows that change nothing
 * write nothing. A file can unsubscribe existing contacts but never resubscribe them.
 * Fails: ImportFault if the list was deleted.
 */
import type { NewId } from '../../core/ids.js'
import type { Tx } from '../../db/database.js'
import {
  findSuppressionsOf,
  suppressOrWiden,
  type SuppressResult,
  type Suppression,
} from '../../deliverability/suppressions/suppression-store.js'
import { suppressionAddedEvent } from '../../deliverability/suppressions/suppressions.js'
import { appendEvents } from '../../events/store.js'
import type { Acting } from '../audience-parts.js'
import { findAudience } from '../audience-store.js'
import { isWithinBounds } from '../checks.js'
import type { Attributes, Contact, Named, NewContact } from '../contacts/contact.js'
import { changedFields, isChanged } from '../contacts/contact-events.js'
import { followSuppressions } from '../contacts/follow-suppressions.js'
import { findContactsByEmail } from '../contacts/contact-store.js'
import { insertContacts, updateContacts, type ContactChange } from '../contacts/contact-write-store.js'
import { mailStatusUnder, subscriptionUnder } from '../contacts/standing.js'
import { mergeAttributes } from '../contacts/compared-attributes.js'
import { ensureLists, findStaticList } from '../lists/lists.js'
import { addPairs, addPairsOfNew, CONTACT_TAGS, LIST_MEMBERS, type PairKind } from '../pair-store.js'
import { ensureTags } from '../tags/tags.js'
import type { Column, Import, ImportCounts, Rejection } from './import.js'
import { ImportChanges } from './import-events.js'
import { attributeOf } from './reading/columns.js'
import { rejected, type ImportedContact } from './reading/read-row.js'

export type RowCounts = Pick<ImportCounts, 'created' | 'updated' | 'unchanged'>

interface ApplyContext {
  readonly tx: Tx
  readonly acting: Acting
  readonly at: number
  readonly newId: NewId
}

/** Input for adding contacts to lists and tags. */
interface Pairing extends ApplyContext {
  /** All contacts of the rows, by address. */
  readonly contacts: ReadonlyMap<string, Contact>
  readonly done: ImportChanges
  /** Contacts from this number on were created here and have no lists or tags yet. */
  readonly firstMade: number
}

export interface Applied {
  readonly counts: RowCounts
  /** Rows rejected because the contact's attributes would exceed their limits. */
  readonly refused: readonly Rejection[]
}

/** @param rows with distinct addresses @throws AppError not_found, conflict if the list no longer accepts members */
export async function applyRows(
  tx: Tx,
  { workspaceId, isSandbox, options }: Pick<Import, 'workspaceId' | 'isSandbox' | 'options'>,
  imported: readonly ImportedContact[],
  { at, newId }: Pick<ApplyContext, 'at' | 'newId'>,
): Promise<Applied> {
  if (imported.length === 0) return { counts: { created: 0, updated: 0, unchanged: 0 }, refused: [] }
  const context: ApplyContext = { tx, at, newId, acting: { workspaceId, isSandbox, source: 'import' } }
  // First, so that contacts written below respect these suppressions.
  const suppressed = await suppressRows(context, imported)
  if (!options.makesContacts) return { counts: suppressed, refused: [] }
  const known = await findKnown(context, imported)
  const { changes, refused } = changesBy(imported, known, {
    at,
    isTyped: options.everyRow.isTyped,
    declared: new Set(options.declared.map(([name]) => name)),
  })
  for (const { email } of refused) known.delete(email)
  const rows = refused.length === 0 ? imported : imported.filter(row => !refused.includes(row))
  const made = await makeContacts(
    context,
    rows.filter(({ email }) => !known.has(email)),
  )
  const audience = await findAudience(tx.db, workspaceId)
  if (audience) await updateContacts(tx.db, audience.number, changes)
  const contacts = new Map([...known, ...byEmail(made), ...byEmail(changes.map(({ after }) => after))])
  const done = new ImportChanges()
  for (const contact of made) done.created(contact)
  for (const { before, after } of changes) done.updated(after, changedFields(before, after))
  const pairing: Pairing = { ...context, contacts, done, firstMade: made[0]?.seq ?? Infinity }
  await addToLists(pairing, options.listId, rows)
  await addTags(pairing, options.tags, rows)
  await appendEvents(tx, done.events(context.acting, at))
  const counts = {
    created: made.length,
    updated: done.count - made.length,
    unchanged: rows.length - done.count,
  }
  return { counts, refused: refused.map(row => exceedsLimits(options.columns, row)) }
}

function byEmail(contacts: readonly Contact[]): [string, Contact][] {
  return contacts.map(contact => [contact.email, contact])
}

async function findKnown(
  { tx, acting }: ApplyContext,
  rows: readonly ImportedContact[],
): Promise<Map<string, Contact>> {
  const audience = await findAudience(tx.db, acting.workspaceId)
  if (!audience) return new Map()
  return new Map(
    byEmail(
      await findContactsByEmail(
        tx.db,
        audience.number,
        rows.map(({ email }) => email),
      ),
    ),
  )
}

async function makeContacts(
  { tx, acting, at, newId }: ApplyContext,
  rows: readonly ImportedContact[],
): Promise<Contact[]> {
  const emails = rows.map(({ email }) => email)
  const standings = await findSuppressionsOf(tx.db, acting.workspaceId, emails)
  const contacts = rows.map(({ email, firstName, lastName, attributes, subscribed }): NewContact => {
    return {
      id: newId(),
      email,
      firstName,
      lastName,
      attributes: attributes ? mergeAttributes(attributes, {}) : {},
      ...subscriptionUnder({ subscribed: subscribed !== false, suspended: false }, standings.get(email)),
      createdAt: at,
    }
  })
  const made = await insertContacts(
    tx.db,
    acting.workspaceId,
    contacts,
    rows.map(({ form }) => form),
  )
  const bounced = new Map<number, ContactChange>()
  for (const before of standings.size === 0 ? [] : made) {
    const after = { ...before, ...mailStatusUnder(before, standings.get(before.email)) }
    if (after.bounced) bounced.set(before.seq, { before, after })
  }
  if (bounced.size === 0) return made
  const audience = await findAudience(tx.db, acting.workspaceId)
  if (audience) await updateContacts(tx.db, audience.number, [...bounced.values()])
  return made.map(contact => bounced.get(contact.seq)?.after ?? contact)
}

/** When an imported value replaces one that reads the same. */
interface KnownValueRules {
  /** Cells of our own export keep their types. */
  readonly isTyped: boolean
  /** Names of attributes with a declared type. */
  readonly declared: ReadonlySet<string>
}

/** Updates of existing contacts, and rows that would exceed a contact's limits. */
function changesBy(
  rows: readonly ImportedContact[],
  known: ReadonlyMap<string, Contact>,
  { at, ...rules }: KnownValueRules & { readonly at: number },
): { readonly changes: readonly ContactChange[]; readonly refused: readonly ImportedContact[] } {
  const [changes, refused]: [ContactChange[], ImportedContact[]] = [[], []]
  for (const row of rows) {
    const before = known.get(row.email)
    if (!before) continue
    const attributes = attributesBy(row, before, rules)
    if (!attributes) refused.push(row)
    else {
      const after = changedBy(row, before, attributes, at)
      if (isChanged(before, after)) changes.push({ before, after })
    }
  }
  return { changes, refused }
}

/** @returns undefined if the limits would be exceeded */
function attributesBy(
  { attributes: imported }: ImportedContact,
  { attributes }: Contact,
  rules: KnownValueRules,
): Attributes | undefined {
  const changed = imported ? changedValues(attributes, imported, rules) : {}
  if (Object.keys(changed).length === 0) return attributes
  return isWithinBounds(attributes, changed) ? mergeAttributes(attributes, changed) : undefined
}

function changedBy(
  { firstName, lastName, subscribed }: ImportedContact,
  before: Contact,
  attributes: Attributes,
  at: number,
): Contact {
  return {
    ...before,
    firstName: firstName ?? before.firstName,
    lastName: lastName ?? before.lastName,
    attributes,
    subscribed: before.subscribed && subscribed !== false,
    suspended: before.suspended && subscribed !== false,
    updatedAt: at,
  }
}

/**
 * Drops values equal to the existing ones. The text "5" changes no number 5, since a file has only text; the number 5 that a column was
 * recognized to hold replaces the text of an earlier import. Our own export gives back what it took from this text. A declared attribute
 * takes the type of the imported value, so that importing a file again converts what contacts have.
 */
function changedValues(
  before: Attributes,
  imported: Attributes,
  { isTyped, declared }: KnownValueRules,
): Attributes {
  return Object.fromEntries(
    Object.entries(imported).filter(([name, value]) => {
      const known = before[name]
      if (!Object.hasOwn(before, name) || attributeText(known) !== attributeText(value)) return true
      if (declared.has(name)) return typeof known !== typeof value
      return !isTyped && typeof known === 'string' && typeof value !== 'string'
    }),
  )
}

/** Cells in the file's layout, so that they can be imported again. */
function exceedsLimits(columns: readonly Column[], row: ImportedContact): Rejection {
  const { line, email, firstName, lastName, subscribed, tags } = row
  const attributes = row.attributes ?? {}
  const cellsOf: Readonly<Record<string, string>> = {
    email,
    first_name: firstName ?? '',
    last_name: lastName ?? '',
    tags: tags.join(', '),
    subscribed: subscribed === null ? '' : String(subscribed),
    attributes: JSON.stringify(attributes),
  }
  const cells = columns.map(({ field }) => {
    const attribute = field === null ? undefined : attributeOf(field)
    if (attribute === undefined) return cellsOf[field ?? ''] ?? ''
    return Object.hasOwn(attributes, attribute) ? attributeText(attributes[attribute]) : ''
  })
  return rejected({ line, cells }, 'the contact would exceed its attribute limits')
}

/** An attribute's value as a CSV cell. */
export function attributeText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Suppresses addresses where rows ask for it. @returns number added, widened and unchanged */
async function suppressRows(
  { tx, acting, at }: ApplyContext,
  rows: readonly ImportedContact[],
): Promise<RowCounts> {
  const counts: Record<SuppressResult, number> = { added: 0, widened: 0, known: 0 }
  const changed: Suppression[] = []
  for (const { email, suppress: reason } of rows) {
    if (reason === null) continue
    const suppression: Suppression = {
      workspaceId: acting.workspaceId,
      email,
      reason,
      scope: reason === 'unsubscribe' ? 'marketing' : 'all',
      sourceMessageId: null,
      createdAt: at,
    }
    const result = await suppressOrWiden(tx.db, suppression)
    counts[result] += 1
    if (result !== 'known') changed.push(suppression)
  }
  if (changed.length > 0) {
    await appendEvents(
      tx,
      changed.map(one => suppressionAddedEvent(one, acting.isSandbox)),
    )
    await followSuppressions().suppressed(tx, changed, { isSandbox: acting.isSandbox, source: 'import' })
  }
  const { added: created, widened: updated } = counts
  return { created, updated, unchanged: rows.length - created - updated }
}

async function addToLists(
  pairing: Pairing,
  listId: string | null,
  rows: readonly ImportedContact[],
): Promise<void> {
  const { tx, acting, at, newId } = pairing
  const named = rows.flatMap(({ lists }) => lists)
  if (listId === null && named.length === 0) return
  const ofAll = listId === null ? [] : [await findStaticList(tx.db, acting.workspaceId, listId, 'list_id')]
  const listOf = named.length === 0 ? undefined : await ensureLists(tx, acting, named, { at, newId })
  const listsOf = (row: ImportedContact) => (listOf ? [...ofAll, ...row.lists.map(listOf)] : ofAll)
  await pair(pairing, LIST_MEMBERS, rows, listsOf)
}

async function addTags(
  pairing: Pairing,
  ofAll: readonly string[],
  rows: readonly ImportedContact[],
): Promise<void> {
  const { tx, acting, at, newId } = pairing
  const named = [...ofAll, ...rows.flatMap(({ tags }) => tags)]
  if (named.length === 0) return
  const tagOf = await ensureTags(tx, acting, named, { at, newId })
  await pair(pairing, CONTACT_TAGS, rows, ({ tags }) => [...ofAll, ...tags].map(tagOf))
}

type Target = Named & { readonly seq: number }

/** Adds the contacts to their lists or tags. */
async function pair(
  { tx, at, contacts, firstMade, done }: Pairing,
  kind: PairKind,
  rows: readonly ImportedContact[],
  targetsOf: (row: ImportedContact) => readonly Target[],
): Promise<void> {
  const members = new Map<number, { readonly target: Target; readonly contacts: Map<number, Contact> }>()
  for (const row of rows) {
    const contact = contacts.get(row.email)
    for (const target of contact ? targetsOf(row) : []) {
      const of = members.get(target.seq) ?? { target, contacts: new Map<number, Contact>() }
      members.set(target.seq, of)
      if (contact) of.contacts.set(contact.seq, contact)
    }
  }
  for (const { target, contacts: bySeq } of members.values()) {
    const made = [...bySeq.keys()].filter(seq => seq >= firstMade)
    const known = [...bySeq.keys()].filter(seq => seq < firstMade)
    await addPairsOfNew(tx.db, kind, target.seq, made, at)
    const added = await addPairs(tx.db, kind, target.seq, known, at)
    for (const seq of [...made, ...added]) {
      const contact = bySeq.get(seq)
      if (contact) done.added(contact, kind === LIST_MEMBERS ? 'lists' : 'tags', target)
    }
  }
}
