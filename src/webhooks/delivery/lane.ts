/** The delivery worker's state in memory: which attempts may start, and for each subscription when its next delivery is due. */
import { FairShares } from '../../core/fair-shares.js'
import type { DueDelivery } from './delivery-store.js'

export type Standing = 'steady' | 'unknown' | 'failing'

export const STANDINGS: readonly Standing[] = ['steady', 'unknown', 'failing']

/** Attempts at once: of one subscription, and of one host and in all, of which every workspace gets a part. */
const LIMITS: Readonly<Record<Standing, { lane: number; host: number; all: number }>> = {
  steady: { lane: 16, host: 128, all: 384 },
  unknown: { lane: 1, host: 32, all: 128 },
  failing: { lane: 1, host: 32, all: 128 },
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

interface Pool {
  readonly all: FairShares
  /** By host; those in use. */
  readonly hosts: Map<string, FairShares>
}

/**
 * Concurrency limits of webhook attempts, in total, per workspace, per host and per subscription, so that receivers that hang never delay
 * others.
 *
 * A subscription's standing is the result of its last attempt. Unknown and failing ones have separate small pools. An attempt that
 * takes over two seconds leaves its pool while its workspace has a share of the slow ones, so even receivers that start to hang all at once
 * delay others only for seconds; none of a subscription starts while it has a slow one.
 */
export class AttemptShares {
  private readonly pools = {
    steady: poolOf('steady'),
    unknown: poolOf('unknown'),
    failing: poolOf('failing'),
  } as const satisfies Record<Standing, Pool>
  private readonly slow = new FairShares(MAX_SLOW, { perKey: Infinity })
  private readonly slowCounts = new Map<string, number>()

  hasRoom({ workspaceId, subscriptionId, host, standing }: Attempting): boolean {
    const { all, hosts } = this.pools[standing]
    return (
      !this.slowCounts.has(subscriptionId) &&
      all.canTake({ owner: workspaceId, key: subscriptionId }) &&
      (hosts.get(host)?.canTake({ owner: workspaceId }) ?? true)
    )
  }

  /** Call only if there is room. */
  take({ workspaceId, subscriptionId, host, standing }: Attempting): Place {
    const { all, hosts } = this.pools[standing]
    const holder = { owner: workspaceId, key: subscriptionId }
    const ofHost = hosts.get(host) ?? new FairShares(LIMITS[standing].host)
    hosts.set(host, ofHost)
    all.take(holder)
    ofHost.take({ owner: workspaceId })
    const leave = (): void => {
      all.release(holder)
      ofHost.release({ owner: workspaceId })
      if (ofHost.held === 0) hosts.delete(host)
    }
    let state: 'young' | 'slow' | 'over' = 'young'
    return {
      slow: () => {
        if (state !== 'young' || this.slow.take(holder) !== undefined) return
        state = 'slow'
        leave()
        this.countSlow(subscriptionId, 1)
      },
      release: () => {
        if (state === 'young') leave()
        if (state === 'slow') {
          this.slow.release(holder)
          this.countSlow(subscriptionId, -1)
        }
        state = 'over'
      },
    }
  }

  private countSlow(subscriptionId: string, by: number): void {
    const count = (this.slowCounts.get(subscriptionId) ?? 0) + by
    if (count === 0) this.slowCounts.delete(subscriptionId)
    else this.slowCounts.set(subscriptionId, count)
  }
}

type Attempting = Pick<Lane, 'workspaceId' | 'subscriptionId' | 'host' | 'standing'>

function poolOf(standing: Standing): Pool {
  const { lane, all } = LIMITS[standing]
  return { all: new FairShares(all, { perKey: lane }), hosts: new Map() }
}

export const READ_AHEAD = 32

/** One subscription: when its next delivery is due, which are read ahead, which are running. */
export class Lane {
  readonly subscriptionId: string
  readonly workspaceId: string
  /** Host and port of the target, for the limit per host. */
  host: string
  standing: Standing
  /** No attempts before this time, as the receiver requested. Ms since epoch UTC. */
  restsUntil = 0
  /** When the next delivery may be due, ms since epoch UTC; undefined: not before `noteDue`. */
  private readAt: number | undefined
  private ready: DueDelivery[] = []
  private readonly inHand = new Set<string>()

  constructor(subscriptionId: string, workspaceId: string, host: string, standing: Standing) {
    this.subscriptionId = subscriptionId
    this.workspaceId = workspaceId
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
