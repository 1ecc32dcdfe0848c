/**
 * How many members the lists of a page have. Those of dynamic lists are counted, which looks at the whole audience, and remembered for a
 * minute. A page spends a second on counting at most; lists that it does not come to keep their last count, or have none.
 *
 * In memory, by list and its last change, for a bounded number of lists.
 */
import { AppError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import type { Patience } from '../scan-store.js'
import type { List } from './list-store.js'

const KEPT_MS = 60_000
const PAGE_MS = 1_000
const MOST_KEPT = 10_000

interface Counted {
  readonly count: number
  /** Monotonic. */
  readonly at: number
}

export class MemberCounts {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly countMembers: (list: List, mayGoOn: Patience) => Promise<number>
  private readonly kept = new Map<string, Counted>()

  /** @param countMembers of a dynamic list; throws what the patience throws */
  constructor(
    clock: Pick<Clock, 'monotonic'>,
    countMembers: (list: List, mayGoOn: Patience) => Promise<number>,
  ) {
    this.clock = clock
    this.countMembers = countMembers
  }

  /** @returns by id of the list; one that is not counted yet is missing */
  async ofPage(lists: readonly List[]): Promise<ReadonlyMap<string, number>> {
    const until = this.clock.monotonic() + PAGE_MS
    const mayGoOn = () => {
      if (this.clock.monotonic() > until) throw new AppError('unavailable', 'counting takes too long')
    }
    const counts = new Map<string, number>()
    for (const list of lists) {
      const count = list.type === 'static' ? list.memberCount : await this.countOf(list, mayGoOn)
      if (count !== undefined) counts.set(list.id, count)
    }
    return counts
  }

  private async countOf(list: List, mayGoOn: Patience): Promise<number | undefined> {
    const key = `${list.id} ${list.updatedAt}`
    const known = this.kept.get(key)
    if (known && this.clock.monotonic() - known.at < KEPT_MS) return known.count
    try {
      mayGoOn()
      const count = await this.countMembers(list, mayGoOn)
      // The one counted longest ago goes first.
      this.kept.delete(key)
      this.kept.set(key, { count, at: this.clock.monotonic() })
      const [oldest] = this.kept.keys()
      if (this.kept.size > MOST_KEPT && oldest !== undefined) this.kept.delete(oldest)
      return count
    } catch (error) {
      if (error instanceof AppError) return known?.count
      throw error
    }
  }
}
