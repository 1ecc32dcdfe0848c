/**
 * Claims mail in the transaction that accepts it, if its delivery can start at once.
 *
 * Such a message is stored claimed, with its first attempt counted: nothing reads it back, and no second commit precedes its delivery. Only
 * single mails that overtake no other mail are claimed here: nothing is due in their lane, at their site or at any site with a free slot. All
 * others are queued, and `claimer.ts` claims them.
 *
 * A slot is reserved when the row is written, and given back if the transaction is rolled back. From then on this process knows of the message, so
 * that its claim is not taken for a lost one. If the answer to the commit is lost, the row may be claimed although the slot was given back; `onRollback`
 * has the queue look for such rows (`Claimer.releaseLost`).
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { laneFromKey } from '../lane.js'
import type { Schedule } from '../pacing/schedule.js'
import type { Turn } from '../pacing/site.js'
import { laneOf, type NewQueueEntry, type QueueEntry } from '../queue-store.js'
import type { Claimed, ClaimTerms } from './claim.js'

export interface AcceptedClaimsParts extends Pick<Services, 'clock' | 'random'> {
  readonly schedule: Schedule
  readonly retry: BackoffPolicy
  readonly incarnation: string
  readonly partOf?: ClaimTerms['partOf']
  /** How many deliveries may start, less those claimed here. */
  readonly freeSlots: () => number
  /** Loads and starts claims that were committed. Never rejects. */
  readonly start: (claimed: readonly Claimed[]) => Promise<void>
  readonly onRollback: () => void
  /** Claims were started, released or given back, so that they count no more. */
  readonly onEnded: () => void
}

interface AcceptedClaim extends Claimed {
  readonly messageId: string
}

export class AcceptedClaims {
  private readonly parts: AcceptedClaimsParts
  /** Claimed and not yet passed to the delivery runner. */
  private readonly inHand = new Set<string>()
  private committed: AcceptedClaim[] = []
  private isStarting = false
  private onIdle: (() => void)[] = []

  constructor(parts: AcceptedClaimsParts) {
    this.parts = parts
  }

  get count(): number {
    return this.inHand.size
  }

  isInHand(messageId: string): boolean {
    return this.inHand.has(messageId)
  }

  /** @returns the entries to store in this transaction, some of them claimed */
  claim(tx: Tx, entries: readonly NewQueueEntry[]): readonly NewQueueEntry[] {
    // Without it a slot could not be given back.
    if (!tx.onRollback) return entries
    const claims: AcceptedClaim[] = []
    const stored = entries.map(entry => {
      const turn = this.takeTurn(entry)
      if (!turn) return entry
      const retryAt = this.retryAt()
      this.inHand.add(entry.messageId)
      claims.push({
        messageId: entry.messageId,
        turn,
        entries: [toEntry(entry, retryAt)],
        nextDueAt: undefined,
      })
      return { ...entry, claim: { incarnation: this.parts.incarnation, retryAt } }
    })
    if (claims.length === 0) return entries
    tx.onCommit(() => this.begin(claims))
    tx.onRollback(() => this.giveBack(claims))
    return stored
  }

  /** Resolves when no claim is being committed or started. */
  async idle(): Promise<void> {
    while (this.inHand.size > 0) await new Promise<void>(resolve => this.onIdle.push(resolve))
  }

  private takeTurn(entry: NewQueueEntry): Turn | undefined {
    const { schedule, partOf, freeSlots } = this.parts
    const { destination, nextAttemptAt, enqueuedAt } = entry
    if (nextAttemptAt > enqueuedAt || partOf?.(destination) || freeSlots() < 1) return undefined
    return schedule.takeTurnOfNew(laneFromKey(laneOf(entry)))
  }

  private retryAt(): number {
    const { clock, random, retry } = this.parts
    return clock.now() + retryDelayMs(retry, 1, random.fraction())
  }

  /** Works that shared a commit are reported in one step, so that all of their mail is loaded together. */
  private begin(claims: readonly AcceptedClaim[]): void {
    this.committed.push(...claims)
    if (this.isStarting) return
    this.isStarting = true
    queueMicrotask(() => {
      const together = this.committed
      this.committed = []
      this.isStarting = false
      void this.parts.start(together).finally(() => this.release(together))
    })
  }

  private giveBack(claims: readonly AcceptedClaim[]): void {
    for (const { turn } of claims) this.parts.schedule.released(turn)
    this.parts.onRollback()
    this.release(claims)
  }

  private release(claims: readonly AcceptedClaim[]): void {
    for (const { messageId } of claims) this.inHand.delete(messageId)
    this.parts.onEnded()
    if (this.inHand.size > 0) return
    for (const resolve of this.onIdle.splice(0)) resolve()
  }
}

function toEntry(entry: NewQueueEntry, retryAt: number): QueueEntry {
  const { messageId, workspaceId, destination, priority, nextAttemptAt, expiresAt } = entry
  const { enqueuedAt, contentId, recipient, notify } = entry
  return {
    messageId,
    workspaceId,
    destination,
    priority,
    attempts: 1,
    nextAttemptAt: retryAt,
    expiresAt,
    isHeld: false,
    wasOffered: false,
    enqueuedAt,
    contentId,
    recipient,
    ...(notify === undefined ? {} : { notify }),
    isWithdrawn: false,
    dueAt: nextAttemptAt,
  }
}
