/**
 * What each message of a content is filled from: its contact, and data of its own.
 *
 * Called when the delivery begins and when a mail is shown again in a browser. Contacts are read as they are now: a mail that has
 * waited does not call anybody what they were called before. Fails: as the database does.
 */
import { findContactsOf } from '../../audience/contacts/contact-store.js'
import type { Contact } from '../../audience/contacts/contact.js'
import type { MergeContact } from '../../content/merge/merge-values.js'
import type { OwnValues } from '../../content/rendering/merging.js'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { findMergeSources } from '../../messages/message-store.js'

/** @returns by message; a message whose address is no contact's has no contact */
export async function findOwnValues(
  db: Queries,
  messageIds: readonly string[],
): Promise<ReadonlyMap<string, OwnValues>> {
  if (messageIds.length === 0) return new Map()
  const sources = await findMergeSources(db, messageIds)
  const contacts = await findContactsOf(
    db,
    [...sources.values()].flatMap(({ contactId }) => contactId ?? []),
  )
  return new Map(
    [...sources].map(([id, { contactId, mergeData: data }]) => [
      id,
      given({ contact: toMergeContact(contacts.get(contactId ?? '')), data }),
    ]),
  )
}

function toMergeContact(contact: Contact | undefined): MergeContact | undefined {
  if (!contact) return undefined
  const { email, firstName, lastName, attributes } = contact
  return { email, firstName, lastName, attributes }
}
