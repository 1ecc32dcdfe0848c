/**
 * How many attempts may be under way: in all, to one host, for one subscription, so that receivers that hang never delay others.
 *
 * A subscription has a standing by its last answer. Those that were not asked yet, and those that failed, have small shares of their own,
 * which no good receiver needs; and an attempt that has taken seconds gives its place in every share back, so that receivers that
 * begin to hang all at once hold up the others for seconds at most. Only the number of sockets is bounded for them, too.
 *
 *   standing   of one subscription   of one host   in all
 *   steady     16                    64            192
 *   unknown     1                    16             64
 *   failing     1                    16             64
 *   taking seconds: of all together 1,024, and none of its subscription begins beside it
 *
 * Used by the delivery worker. Pure. Fails: never.
 */

/** `steady`: the last attempt succeeded; `failing`: it did not; `unknown`: there was none since the start. */
export type Standing = 'steady' | 'unknown' | 'failing'

export const STANDINGS: readonly Standing[] = ['steady', 'unknown', 'failing']

const MOST: Readonly<Record<Standing, { lane: number; host: number; all: number }>> = {
  steady: { lane: 16, host: 64, all: 192 },
  unknown: { lane: 1, host: 16, all: 64 },
  failing: { lane: 1, host: 16, all: 64 },
}

const MOST_SLOW = 1_024

/** From so many ms on an attempt counts as slow. */
export const SLOW_MS = 2_000

/** The place of one attempt; each of its ends may be told once. */
export interface Place {
  /** It has taken seconds. */
  slow(): void
  release(): void
}

export class AttemptShares {
  private readonly counts = new Map<string, number>()
  private slowOnes = 0

  /** How many more may begin for this subscription now. */
  room(subscriptionId: string, host: string, standing: Standing): number {
    if (this.slowOnes >= MOST_SLOW || this.count(`slow ${subscriptionId}`) > 0) return 0
    const most = MOST[standing]
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
        this.slowOnes += 1
      },
      release: () => {
        if (state === 'young') for (const key of keys) this.add(key, -1)
        if (state === 'slow') {
          this.add(`slow ${subscriptionId}`, -1)
          this.slowOnes -= 1
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
