/** What the commands about audiences share: their parts, and contacts named by id or address. */
import type { Appliance } from '../../appliance/appliance.js'
import type { Acting, AudienceParts } from '../../audience/audience-parts.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { findContact, noSuchContact } from '../../audience/contacts/contacts.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'

/** A server beside us sees by itself that the event log has grown. */
export function audienceParts({ database, world, newId }: Appliance): AudienceParts {
  return { database, clock: world.clock, newId, onEvents: () => {} }
}

export function actingFor(workspaceId: string): Acting {
  return { workspaceId, isSandbox: false, source: 'api' }
}

/** @param named by id or address @throws AppError contact_not_found */
export async function mustFindContact(db: Queries, workspaceId: string, named: string): Promise<Contact> {
  const contact = await findContact(db, workspaceId, isUuid(named) ? { id: named } : { email: named })
  if (!contact) throw noSuchContact()
  return contact
}
