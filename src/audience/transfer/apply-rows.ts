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
import type { AnyEvent } from '../../events/event.js'
import { appendEvents } from '../../events/store.js'
import type { Acting } from '../audience-parts.js'
import { findAudience } from '../audience-store.js'
import { isWithinBounds } from '../checks.js'
import type { Attributes, Contact, Named, NewContact } from '../contacts/contact.js'
import { isChanged, toldChanged, toldMember, toldOf, toldTag } from '../contacts/contact-events.js'
import { followSuppressions } from '../contacts/follow-suppressions.js'
import { findContactsByEmail } from '../contacts/contact-store.js'
import { insertContacts, updateContacts, type ContactChange } from '../contacts/contact-write-store.js'
import { fateUnder, subscriptionUnder } from '../contacts/standing.js'
import { mergeAttributes } from '../contacts/compared-attributes.js'
import { ensureLists } from '../lists/ensure-lists.js'
import type { NamedList } from '../lists/list-store.js'
import { findStaticList } from '../lists/static-list.js'
import { addPairs, addPairsOfNew, CONTACT_TAGS, LIST_MEMBERS, type PairKind } from '../pair-store.js'
import { ensureTags } from '../tags/ensure-tags.js'
import type { Import, ImportCounts } from './import.js'
import type { ImportedContact } from './reading/read-row.js'

export type RowCounts = Pick<ImportCounts, 'created' | 'updated' | 'unchanged'>

interface Doing {
  readonly tx: Tx
  readonly acting: Acting
  readonly at: number
  readonly newId: NewId
}

/** Input for adding contacts to lists and tags. */
interface Pairing extends Doing {
  /** All contacts of the rows, by address. */
  readonly contacts: ReadonlyMap<string, Contact>
  /** Contacts changed by a list or tag. */
  readonly touched: Set<Contact>
  /** Contacts from this number on were created here and have no lists or tags yet. */
  readonly firstMade: number
}

export interface Applied {
  readonly counts: RowCounts
  /** Rows rejected entirely because the contact's attributes would exceed their limits. */
  readonly refused: readonly ImportedContact[]
}

/** @param rows with distinct addresses @throws AppError not_found, conflict if the list no longer accepts members */
export async function applyRows(
  tx: Tx,
  { workspaceId, isSandbox, options }: Pick<Import, 'workspaceId' | 'isSandbox' | 'options'>,
  said: readonly ImportedContact[],
  { at, newId }: Pick<Doing, 'at' | 'newId'>,
): Promise<Applied> {
  if (said.length === 0) return { counts: { created: 0, updated: 0, unchanged: 0 }, refused: [] }
  const doing: Doing = { tx, at, newId, acting: { workspaceId, isSandbox, source: 'import' } }
  // First, so that contacts written below respect these suppressions.
  const suppressed = await suppressSaid(doing, said)
  if (!options.makesContacts) return { counts: suppressed, refused: [] }
  const known = await findKnown(doing, said)
  const { changes, refused } = changesBy(said, known, at)
  for (const { email } of refused) known.delete(email)
  const rows = refused.length === 0 ? said : said.filter(row => !refused.includes(row))
  const made = await makeContacts(
    doing,
    rows.filter(({ email }) => !known.has(email)),
  )
  const audience = await findAudience(tx.db, workspaceId)
  if (audience) await updateContacts(tx.db, audience.number, changes)
  const contacts = new Map([...known, ...byEmail(made), ...byEmail(changes.map(({ after }) => after))])
  const touched = new Set<Contact>([...made, ...changes.map(({ after }) => after)])
  const pairing: Pairing = { ...doing, contacts, touched, firstMade: made[0]?.seq ?? Infinity }
  const events = [
    ...made.map(contact => toldOf('contact.created', doing.acting, contact, at)),
    ...changes.flatMap(({ before, after }) => toldChanged(doing.acting, before, after)),
    ...(await putIntoList(pairing, options.listId)),
    ...(await putIntoNamedLists(pairing, rows)),
    ...(await tagAll(pairing, options.tags, rows)),
  ]
  await appendEvents(tx, events)
  const counts = {
    created: made.length,
    updated: touched.size - made.length,
    unchanged: rows.length - touched.size,
  }
  return { counts, refused }
}

function byEmail(contacts: readonly Contact[]): [string, Contact][] {
  return contacts.map(contact => [contact.email, contact])
}

async function findKnown(
  { tx, acting }: Doing,
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
  { tx, acting, at, newId }: Doing,
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
    const after = { ...before, ...fateUnder(before, standings.get(before.email)) }
    if (after.bounced) bounced.set(before.seq, { before, after })
  }
  if (bounced.size === 0) return made
  const audience = await findAudience(tx.db, acting.workspaceId)
  if (audience) await updateContacts(tx.db, audience.number, [...bounced.values()])
  return made.map(contact => bounced.get(contact.seq)?.after ?? contact)
}

