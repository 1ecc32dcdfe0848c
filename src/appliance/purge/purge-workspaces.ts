/**
 * Deletes everything of workspaces, and their sandboxes, that were removed a month ago and not restored.
 *
 * A retention task: the scheduler runs it in steps and lets other writes in between. No progress is stored; after a crash it starts over
 * and finds the remaining rows. The workspace itself is deleted once nothing else is left.
 */
import type { Database, Queries } from '../../db/database.js'
import type { RemoveSome } from '../../db/retention.js'
import { resource } from '../../resource/resource.js'
import { RESTORABLE_MS } from '../../accounts/workspace-store.js'
import { CHILDREN, INDEXED, SCANNED } from './owned-tables.js'
import {
  beginPurge,
  deleteCaptured,
  deleteChildren,
  deleteContactsOf,
  deleteContents,
  deleteDeliveriesOfAll,
  deleteEvents,
  deleteIndexed,
  deleteMessagesOf,
  deleteRunsOf,
  deleteStepsOf,
  deleteScanned,
  endPurge,
  listPurgeable,
  type Scanned,
  type OwnerIds,
  type ScanKey,
} from './purge-store.js'

/** Rows found by an index, per step. */
type Found = (db: Queries, ids: OwnerIds, limit: number) => Promise<number>

/** Rows scanned per step in tables without an index. */
type Walked = (
  db: Queries,
  ids: OwnerIds,
  after: ScanKey | undefined,
  limit: number,
) => Promise<Scanned<ScanKey>>

interface Task {
  readonly step: Walked
}

const found = (remove: Found): Task => ({
  async step(db, ids, _after, limit) {
    const removed = await remove(db, ids, limit)
    return { removed, next: removed > 0 ? 0 : undefined }
  },
})

/** Rows found through other rows go before those. */
const TASKS: readonly Task[] = [
  { step: deleteCaptured },
  found(deleteMessagesOf),
  { step: deleteContents },
  found(deleteContactsOf),
  found(deleteRunsOf),
  found(deleteStepsOf),
  found(deleteDeliveriesOfAll),
  { step: deleteEvents },
  ...CHILDREN.map(table => found((db, ids, limit) => deleteChildren(db, table, ids, limit))),
  ...INDEXED.map(table => found((db, ids, limit) => deleteIndexed(db, table, ids, limit))),
  ...SCANNED.map((table): Task => ({
    step: (db, ids, after, limit) => deleteScanned(db, table, ids, after, limit),
  })),
]

export const removedWorkspaces = resource({
  open: ({ database }: { readonly database: Database }) => ({
    retention: [
      {
        what: 'removed workspaces',
        keep: RESTORABLE_MS,
        begin: async before => purging(await listPurgeable(database.reader, before)),
      },
    ],
  }),
})

/** @param workspaceIds purged one after the other; from its first step on a workspace cannot be restored */
export function purging(workspaceIds: readonly string[]): RemoveSome {
  const waiting = [...workspaceIds]
  let current:
    | { readonly id: string; readonly ids: OwnerIds; task: number; after: ScanKey | undefined }
    | undefined
  return async (limit, write) => {
    if (!current) {
      const id = waiting.shift()
      if (id === undefined) return { removed: 0, hasMore: false }
      const ids = await write(tx => beginPurge(tx.db, id))
      current = { id, ids, task: 0, after: undefined }
    }
    const { id, ids, after } = current
    const task = TASKS[current.task]
    if (!task) {
      await write(tx => endPurge(tx.db, id))
      current = undefined
      return { removed: 1, hasMore: waiting.length > 0 }
    }
    const { removed, next } = await write(tx => task.step(tx.db, ids, after, limit))
    current.after = next
    if (next === undefined) current.task += 1
    return { removed, hasMore: true }
  }
}
