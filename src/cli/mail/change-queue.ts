/**
 * Changes part of the queue in batches, so that a running server is never blocked for long.
 *
 * Used by the commands that hold, release, retry or delete. If the database fails, earlier batches remain changed.
 */
import type { Appliance } from '../../appliance/appliance.js'
import type { Tx } from '../../db/database.js'
import { isServing } from '../../db/sqlite/serve-lock.js'
import { selectedIds, type QueueSelection } from '../../queue/operator/queue-admin-store.js'

/** @param isServing whether a server runs on the same data folder */
export type Change = (tx: Tx, selection: QueueSelection, now: number, isServing: boolean) => Promise<number>

/** Sleeps after each batch for as long as the batch took, so that the server, which polls for the write lock, can get it. */
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
