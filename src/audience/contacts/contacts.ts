/**
 * Creates, changes and deletes contacts: rows, counts and events in one transaction.
 *
 * Called by routes, forms and other writers. Each effective change appends one event; a write that changes nothing appends none. A new
 * contact with a suppressed address starts unsubscribed, whatever was requested. `subscribed: true` revokes an unsubscribe. Under any other
 * suppression `changeContact` refuses it; create and upsert return the contact unsubscribed.
 * Fails: AppError validation_error, contact_not_found, duplicate, not_found, conflict.
 */
import { AppError } from '../../core/errors.js'
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
import { applyCounts, CountChange, findAudience } from '../audience-store.js'
import { mergeWithinBounds } from '../checks.js'
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
import { insertContacts, updateContact, updateContacts, type ContactChange } from './contact-write-store.js'
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
  const list = listId === undefined ? undefined : await findStaticList(tx.db, workspaceId, listId, 'list_id')
  if (await findContact(tx.db, workspaceId, { email: fields.email }))
    throw new AppError('duplicate', `a contact with the address ${fields.email} already exists`, {
      path: 'email',
    })
  const contact = await insertOne(parts, tx, acting, fields)
  const { createdAt: at } = contact
  const events = [contactEvent('contact.created', acting, contact, at)]
  if (list) {
    await addPairs(tx.db, LIST_MEMBERS, list.seq, [contact.seq], at)
    events.push(listMemberEvent('list.member_added', acting, list, contact, at))
  }
  await appendEvents(tx, events)
  tx.onCommit(parts.onEvents)
  return contact
}

async function insertOne(
  { newId, clock }: Parts,
  tx: Tx,
  { workspaceId }: Acting,
  { email, firstName = null, lastName = null, attributes = {}, subscribed }: NewContactPatch,
): Promise<Contact> {
  const standing = await standingOf(tx.db, workspaceId, email, subscribed === true)
  const wanted = { subscribed: subscribed ?? true, suspended: false }
  const [contact] = await insertContacts(tx.db, workspaceId, [
    {
      id: newId(),
      email,
      firstName,
      lastName,
      attributes: mergeAttributes({}, attributes),
      ...subscriptionUnder(wanted, standing),
      createdAt: clock.now(),
    },
  ])
  if (!contact) throw new Error('contact was not created')
  const after = { ...contact, ...mailStatusUnder(contact, standing) }
  if (!after.bounced) return contact
  const audience = await findAudience(tx.db, workspaceId)
  if (audience) await updateContact(tx.db, audience.number, contact, after)
  return after
}

/** @param wantsMail true revokes an unsubscribe; other suppressions stay */
async function standingOf(
  db: Queries,
  workspaceId: string,
  email: string,
  wantsMail: boolean,
): Promise<AddressSuppressions | undefined> {
  const find = async () => (await findSuppressionsOf(db, workspaceId, [email])).get(email)
  const standing = await find()
  if (!wantsMail || standing?.own?.reason !== 'unsubscribe') return standing
  return (await deleteUnsubscribe(db, workspaceId, email)) ? find() : standing
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
  const after = await patchContact(parts, tx, acting, before, patch)
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
  { listIds = [], tags = [] }: Additions = {},
): Promise<Upserted> {
  const { workspaceId } = acting
  const lists = []
  for (const [at, id] of listIds.entries())
    lists.push(await findStaticList(tx.db, workspaceId, id, `list_ids.${at}`))
  const before = await findContact(tx.db, workspaceId, { email: fields.email })
  const contact = before
    ? await patchContact(parts, tx, acting, before, fields)
    : await createContact(parts, tx, acting, fields)
  let added = 0
  for (const list of lists) added += await changeSome(parts, tx, acting, list, [contact], 'added')
  const tagOf =
    tags.length === 0
      ? undefined
      : await ensureTags(tx, acting, tags, { at: parts.clock.now(), newId: parts.newId })
  if (tagOf)
    for (const tag of new Set(tags.map(tagOf)))
      added += await tagSome(parts, tx, acting, tag, [contact], 'added')
  if (!before) return { contact, result: 'created' }
  return { contact, result: contact === before && added === 0 ? 'unchanged' : 'updated' }
}

async function patchContact(
  { clock, onEvents }: Parts,
  tx: Tx,
  acting: Acting,
  before: Contact,
  { attributes, ...patch }: ContactPatch,
): Promise<Contact> {
  const { workspaceId } = acting
  const isMoved = patch.email !== undefined && patch.email !== before.email
  const isJudged = isMoved || patch.subscribed !== undefined
  const wanted = {
    ...before,
    ...(patch.subscribed === undefined ? {} : { subscribed: patch.subscribed, suspended: false }),
    // A bounce belongs to the old address.
    ...(isMoved ? NOT_BOUNCED : {}),
  }
  const standing = isJudged
    ? await standingOf(tx.db, workspaceId, patch.email ?? before.email, patch.subscribed === true)
    : undefined
  const fate = !isJudged
    ? {}
    : isMoved
      ? mailStatusUnder(wanted, standing)
      : subscriptionUnder(wanted, standing)
  const after: Contact = {
    ...before,
    ...patch,
    ...fate,
    attributes: attributes ? mergeWithinBounds(before.attributes, attributes) : before.attributes,
    updatedAt: clock.now(),
  }
  if (!isChanged(before, after)) return before
  const audience = await findAudience(tx.db, workspaceId)
  if (!audience) throw noSuchContact()
  if (after.email !== before.email) await requireFree(tx.db, audience.number, after.email)
  await updateContact(tx.db, audience.number, before, after)
  await appendEvents(tx, contactUpdatedEvents(acting, before, after))
  tx.onCommit(onEvents)
  return after
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
