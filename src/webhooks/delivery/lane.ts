/** The delivery worker's state for one subscription: when its next delivery is due, which are read ahead, which are running. */
import type { DueDelivery } from './delivery-store.js'
import type { Standing } from './attempt-shares.js'

export const READ_AHEAD = 32

export class Lane {
  readonly subscriptionId: string
  /** Host and port of the target, for the limit per host. */
  host: string
  standing: Standing
  /** No attempts before this time, as the receiver requested. Ms since epoch UTC. */
  restsUntil = 0
  /** When the next delivery may be due, ms since epoch UTC; undefined: not before `noteDue`. */
  private readAt: number | undefined
  private ready: DueDelivery[] = []
  private readonly inHand = new Set<string>()

  constructor(subscriptionId: string, host: string, standing: Standing) {
    this.subscriptionId = subscriptionId
    this.host = host
    this.standing = standing
  }

  /** A new host starts with a clean history. */
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

  /** When to check again, unless `noteDue` comes first; undefined if nothing is scheduled. */
  get wakesAt(): number | undefined {
    if (this.hasReady) return this.restsUntil
    return this.readAt === undefined ? undefined : Math.max(this.readAt, this.restsUntil)
  }

  wantsToRead(now: number): boolean {
    return !this.hasReady && this.readAt !== undefined && this.readAt <= now && this.restsUntil <= now
  }

  /** Running deliveries are still due in the database, so the limit includes them. */
  get readLimit(): number {
    return READ_AHEAD + this.inHand.size
  }

  /** @returns to be passed to `noteRead`: attempts that end during the read may still look due in it */
  beginRead(): ReadonlySet<string> {
    this.readAt = undefined
    return new Set(this.inHand)
  }

  noteRead(before: ReadonlySet<string>, rows: readonly DueDelivery[], limit: number, now: number): void {
    const due = rows.filter(({ nextAttemptAt }) => nextAttemptAt <= now)
    this.ready = due.filter(({ id }) => !before.has(id) && !this.inHand.has(id))
    const next = rows[due.length]
    if (next) this.noteDue(next.nextAttemptAt)
    // The page was full, so there may be more.
    else if (rows.length === limit) this.noteDue(now)
  }

  take(): DueDelivery | undefined {
    const next = this.ready.shift()
    if (next) this.inHand.add(next.id)
    return next
  }

  /** The result is committed, or the attempt was abandoned. */
  end(id: string): void {
    this.inHand.delete(id)
  }

  /** Discards what was read ahead and reads again. */
  forgetRead(now: number): void {
    if (this.hasReady) this.noteDue(now)
    this.ready = []
  }
}
