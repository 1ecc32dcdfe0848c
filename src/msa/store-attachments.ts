/**
 * Writes the octets of large attachments before their message is accepted, in transactions of their own, so that others' writes
 * get between and none of them takes long. What is left behind by a crash is cleared at the next start.
 *
 * Called by the REST sends around the transaction that accepts. Fails: as the database does; nothing then stays behind.
 */
import type { Database } from '../db/database.js'
import { PART_OCTETS } from '../mail/message-spool.js'
import { deleteParts, insertPart } from '../messages/content-store.js'
import type { Submission } from './mail-submission.js'

/** Stores all but the first part of each, then does the work that accepts them; what it refuses is deleted again. */
export async function withAttachmentsStored<T>(
  database: Database,
  submissions: readonly Pick<Submission, 'content' | 'attached'>[],
  accept: () => Promise<T>,
): Promise<T> {
  const long = submissions.filter(({ attached }) => attached !== undefined && attached.length > PART_OCTETS)
  if (long.length === 0) return accept()
  try {
    for (const { content, attached } of long) await storeLaterParts(database, content.id, attached)
    return await accept()
  } catch (error) {
    for (const { content } of long)
      await database.write(tx => deleteParts(tx.db, content.id), { canWait: true }).catch(() => {})
    throw error
  }
}

async function storeLaterParts(database: Database, contentId: string, octets?: Buffer): Promise<void> {
  if (!octets) return
  for (let part = 2; (part - 1) * PART_OCTETS < octets.length; part += 1) {
    const piece = octets.subarray((part - 1) * PART_OCTETS, part * PART_OCTETS)
    await database.write(tx => insertPart(tx.db, contentId, part, piece))
  }
}
