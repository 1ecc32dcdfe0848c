/**
 * Concurrency limits of webhook attempts, in total, per host and per subscription, so that receivers that hang never delay others.
 *
 * A subscription's standing is the result of its last attempt. Unknown and failing ones have small pools of their own. An attempt that
 * takes over two seconds leaves its pools, so even receivers that start to hang all at once delay others only for seconds; slow attempts
 * have one common limit.
 *
 *   standing   of one subscription   of one host   in all
 *   steady     16                    64            192
 *   unknown     1                    16             64
 *   failing     1                    16             64
 *   slow attempts: 1,024 in all; none of a subscription starts while it has a slow one
 *
 * Pure. Never fails.
 */

export type Standing = 'steady' | 'unknown' | 'failing'

export const STANDINGS: readonly Standing[] = ['steady', 'unknown', 'failing']

const MOST: Readonly<Record<Standing, { lane: number; host: number; all: number }>> = {
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

export class AttemptShares {
  private readonly counts = new Map<string, number>()
  private slowCount = 0

  room(subscriptionId: string, host: string, standing: Standing): number {
    if (this.slowCount >= MAX_SLOW || this.count(`slow ${subscriptionId}`) > 0) return 0
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
