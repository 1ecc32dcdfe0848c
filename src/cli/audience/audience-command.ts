/** Shared by the audience commands: their parts, and finding a contact by id or address. */
import type { Appliance } from '../../appliance/appliance.js'
import type { Acting, AudienceParts } from '../../audience/audience-parts.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { findContact, noSuchContact } from '../../audience/contacts/contacts.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'

/** A running server notices new events in the log without being woken. */
export function audienceParts({ database, world, newId }: Appliance): AudienceParts {
  return { database, clock: world.clock, newId, onEvents: () => {} }
}

export function actingFor(workspaceId: string): Acting {
  return { workspaceId, isSandbox: false, source: 'api' }
}

/** @param named id or address @throws AppError contact_not_found */
export async function mustFindContact(db: Queries, workspaceId: string, named: string): Promise<Contact> {
  const contact = await findContact(db, workspaceId, isUuid(named) ? { id: named } : { email: named })
  if (!contact) throw noSuchContact()
  return contact
}
