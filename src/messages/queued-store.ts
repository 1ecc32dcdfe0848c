/** SQL of what a message has to do with its row in the queue, which `queue/queue-store.ts` declares: that the row goes with its end. */
import type { Queries } from '../db/database.js'
import { inLists, statement } from '../db/statement.js'

const deleteQueued = statement((db, { ids }: { ids: readonly string[] }) =>
  db.deleteFrom('queue').where('message_id', 'in', ids),
)

/** Messages that have ended are not tried again. @param ids of messages; those that are not queued are passed over */
export async function removeQueued(db: Queries, ids: readonly string[]): Promise<void> {
  for (const list of inLists(ids)) await deleteQueued(db, { ids: list })
}
