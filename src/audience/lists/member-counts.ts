/**
 * Member counts for a page of lists. Counting a dynamic list scans the audience, so counts are cached for a minute, and a page spends at
 * most a second on counting. Lists it does not reach keep their previous count, or have none.
 *
 * Cached in memory by list and last change, for a bounded number of lists.
 */
import { AppError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import type { Patience } from '../scan-store.js'
import type { List } from './list-store.js'

const KEPT_MS = 60_000
const PAGE_MS = 1_000
const MAX_KEPT = 10_000

interface Counted {
  readonly count: number
  /** Monotonic. */
  readonly at: number
}

export class MemberCounts {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly countMembers: (list: List, checkTimeout: Patience) => Promise<number>
  private readonly kept = new Map<string, Counted>()

  /** @param countMembers counts a dynamic list; rethrows what `Patience` throws */
  constructor(
    clock: Pick<Clock, 'monotonic'>,
    countMembers: (list: List, checkTimeout: Patience) => Promise<number>,
  ) {
    this.clock = clock
    this.countMembers = countMembers
  }

  /** @returns counts by list id; uncounted lists are missing */
  async ofPage(lists: readonly List[]): Promise<ReadonlyMap<string, number>> {
    const until = this.clock.monotonic() + PAGE_MS
    const checkTimeout = () => {
      if (this.clock.monotonic() > until) throw new AppError('unavailable', 'counting takes too long')
    }
    const counts = new Map<string, number>()
    for (const list of lists) {
      const count = list.type === 'static' ? list.memberCount : await this.countOf(list, checkTimeout)
      if (count !== undefined) counts.set(list.id, count)
    }
    return counts
  }

  private async countOf(list: List, checkTimeout: Patience): Promise<number | undefined> {
    const key = `${list.id} ${list.updatedAt}`
    const known = this.kept.get(key)
    if (known && this.clock.monotonic() - known.at < KEPT_MS) return known.count
    try {
      checkTimeout()
      const count = await this.countMembers(list, checkTimeout)
      // Reinserted, so that the map stays ordered by count time and the oldest is evicted.
      this.kept.delete(key)
      this.kept.set(key, { count, at: this.clock.monotonic() })
      const [oldest] = this.kept.keys()
      if (this.kept.size > MAX_KEPT && oldest !== undefined) this.kept.delete(oldest)
      return count
    } catch (error) {
      if (error instanceof AppError) return known?.count
      throw error
    }
  }
}
