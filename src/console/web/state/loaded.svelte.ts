/** What a screen reads from an API: the value, the fault, and whether it is being read. */
import { untrack } from 'svelte'
import { ApiFault } from '../api/fault'

export class Loaded<T> {
  value = $state.raw<T>()
  fault = $state.raw<ApiFault>()
  isLoading = $state(false)
  private run = 0

  /** The answer of an earlier call that comes later is dropped. An effect that calls it depends on nothing that `read` reads. */
  load(read: () => Promise<T>): Promise<void> {
    return untrack(() => this.loadOnce(read))
  }

  private async loadOnce(read: () => Promise<T>): Promise<void> {
    const run = ++this.run
    this.isLoading = true
    try {
      const value = await read()
      if (run !== this.run) return
      this.value = value
      this.fault = undefined
    } catch (error) {
      if (run !== this.run) return
      this.fault = asFault(error)
    } finally {
      if (run === this.run) this.isLoading = false
    }
  }
}

interface Listed<T> {
  readonly data: readonly T[]
  readonly pagination: {
    readonly total: number
    readonly has_more: boolean
    readonly next_cursor?: string | null
  }
}

export interface Wanted {
  readonly limit: number
  readonly offset?: number
  readonly after?: string
  readonly count?: false
}

/** Pages without rows after which a search waits to be told to go on. */
const MAX_BARREN = 5

/** Of long lists: rows are shown before they are counted, or are never counted. */
type Counting = 'first' | 'later' | 'never'

/** Rows of a list, read page by page as they are scrolled to. */
export class Paged<T> {
  rows = $state.raw<readonly T[]>([])
  /** Undefined while it is not known. */
  total = $state<number>()
  hasMore = $state(false)
  isLoading = $state(false)
  fault = $state.raw<ApiFault>()
  /** Several pages in a row had no rows, as in a search that finds nothing: `more` goes on when asked to. */
  isPaused = $state(false)
  private barren = 0
  private run = 0
  private cursor: string | undefined
  private read: ((wanted: Wanted) => Promise<Listed<T>>) | undefined
  private readonly pageSize: number
  private readonly counting: Counting

  /** @param counting `first` unless the list takes `count=false` */
  constructor({ pageSize = 100, counting = 'first' }: { pageSize?: number; counting?: Counting } = {}) {
    this.pageSize = pageSize
    this.counting = counting
  }

  /** Begins anew, e.g. with other filters. The rows shown stay until the new ones are there. */
  async start(read: (wanted: Wanted) => Promise<Listed<T>>): Promise<void> {
    this.read = read
    this.cursor = undefined
    this.barren = 0
    await untrack(() => this.next(true))
  }

  async searchOn(): Promise<void> {
    this.barren = 0
    await this.more()
  }

  async more(): Promise<void> {
    await untrack(async () => {
      if (this.hasMore && !this.isLoading) await this.next(false)
    })
  }

  /** Reads what is shown again, as far as the first page. */
  async reload(): Promise<void> {
    if (this.read) await this.start(this.read)
  }

  private async next(isFirst: boolean): Promise<void> {
    if (!this.read) return
    const run = ++this.run
    this.isLoading = true
    this.isPaused = false
    try {
      const { cursor, pageSize: limit } = this
      const first = this.counting === 'first' ? {} : { count: false as const }
      const place = isFirst ? first : cursor === undefined ? { offset: this.rows.length } : { after: cursor }
      const { data, pagination } = await this.read({ limit, ...place })
      if (run !== this.run) return
      this.rows = isFirst ? data : [...this.rows, ...data]
      if (this.counting === 'first') this.total = pagination.total
      else if (!pagination.has_more) this.total = this.rows.length
      else if (isFirst) void this.countLater(run)
      this.hasMore = pagination.has_more
      this.barren = data.length === 0 ? this.barren + 1 : 0
      this.isPaused = this.hasMore && this.barren >= MAX_BARREN
      this.cursor = pagination.next_cursor ?? undefined
      this.fault = undefined
    } catch (error) {
      if (run === this.run) this.fault = asFault(error)
    } finally {
      if (run === this.run) this.isLoading = false
    }
  }

  /** Without a total the list is complete all the same: a fault is not shown. */
  private async countLater(run: number): Promise<void> {
    this.total = undefined
    if (this.counting === 'never' || !this.read) return
    const read = this.read
    const counted = await read({ limit: 1 }).catch(() => undefined)
    // Later pages do not change it.
    if (counted && read === this.read && run <= this.run) this.total = counted.pagination.total
  }
}

export function asFault(error: unknown): ApiFault {
  return error instanceof ApiFault ? error : new ApiFault('internal_error', String(error))
}
