/**
 * Changes part of the queue beside a running server: in batches, so that it is never kept waiting long.
 *
 * Called by the commands that hold, release, retry or delete. Fails: as the database does, with what was changed before it changed.
 */
import type { Appliance } from '../../appliance/appliance.js'
import type { Tx } from '../../db/database.js'
import { isServing } from '../../db/sqlite/serve-lock.js'
import { selectedIds, type QueueSelection } from '../../queue/operator/queue-admin-store.js'

/** @param isServing a server runs beside the command */
export type Change = (tx: Tx, selection: QueueSelection, now: number, isServing: boolean) => Promise<number>

/**
 * A batch at a time, and after each a rest as long as the batch took: a server that waits for the database looks again
 * only now and then, and has to find it free.
 */
export async function changeInBatches(
  { config, database, world: { clock } }: Appliance,
  selection: QueueSelection,
  change: Change,
): Promise<number> {
  let changed = 0
  for await (const messageIds of selectedIds(database.reader, selection)) {
    const startedAt = clock.monotonic()
    const isBeside = isServing(config.dataDir)
    changed += await database.write(tx => change(tx, { messageIds }, clock.now(), isBeside))
    await clock.sleep(clock.monotonic() - startedAt)
  }
  return changed
}
