/** The delivery worker's state in memory: which attempts may start, and for each subscription when its next delivery is due. */
import type { DueDelivery } from './delivery-store.js'

export type Standing = 'steady' | 'unknown' | 'failing'

export const STANDINGS: readonly Standing[] = ['steady', 'unknown', 'failing']

/** Attempts at once: of one subscription, of one host, in all. */
const LIMITS: Readonly<Record<Standing, { lane: number; host: number; all: number }>> = {
  steady: { lane: 16, host: 64, all: 192 },
  unknown: { lane: 1, host: 16, all: 64 },
  failing: { lane: 1, host: 16, all: 64 },
}

const MAX_SLOW = 1_024

/** An attempt that takes longer counts as slow. */
export const SLOW_MS = 2_000

/** The slot of one attempt. Both calls may be repeated. */
export interface Place {
  /** The attempt has become slow. */
  slow(): void
  release(): void
}

/**
 * Concurrency limits of webhook attempts, in total, per host and per subscription, so that receivers that hang never delay others.
 *
 * A subscription's standing is the result of its last attempt. Unknown and failing ones have separate small pools. An attempt that
 * takes over two seconds leaves its pools, so even receivers that start to hang all at once delay others only for seconds; slow attempts
 * have one common limit, and none of a subscription starts while it has a slow one.
 */
export class AttemptShares {
  private readonly counts = new Map<string, number>()
  private slowCount = 0

  room(subscriptionId: string, host: string, standing: Standing): number {
    if (this.slowCount >= MAX_SLOW || this.count(`slow ${subscriptionId}`) > 0) return 0
    const most = LIMITS[standing]
    return Math.min(
      most.lane - this.count(`lane ${subscriptionId}`),
      most.host - this.count(`host ${standing} ${host}`),
      most.all - this.count(`all ${standing}`),
    )
  }

  take(subscriptionId: string, host: string, standing: Standing): Place {
    const keys = [`lane ${subscriptionId}`, `host ${standing} ${host}`, `all ${standing}`]
    for (const key of keys) this.add(key, 1)
    let state: 'young' | 'slow' | 'over' = 'young'
    return {
      slow: () => {
        if (state !== 'young') return
        state = 'slow'
        for (const key of keys) this.add(key, -1)
        this.add(`slow ${subscriptionId}`, 1)
        this.slowCount += 1
      },
      release: () => {
        if (state === 'young') for (const key of keys) this.add(key, -1)
        if (state === 'slow') {
          this.add(`slow ${subscriptionId}`, -1)
          this.slowCount -= 1
        }
        state = 'over'
      },
    }
  }

  private count(key: string): number {
    return this.counts.get(key) ?? 0
  }

  private add(key: string, by: number): void {
    const count = this.count(key) + by
    if (count === 0) this.counts.delete(key)
    else this.counts.set(key, count)
  }
}

export const READ_AHEAD = 32

/** One subscription: when its next delivery is due, which are read ahead, which are running. */
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
