/**
 * Writes what is long of a message before the message is accepted, in transactions of their own, so that others' writes get
 * between and none of them takes long. What is left behind by a crash is cleared at the next start.
 *
 * Called by `submit.ts` and `batch-send.ts`. Fails: as the database does; nothing then stays behind.
 */
import type { Database } from '../db/database.js'
import { PART_OCTETS } from '../mail/message-spool.js'
import { deleteParts, insertPart } from '../messages/content-store.js'

interface Attaching {
  readonly contentId: string
  /** Octets of all attachments. */
  readonly attached: Buffer | undefined
}

/** Stores all but the first part of each, then does the work that accepts them; what it refuses is deleted again. */
export async function withPartsStored<T>(
  database: Database,
  letters: readonly Attaching[],
  accept: () => Promise<T>,
): Promise<T> {
  const long = letters.filter(({ attached }) => attached !== undefined && attached.length > PART_OCTETS)
  if (long.length === 0) return accept()
  try {
    for (const { contentId, attached } of long) await storeLaterParts(database, contentId, attached)
    return await accept()
  } catch (error) {
    for (const { contentId } of long)
      await database.write(tx => deleteParts(tx.db, contentId), { canWait: true }).catch(() => {})
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
