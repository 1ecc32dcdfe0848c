/**
 * Creates, changes and deletes contacts: rows, counts and events in one transaction.
 *
 * Called by routes, forms and other writers. Each effective change appends one event; a write that changes nothing appends none. A new
 * contact with a suppressed address starts unsubscribed, whatever was requested. `subscribed: true` revokes an unsubscribe. Under any other
 * suppression `changeContact` refuses it; create and upsert return the contact unsubscribed. Values of declared attributes are converted.
 * Fails: AppError validation_error, contact_not_found, duplicate, not_found, conflict.
 */
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import { normalizedAddress } from '../../mail/address.js'
import type { Queries, Tx } from '../../db/database.js'
import {
  deleteUnsubscribe,
  domainEntry,
  findSuppressionsOf,
  type AddressSuppressions,
} from '../../deliverability/suppressions/suppression-store.js'
import { appendEvents } from '../../events/store.js'
import type { Acting, AudienceParts } from '../audience-parts.js'
import { findDeclaredTypes } from '../attributes/attribute-store.js'
import { convertDeclared } from '../attributes/declared-values.js'
import { applyCounts, CountChange, findAudience } from '../audience-store.js'
import { mergeWithinBounds } from '../checks.js'
import type { List } from '../lists/list-store.js'
import { changeSome, findStaticList } from '../lists/lists.js'
import { addPairs, deletePairsOf, LIST_MEMBERS, recount } from '../pair-store.js'
import { ensureTags, tagSome } from '../tags/tags.js'
import type { Contact, ContactFields } from './contact.js'
import {
  isChanged,
  contactUpdatedEvents,
  contactDeletedEvent,
  listMemberEvent,
  contactEvent,
} from './contact-events.js'
import { deleteContactRows, findContactsByEmail, findContactsById } from './contact-store.js'
import { insertContacts, updateContacts, type ContactChange } from './contact-write-store.js'
import { mailStatusUnder, holderOf, NOT_BOUNCED, subscriptionUnder } from './standing.js'
import { mergeAttributes } from './compared-attributes.js'

/** Fields to set; others keep their value, or get the default of a new contact. */
export type ContactPatch = Partial<ContactFields>

export type NewContactPatch = ContactPatch & Pick<ContactFields, 'email'>

type Parts = Pick<AudienceParts, 'clock' | 'newId' | 'onEvents'>

/** @param by id, or address in any spelling */
export async function findContact(
  db: Queries,
  workspaceId: string,
  by: { readonly id: string } | { readonly email: string },
): Promise<Contact | undefined> {
  const audience = await findAudience(db, workspaceId)
  if (!audience || ('id' in by && !isUuid(by.id))) return undefined
  const [found] =
    'id' in by
      ? await findContactsById(db, audience.number, [by.id.toLowerCase()])
      : await findContactsByEmail(db, audience.number, [normalizedAddress(by.email)])
  return found
}

/** @throws AppError contact_not_found */
export async function requireContact(db: Queries, workspaceId: string, id: string): Promise<Contact> {
  const contact = await findContact(db, workspaceId, { id })
  if (!contact) throw noSuchContact()
  return contact
}

export function noSuchContact(): AppError {
  return new AppError('contact_not_found', 'no such contact')
}

/** @param listId static list to add the contact to @throws AppError duplicate, not_found, conflict */
export async function createContact(
  parts: Parts,
  tx: Tx,
  acting: Acting,
  fields: NewContactPatch,
  listId?: string,
): Promise<Contact> {
  const { workspaceId } = acting
  const [converted = fields] = await withDeclaredTypes(tx.db, workspaceId, [fields])
  const list = listId === undefined ? undefined : await findStaticList(tx.db, workspaceId, listId, 'list_id')
  if (await findContact(tx.db, workspaceId, { email: fields.email }))
    throw new AppError('duplicate', `a contact with the address ${fields.email} already exists`, {
      path: 'email',
    })
  const standings = await standingsOf(tx.db, workspaceId, [fields])
  const [contact] = await insertSome(parts, tx, acting, [converted], standings)
  if (!contact) throw new Error('contact was not created')
  if (list) {
    const { createdAt: at } = contact
    await addPairs(tx.db, LIST_MEMBERS, list.seq, [contact.seq], at)
    await appendEvents(tx, [listMemberEvent('list.member_added', acting, list, contact, at)])
  }
  return contact
}

