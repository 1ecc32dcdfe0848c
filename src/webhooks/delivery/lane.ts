/**
 * What the delivery worker knows of one subscription's deliveries: when the next is due, which are read, which are under way.
 *
 * The database holds them all; here stand a few. Pure: the worker reads and tries, this only keeps count. Fails: never.
 */
import type { DueDelivery } from './delivery-store.js'
import type { Standing } from './attempt-shares.js'

/** Read ahead of free places. */
export const READ_AHEAD = 32

export class Lane {
  readonly subscriptionId: string
  /** As fairness counts it: host and port of the target. */
  host: string
  standing: Standing
  /** Until then nothing is tried: the receiver asked for it. Ms since epoch UTC. */
  restsUntil = 0
  /** When there may be something to read, ms since epoch UTC; undefined: not before somebody says so. */
  private readAt: number | undefined
  private ready: DueDelivery[] = []
  private readonly inHand = new Set<string>()

  constructor(subscriptionId: string, host: string, standing: Standing) {
    this.subscriptionId = subscriptionId
    this.host = host
    this.standing = standing
  }

  /** A new host starts without the history of the one before. */
  moveTo(host: string): void {
    if (host === this.host) return
    this.host = host
    this.standing = 'unknown'
    this.restsUntil = 0
  }

  noteDue(at: number): void {
    if (this.readAt === undefined || at < this.readAt) this.readAt = at
  }

  get hasReady(): boolean {
    return this.ready.length > 0
  }

  get underWay(): number {
    return this.inHand.size
  }

  /** When it wants to be looked at again, if nobody says so before; undefined while it has something to do or nothing at all. */
  get wakesAt(): number | undefined {
    if (this.hasReady) return this.restsUntil
    return this.readAt === undefined ? undefined : Math.max(this.readAt, this.restsUntil)
  }

  wantsToRead(now: number): boolean {
    return !this.hasReady && this.readAt !== undefined && this.readAt <= now && this.restsUntil <= now
  }

  /** Rows to read: those under way still stand in the way, for they are due until their outcome is written. */
  get readLimit(): number {
    return READ_AHEAD + this.inHand.size
  }

  /** @returns to be handed to `noteRead` with what was read: what ends meanwhile may still look due in it */
  beginRead(): ReadonlySet<string> {
    this.readAt = undefined
    return new Set(this.inHand)
  }

  noteRead(before: ReadonlySet<string>, rows: readonly DueDelivery[], limit: number, now: number): void {
    const due = rows.filter(({ nextAttemptAt }) => nextAttemptAt <= now)
    this.ready = due.filter(({ id }) => !before.has(id) && !this.inHand.has(id))
    const next = rows[due.length]
    if (next) this.noteDue(next.nextAttemptAt)
    // Otherwise the last row was the last of all.
    else if (rows.length === limit) this.noteDue(now)
  }

  take(): DueDelivery | undefined {
    const next = this.ready.shift()
    if (next) this.inHand.add(next.id)
    return next
  }

  /** Its outcome is on disk, or it was given up. */
  end(id: string): void {
    this.inHand.delete(id)
  }

  /** What was read may be out of date: it is read again. */
  forgetRead(now: number): void {
    if (this.hasReady) this.noteDue(now)
    this.ready = []
  }
}
