/**
 * How contacts follow suppressions: the interface that `audience/` implements and the composition root hands in.
 *
 * Called inside the transaction that changes a suppression, so that contact and suppression never disagree.
 */
import type { Tx } from '../../db/database.js'
import type { Suppression } from './suppression-store.js'

export interface SuppressionChange {
  readonly isSandbox: boolean
  /** `api`: a client or the operator; `import`: a file; `system`: a bounce or a complaint. */
  readonly source: 'api' | 'import' | 'system'
}

export interface SuppressedContacts {
  /**
   * Entries were added or widened, or would have been if they were not there already.
   *
   * @param entries addresses and whole domains, of any workspaces
   */
  suppressed(tx: Tx, entries: readonly Suppression[], change: SuppressionChange): Promise<void>
  /** An entry was removed. */
  released(
    tx: Tx,
    entry: Pick<Suppression, 'workspaceId' | 'email' | 'createdAt'>,
    change: SuppressionChange,
  ): Promise<void>
}

/**
 * Whether an entry records the person's own opt-out: an unsubscribe, or a complaint about a message. Removing such an entry does not
 * subscribe anybody again. A complaint without a message was entered by hand.
 */
export function isOptOut({
  reason,
  sourceMessageId,
}: Pick<Suppression, 'reason' | 'sourceMessageId'>): boolean {
  return reason === 'unsubscribe' || (reason === 'complaint' && sourceMessageId !== null)
}
