/**
 * The end of a workspace that was removed a month ago and not restored: everything that was its own, and its sandbox's, goes for good.
 *
 * A retention row: the scheduler calls each step and lets others write between two. Nothing is remembered of how far it came; whoever is
 * killed begins again and finds the rest, and the workspace itself goes only when nothing else is left. Fails: as the database does.
 */
import type { Database, Queries } from '../../db/database.js'
import type { RemoveSome } from '../../db/retention.js'
import { resource } from '../../resource/resource.js'
import { RESTORABLE_MS } from '../../accounts/workspace-store.js'
import { CHILDREN, INDEXED, WALKED } from './owned-tables.js'
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
  deleteWalked,
  endPurge,
  listPurgeable,
  type Looked,
  type OwnerIds,
  type Place,
} from './purge-store.js'

/** Rows of a workspace that are found at once. */
type Found = (db: Queries, ids: OwnerIds, limit: number) => Promise<number>

/** Rows that are found by looking at all of a table. */
type Walked = (db: Queries, ids: OwnerIds, after: Place | undefined, limit: number) => Promise<Looked<Place>>

interface Task {
  readonly step: Walked
}

const found = (remove: Found): Task => ({
  async step(db, ids, _after, limit) {
    const removed = await remove(db, ids, limit)
    return { removed, next: removed > 0 ? 0 : undefined }
  },
})

/** Whoever is found by way of others goes before these. */
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
  ...WALKED.map((table): Task => ({
    step: (db, ids, after, limit) => deleteWalked(db, table, ids, after, limit),
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

/** @param workspaceIds one after the other; they cannot be restored from their first step on */
export function purging(workspaceIds: readonly string[]): RemoveSome {
  const waiting = [...workspaceIds]
  let current:
    { readonly id: string; readonly ids: OwnerIds; task: number; after: Place | undefined } | undefined
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