async function withDeclaredTypes<Patch extends ContactPatch>(
  db: Queries,
  workspaceId: string,
  patches: readonly Patch[],
): Promise<readonly Patch[]> {
  if (patches.every(({ attributes = {} }) => Object.keys(attributes).length === 0)) return patches
  const types = await findDeclaredTypes(db, workspaceId)
  if (types.size === 0) return patches
  return patches.map(patch =>
    patch.attributes ? { ...patch, attributes: convertDeclared(types, patch.attributes) } : patch,
  )
}

/** Inserts contacts whose addresses are new, and appends their events. */
async function insertSome(
  { newId, clock, onEvents }: Parts,
  tx: Tx,
  acting: Acting,
  all: readonly NewContactPatch[],
  standings: Standings,
): Promise<readonly Contact[]> {
  if (all.length === 0) return []
  const { workspaceId } = acting
  const at = clock.now()
  const inserted = await insertContacts(
    tx.db,
    workspaceId,
    all.map(({ email, firstName = null, lastName = null, attributes = {}, subscribed }) => ({
      id: newId(),
      email,
      firstName,
      lastName,
      attributes: mergeAttributes({}, attributes),
      ...subscriptionUnder({ subscribed: subscribed ?? true, suspended: false }, standings.get(email)),
      createdAt: at,
    })),
  )
  const contacts = inserted.map(before => {
    const after = { ...before, ...mailStatusUnder(before, standings.get(before.email)) }
    return after.bounced ? after : before
  })
  const bounced = contacts.flatMap((after, index) => {
    const before = inserted[index]
    return before && after !== before ? [{ before, after }] : []
  })
  const audience = bounced.length === 0 ? undefined : await findAudience(tx.db, workspaceId)
  if (audience) await updateContacts(tx.db, audience.number, bounced)
  await appendEvents(
    tx,
    contacts.map(contact => contactEvent('contact.created', acting, contact, at)),
  )
  tx.onCommit(onEvents)
  return contacts
}

/** Suppressions by address. */
type Standings = ReadonlyMap<string, AddressSuppressions>

/** `subscribed: true` revokes an unsubscribe; other suppressions stay. */
async function standingsOf(
  db: Queries,
  workspaceId: string,
  asked: readonly Pick<NewContactPatch, 'email' | 'subscribed'>[],
): Promise<Standings> {
  if (asked.length === 0) return new Map()
  const find = () =>
    findSuppressionsOf(
      db,
      workspaceId,
      asked.map(({ email }) => email),
    )
  const standings = await find()
  let isRevoked = false
  for (const { email, subscribed } of asked)
    if (subscribed === true && standings.get(email)?.own?.reason === 'unsubscribe')
      isRevoked = (await deleteUnsubscribe(db, workspaceId, email)) || isRevoked
  return isRevoked ? find() : standings
}

/** @throws AppError contact_not_found, duplicate */
export async function changeContact(
  parts: Parts,
  tx: Tx,
  acting: Acting,
  id: string,
  patch: ContactPatch,
): Promise<Contact> {
  const before = await requireContact(tx.db, acting.workspaceId, id)
  const [converted = patch] = await withDeclaredTypes(tx.db, acting.workspaceId, [patch])
  const after = await patchContact(parts, tx, acting, before, converted)
  if (patch.subscribed === true && !after.subscribed) throw await stillSuppressed(tx.db, acting, after.email)
  return after
}

async function stillSuppressed(db: Queries, { workspaceId }: Acting, email: string): Promise<AppError> {
  const standing = (await findSuppressionsOf(db, workspaceId, [email])).get(email)
  const entry = standing?.own && standing.own.reason !== 'hard_bounce' ? email : domainEntry(email)
  const why = `${email} is suppressed (${holderOf(standing) ?? 'unknown'})`
  return new AppError('conflict', `${why}; remove the suppression of ${entry} first`, { path: 'subscribed' })
}