/** Updates of existing contacts, and rows that would exceed a contact's limits. */
function changesBy(
  rows: readonly ImportedContact[],
  known: ReadonlyMap<string, Contact>,
  at: number,
): { readonly changes: readonly ContactChange[]; readonly refused: readonly ImportedContact[] } {
  const [changes, refused]: [ContactChange[], ImportedContact[]] = [[], []]
  for (const row of rows) {
    const before = known.get(row.email)
    if (!before) continue
    const attributes = attributesBy(row, before)
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
  { attributes: said }: ImportedContact,
  { attributes }: Contact,
): Attributes | undefined {
  const more = said ? sayingMore(attributes, said) : {}
  if (Object.keys(more).length === 0) return attributes
  return isWithinBounds(attributes, more) ? mergeAttributes(attributes, more) : undefined
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

/** Drops values equal to the existing ones: in a file, the number 5 is the text "5". */
function sayingMore(before: Attributes, said: Attributes): Attributes {
  return Object.fromEntries(
    Object.entries(said).filter(
      ([name, value]) => !Object.hasOwn(before, name) || attributeText(before[name]) !== attributeText(value),
    ),
  )
}

/** An attribute's value as a CSV cell. */
export function attributeText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

async function putIntoList(pairing: Pairing, listId: string | null): Promise<AnyEvent[]> {
  if (listId === null) return []
  const { tx, acting, at, contacts } = pairing
  const list = await findStaticList(tx.db, acting.workspaceId, listId, 'list_id')
  const bySeq = new Map([...contacts.values()].map(contact => [contact.seq, contact]))
  return pair(pairing, LIST_MEMBERS, list.seq, bySeq, contact =>
    toldMember('list.member_added', acting, list, contact, at),
  )
}

/** Suppresses addresses where rows ask for it. @returns number added, widened and unchanged */
async function suppressSaid({ tx, acting, at }: Doing, rows: readonly ImportedContact[]): Promise<RowCounts> {
  const counts: Record<SuppressResult, number> = { added: 0, widened: 0, known: 0 }
  const changed: Suppression[] = []
  for (const { email, suppress: reason } of rows) {
    if (reason === null) continue
    const suppression: Suppression = {
      ...{ workspaceId: acting.workspaceId, email, reason },
      scope: reason === 'unsubscribe' ? 'marketing' : 'all',
      ...{ sourceMessageId: null, createdAt: at },
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

async function putIntoNamedLists(pairing: Pairing, rows: readonly ImportedContact[]): Promise<AnyEvent[]> {
  const named = rows.flatMap(({ lists }) => lists)
  if (named.length === 0) return []
  const { tx, acting, at, newId, contacts } = pairing
  const lists = await ensureLists(tx, acting, named, { at, newId })
  const members = new Map<NamedList, Map<number, Contact>>()
  for (const row of rows)
    for (const name of row.lists) {
      const [list, contact] = [lists(name), contacts.get(row.email)]
      if (!contact) continue
      const ofList = members.get(list) ?? new Map<number, Contact>()
      members.set(list, ofList.set(contact.seq, contact))
    }
  const events: AnyEvent[] = []
  for (const [list, bySeq] of members) {
    const told = await pair(pairing, LIST_MEMBERS, list.seq, bySeq, contact =>
      toldMember('list.member_added', acting, list, contact, at),
    )
    for (const event of told) events.push(event)
  }
  return events
}

async function tagAll(
  pairing: Pairing,
  usual: readonly string[],
  rows: readonly ImportedContact[],
): Promise<AnyEvent[]> {
  const { tx, acting, at, newId, contacts } = pairing
  const named = [...usual, ...rows.flatMap(({ tags }) => tags)]
  if (named.length === 0) return []
  const tags = await ensureTags(tx, acting, named, { at, newId })
  const tagged = new Map<Named & { readonly seq: number }, Map<number, Contact>>()
  for (const row of rows)
    for (const name of [...usual, ...row.tags]) {
      const [tag, contact] = [tags(name), contacts.get(row.email)]
      if (!contact) continue
      const ofTag = tagged.get(tag) ?? new Map<number, Contact>()
      tagged.set(tag, ofTag.set(contact.seq, contact))
    }
  const events: AnyEvent[] = []
  for (const [tag, bySeq] of tagged) {
    const told = await pair(pairing, CONTACT_TAGS, tag.seq, bySeq, contact =>
      toldTag('tag.added', acting, tag, contact, at),
    )
    for (const event of told) events.push(event)
  }
  return events
}

/** Adds contacts to a list or tag. @returns events of those added */
async function pair(
  { tx, at, firstMade, touched }: Pairing,
  kind: PairKind,
  thingSeq: number,
  contacts: ReadonlyMap<number, Contact>,
  tell: (contact: Contact) => AnyEvent,
): Promise<AnyEvent[]> {
  const seqs = [...contacts.keys()]
  const made = seqs.filter(seq => seq >= firstMade)
  const known = seqs.filter(seq => seq < firstMade)
  await addPairsOfNew(tx.db, kind, thingSeq, made, at)
  const added = await addPairs(tx.db, kind, thingSeq, known, at)
  return [...made, ...added].flatMap(seq => {
    const contact = contacts.get(seq)
    if (!contact) return []
    touched.add(contact)
    return tell(contact)
  })
}
