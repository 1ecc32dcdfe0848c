/**
 * A caller's work waiting for its transaction: runs it, and settles the caller's promise once the commit is known.
 *
 * Shared by the writers of both databases. A work may run again after its transaction was rolled back, so it changes no memory before its
 * commit but through `onRollback`.
 */
import type { Topic } from './changes.js'
import type { Queries, Tx } from './database.js'

export interface PendingWork {
  /** Throws what the work throws. May be called again after a rollback; what an earlier run reported is undone first. */
  run(db: Queries): Promise<void>
  /** Resolves the caller's promise with the result of the last run, and calls what it left for the commit. */
  succeed(): void
  /** Rejects the caller's promise, and undoes what the last run reported. */
  fail(error: Error): void
}

/** @param report called for each changed topic after the commit @returns the work, and the promise its caller waits for */
export function pendingWork<T>(
  work: (tx: Tx) => Promise<T>,
  report: (topic: Topic) => void,
): { readonly pending: PendingWork; readonly result: Promise<T> } {
  let resolve: (value: T) => void
  let reject: (error: Error) => void
  const result = new Promise<T>((...settle) => ([resolve, reject] = settle))
  let onCommit: (() => void)[] = []
  let onRollback: (() => void)[] = []
  let finish = (): void => reject(new Error('the transaction ended before this work was done'))
  const undo = (): void => {
    const undoing = onRollback
    onCommit = []
    onRollback = []
    for (const callback of undoing) callInOrder(callback)
  }
  const pending: PendingWork = {
    async run(db) {
      undo()
      const value = await work({
        db,
        changed: topic => onCommit.push(() => report(topic)),
        onCommit: callback => onCommit.push(callback),
        onRollback: callback => onRollback.push(callback),
      })
      finish = () => resolve(value)
    },
    succeed() {
      finish()
      for (const callback of onCommit) callInOrder(callback)
    },
    fail(error) {
      reject(error)
      undo()
    },
  }
  return { pending, result }
}

/** An error in a callback is a bug, and must not keep other callers from being notified. */
function callInOrder(callback: () => void): void {
  try {
    callback()
  } catch (fault) {
    queueMicrotask(() => {
      throw asError(fault)
    })
  }
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
