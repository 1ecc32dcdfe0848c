/**
 * Bulk operations on contacts, split into transactions of a few milliseconds so that other writers are not delayed.
 *
 * Completed pieces stay committed if a later one fails; repeating the request completes the rest.
 */
import { isUuid } from '../core/ids.js'
import type { Tx } from '../db/database.js'
import { PIECE, type AudienceParts } from './audience-parts.js'
import { findAudience } from './audience-store.js'
import type { Contact } from './contacts/contact.js'
import { findContactsById } from './contacts/contact-store.js'

export interface BulkResult {
  /** Contacts changed. */
  readonly done: number
  /** Contacts already in the requested state. */
  readonly skipped: number
  /** Ids that match no contact. */
  readonly notFound: number
}

/**
 * @param ids as in the request; repetitions are ignored
 * @param work handles one piece, in order; returns how many contacts changed
 */
export async function forContacts(
  { database }: Pick<AudienceParts, 'database'>,
  workspaceId: string,
  ids: readonly string[],
  work: (tx: Tx, contacts: readonly Contact[]) => Promise<number>,
): Promise<BulkResult> {
  const unique = [...new Set(ids.map(id => id.toLowerCase()))]
  let [done, found] = [0, 0]
  for (let start = 0; start < unique.length; start += PIECE) {
    const piece = unique.slice(start, start + PIECE).filter(isUuid)
    if (piece.length === 0) continue
    const result = await database.write(
      async tx => {
        const audience = await findAudience(tx.db, workspaceId)
        const contacts = audience ? await findContactsById(tx.db, audience.number, piece) : []
        return { found: contacts.length, done: contacts.length === 0 ? 0 : await work(tx, contacts) }
      },
      { isLong: unique.length > PIECE },
    )
    found += result.found
    done += result.done
  }
  return { done, skipped: found - done, notFound: unique.length - found }
}
