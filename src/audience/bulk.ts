/**
 * Works on many contacts piece by piece, each piece a transaction of a few milliseconds, so that nobody else waits long.
 *
 * A piece that is done stays done when a later one fails; asked again, the whole does what is left.
 */
import { isUuid } from '../core/ids.js'
import type { Tx } from '../db/database.js'
import { PIECE, type AudienceParts } from './audience-parts.js'
import { findAudience } from './audience-store.js'
import type { Contact } from './contacts/contact.js'
import { findContactsById } from './contacts/contact-store.js'

export interface BulkResult {
  /** Contacts for which something changed. */
  readonly done: number
  /** For which it was so already. */
  readonly skipped: number
  /** Ids that name no contact. */
  readonly notFound: number
}

/**
 * @param ids as requests give them; one that comes twice counts once
 * @param work on the contacts of one piece, in their order; returns for how many something changed
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
