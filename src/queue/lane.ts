/**
 * Lanes: the queue's rows grouped by what decides their turn, which is destination, priority and workspace.
 *
 * The database is asked lane by lane; in memory a lane is a few hundred bytes, whatever the number of its messages.
 * The key is one text, so that one index gives both the lanes there are and what is due in each.
 */

/** Lower goes first. */
export const PRIORITIES = { transactional: 0, campaign: 1 } as const
export type Priority = (typeof PRIORITIES)[keyof typeof PRIORITIES]

export interface Lane {
  readonly key: string
  /** Recipient domain, A-labels. */
  readonly destination: string
  readonly priority: Priority
  readonly workspaceId: string
  /** Earliest known due time, ms since epoch UTC; Infinity when nothing is known to wait. A hint, at worst too early. */
  dueAt: number
  /** Messages claimed and not yet settled. */
  readonly inHand: Set<string>
  /** Times at which an entry in the heap of due times stands for this lane. */
  readonly planned: Set<number>
}

export function laneKey(destination: string, priority: Priority, workspaceId: string): string {
  return `${destination} ${priority} ${workspaceId}`
}

export function laneFromKey(key: string): Lane {
  const [destination = '', priority = '0', workspaceId = ''] = key.split(' ')
  return {
    key,
    destination,
    priority: priority === '1' ? PRIORITIES.campaign : PRIORITIES.transactional,
    workspaceId,
    dueAt: Infinity,
    inHand: new Set(),
    planned: new Set(),
  }
}