/** Lists and tags to add; an upsert never removes any. */
export interface Additions {
  /** Static lists. */
  readonly listIds?: readonly string[]
  /** Names; missing tags are created. */
  readonly tags?: readonly string[]
}

export interface Upserted {
  readonly contact: Contact
  readonly result: 'created' | 'updated' | 'unchanged'
}

export interface Upsert {
  readonly fields: NewContactPatch
  readonly additions?: Additions
}

/**
 * Creates or updates the contact with this address.
 *
 * @throws AppError validation_error; not_found, conflict for a list; limit_reached for tags. Nothing is changed then
 */
export async function upsertContact(
  parts: Parts,
  tx: Tx,
  acting: Acting,
  fields: NewContactPatch,
  additions?: Additions,
): Promise<Upserted> {
  const [upserted] = await upsertContacts(parts, tx, acting, [{ fields, ...given({ additions }) }])
  if (!upserted) throw new Error('contact was not upserted')
  return upserted
}

/**
 * The same for several contacts with different addresses, all or nothing. @throws AppError as for one
 *
 * @returns in the order of `upserts`
 */
export async function upsertContacts(
  parts: Parts,
  tx: Tx,
  acting: Acting,
  upserts: readonly Upsert[],
): Promise<Upserted[]> {
  const { workspaceId } = acting
  const lists = await findLists(tx.db, workspaceId, upserts)
  const audience = await findAudience(tx.db, workspaceId)
  const declared = await withDeclaredTypes(
    tx.db,
    workspaceId,
    upserts.map(one => one.fields),
  )
  const fields = declared.map(one => ({ ...one, email: normalizedAddress(one.email) }))
  const emails = fields.map(({ email }) => email)
  const known = audience ? await findContactsByEmail(tx.db, audience.number, emails) : []
  const before = new Map(known.map(contact => [contact.email, contact]))
  const isJudged = ({ email, subscribed }: NewContactPatch) => !before.has(email) || subscribed !== undefined
  const standings = await standingsOf(tx.db, workspaceId, fields.filter(isJudged))
  const created = await insertSome(
    parts,
    tx,
    acting,
    fields.filter(({ email }) => !before.has(email)),
    standings,
  )
  const changes = fields.flatMap(patch => {
    const contact = before.get(patch.email)
    return contact ? [{ before: contact, after: patched(parts, contact, patch, standings) }] : []
  })
  if (audience) await changeContacts(tx, acting, audience.number, changes)
  if (changes.some(({ before, after }) => before !== after)) tx.onCommit(parts.onEvents)
  const contacts = new Map(
    [...created, ...changes.map(({ after }) => after)].map(contact => [contact.email, contact]),
  )
  const those = (isMeant: (additions: Additions) => boolean) =>
    upserts.flatMap(({ additions = {} }, at) => {
      const contact = contacts.get(emails[at] ?? '')
      return contact && isMeant(additions) ? [contact] : []
    })
  const added = new Set<number>()
  for (const [id, list] of lists) {
    const joining = those(({ listIds = [] }) => listIds.includes(id))
    for (const seq of await changeSome(parts, tx, acting, list, joining, 'added')) added.add(seq)
  }
  const names = upserts.flatMap(({ additions: { tags = [] } = {} }) => tags)
  if (names.length > 0) {
    const tagOf = await ensureTags(tx, acting, names, { at: parts.clock.now(), newId: parts.newId })
    for (const tag of new Map(names.map(name => [tagOf(name).seq, tagOf(name)])).values()) {
      const tagged = those(({ tags = [] }) => tags.some(name => tagOf(name).seq === tag.seq))
      for (const seq of await tagSome(parts, tx, acting, tag, tagged, 'added')) added.add(seq)
    }
  }
  return emails.map(email => {
    const contact = contacts.get(email)
    if (!contact) throw new Error('contact was not upserted')
    const old = before.get(email)
    if (!old) return { contact, result: 'created' }
    return { contact, result: contact === old && !added.has(contact.seq) ? 'unchanged' : 'updated' }
  })
}

/** Each list once, in the order of their first mention. */
async function findLists(
  db: Queries,
  workspaceId: string,
  upserts: readonly Upsert[],
): Promise<ReadonlyMap<string, List>> {
  const lists = new Map<string, List>()
  for (const { additions: { listIds = [] } = {} } of upserts)
    for (const [at, id] of listIds.entries())
      if (!lists.has(id)) lists.set(id, await findStaticList(db, workspaceId, id, `list_ids.${at}`))
  return lists
}

async function patchContact(
  parts: Parts,
  tx: Tx,
  acting: Acting,
  before: Contact,
  patch: ContactPatch,
): Promise<Contact> {
  const { workspaceId } = acting
  const email = patch.email ?? before.email
  const isJudged = email !== before.email || patch.subscribed !== undefined
  const asked = { ...(patch.subscribed === undefined ? {} : { subscribed: patch.subscribed }), email }
  const standings = await standingsOf(tx.db, workspaceId, isJudged ? [asked] : [])
  const after = patched(parts, before, patch, standings)
  if (after === before) return before
  const audience = await findAudience(tx.db, workspaceId)
  if (!audience) throw noSuchContact()
  if (after.email !== before.email) await requireFree(tx.db, audience.number, after.email)
  await changeContacts(tx, acting, audience.number, [{ before, after }])
  tx.onCommit(parts.onEvents)
  return after
}

/** @returns `before` itself if nothing changes */
function patched(
  { clock }: Parts,
  before: Contact,
  { attributes, ...patch }: ContactPatch,
  standings: Standings,
): Contact {
  const isMoved = patch.email !== undefined && patch.email !== before.email
  const wanted = {
    ...before,
    ...(patch.subscribed === undefined ? {} : { subscribed: patch.subscribed, suspended: false }),
    // A bounce belongs to the old address.
    ...(isMoved ? NOT_BOUNCED : {}),
  }
  const standing = standings.get(patch.email ?? before.email)
  const fate = isMoved
    ? mailStatusUnder(wanted, standing)
    : patch.subscribed === undefined
      ? {}
      : subscriptionUnder(wanted, standing)
  const after: Contact = {
    ...before,
    ...patch,
    ...fate,
    attributes: attributes ? mergeWithinBounds(before.attributes, attributes) : before.attributes,
    updatedAt: clock.now(),
  }
  return isChanged(before, after) ? after : before
}

/** Writes the contacts that changed, and appends their events. */
export async function changeContacts(
  tx: Tx,
  acting: Acting,
  audience: number,
  changes: readonly ContactChange[],
): Promise<void> {
  const real = changes.filter(({ before, after }) => isChanged(before, after))
  await updateContacts(tx.db, audience, real)
  await appendEvents(
    tx,
    real.flatMap(({ before, after }) => contactUpdatedEvents(acting, before, after)),
  )
}

async function requireFree(db: Queries, audience: number, email: string): Promise<void> {
  if ((await findContactsByEmail(db, audience, [email])).length > 0)
    throw new AppError('duplicate', `a contact with the address ${email} already exists`, { path: 'email' })
}

/** Permanently, with their memberships. Messages, purchases and suppressions are kept. */
export async function removeContacts(
  { clock, onEvents }: Parts,
  tx: Tx,
  acting: Acting,
  contacts: readonly Contact[],
): Promise<void> {
  const audience = await findAudience(tx.db, acting.workspaceId)
  if (!audience || contacts.length === 0) return
  const seqs = contacts.map(({ seq }) => seq)
  const change = new CountChange()
  for (const contact of contacts) change.remove(contact)
  await recount(tx.db, seqs, -1)
  await deletePairsOf(tx.db, seqs)
  await deleteContactRows(tx.db, seqs)
  await applyCounts(tx.db, audience.number, change)
  const at = clock.now()
  await appendEvents(
    tx,
    contacts.map(contact => contactDeletedEvent(acting, contact, false, at)),
  )
  tx.onCommit(onEvents)
}
