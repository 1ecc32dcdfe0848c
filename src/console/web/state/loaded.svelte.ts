/** What a screen reads from an API: the value, the fault, and whether it is being read. */
import { untrack } from 'svelte'
import { ApiFault } from '../api/fault'

export class Loaded<T> {
  value = $state.raw<T>()
  fault = $state.raw<ApiFault>()
  isLoading = $state(false)
  private run = 0
  private read: (() => Promise<T>) | undefined

  /** The answer of an earlier call that comes later is dropped. An effect that calls it depends on nothing that `read` reads. */
  load(read: () => Promise<T>): Promise<void> {
    this.read = read
    return untrack(() => this.loadOnce(read))
  }

  /**
   * Reads the same again. What is shown stays if the server cannot be reached.
   *
   * @param isUnwanted asked when the answer is there, which is then dropped
   */
  async reload(isUnwanted = () => false): Promise<void> {
    const { read } = this
    if (read) await untrack(() => this.loadOnce(read, true, isUnwanted))
  }

  /** Takes a value that came otherwise; reads under way are dropped. */
  set(value: T): void {
    this.run += 1
    this.isLoading = false
    this.value = value
    this.fault = undefined
  }

  private async loadOnce(read: () => Promise<T>, isAgain = false, isUnwanted = () => false): Promise<void> {
    const run = ++this.run
    this.isLoading = true
    try {
      const value = await read()
      if (run !== this.run || isUnwanted()) return
      this.value = value
      this.fault = undefined
    } catch (error) {
      if (run !== this.run) return
      const fault = asFault(error)
      if (!isAgain || this.value === undefined || fault.code !== 'network') this.fault = fault
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

/** `later`: rows are shown before they are counted. Both others than `first` need a list that takes `count=false`. */
type Counting = 'first' | 'later' | 'never'

/** Consecutive empty pages after which a search waits for `searchOn`. */
const MAX_BARREN = 5
/** A count that took longer is not taken again when the list is read again. */
const QUICK_COUNT_MS = 200

/** Most rows that are read at once; the API’s maximum. */
const MOST_AT_ONCE = 1_000
/** Lists that are longer are read again from near what is seen. */
const MOST_READ_AGAIN = 2_000

/** Where a page began: the number of rows before it, and the cursor it was read with. */
interface Mark {
  readonly index: number
  readonly cursor: string | undefined
}

/** Rows of a list, read page by page as they are scrolled to. */
export class Paged<T> {
  rows = $state.raw<readonly T[]>([])
  total = $state(0)
  /** Whether `total` is known. */
  isCounted = $state(false)
  hasMore = $state(false)
  isLoading = $state(false)
  fault = $state.raw<ApiFault>()
  /** Set after several consecutive empty pages, as in a search without matches; `searchOn` continues. */
  isPaused = $state(false)
  /** Number of the first row that is seen. */
  seenFrom = 0
  private run = 0
  private cursor: string | undefined
  private marks: readonly Mark[] = []
  private read: ((wanted: Wanted) => Promise<Listed<T>>) | undefined
  private countMs = 0
  private readonly pageSize: number
  private readonly counting: Counting

  constructor(pageSize = 100, counting: Counting = 'first') {
    this.pageSize = pageSize
    this.counting = counting
  }

  /** Restarts, e.g. with other filters. Old rows stay until the new ones are loaded. */
  async start(read: (wanted: Wanted) => Promise<Listed<T>>): Promise<void> {
    this.read = read
    this.countMs = 0
    this.isCounted = false
    await untrack(() => this.readFrom({ index: 0, cursor: undefined }, 1))
  }

  async more(): Promise<void> {
    await untrack(async () => {
      if (!this.hasMore || this.isLoading || this.isPaused) return
      await this.readFrom({ index: this.rows.length, cursor: this.cursor }, 1)
    })
  }

  async searchOn(): Promise<void> {
    this.isPaused = false
    await this.more()
  }

  /** Reloads the pages loaded so far; of a long list, the visible part. */
  async reload(): Promise<void> {
    await untrack(async () => {
      const { length } = this.rows
      const mark = length <= MOST_READ_AGAIN ? undefined : this.markBefore(this.seenFrom - this.pageSize)
      const from = mark ?? { index: 0, cursor: undefined }
      const wanted = mark ? MOST_AT_ONCE : Math.max(this.pageSize, length)
      await this.readFrom(from, wanted)
    })
  }

  private markBefore(index: number): Mark | undefined {
    return this.marks.filter(mark => mark.index <= index).at(-1)
  }

  /**
   * Reads rows and puts them after those before the mark. A later call takes precedence.
   *
   * @param wanted rows at least, unless there are no more
   */
  private async readFrom(from: Mark, wanted: number): Promise<void> {
    const { read } = this
    if (!read) return
    const run = ++this.run
    this.isLoading = true
    try {
      const before = this.rows.slice(0, from.index)
      const marks = this.marks.filter(({ index }) => index < from.index)
      let { cursor } = from
      let rows: readonly T[] = []
      let isLast = false
      let total = 0
      let barren = 0
      while (!isLast && barren < MAX_BARREN && rows.length < wanted) {
        const index = before.length + rows.length
        const limit = Math.min(MOST_AT_ONCE, Math.max(wanted - rows.length, this.pageSize))
        const first = this.counting === 'first' ? {} : { count: false as const }
        const start = index === 0 ? first : { offset: index }
        const place = cursor === undefined ? start : { after: cursor }
        const { data, pagination } = await read({ limit, ...place })
        if (run !== this.run) return
        marks.push({ index, cursor })
        rows = [...rows, ...data]
        cursor = pagination.next_cursor ?? undefined
        isLast = !pagination.has_more
        barren = data.length === 0 ? barren + 1 : 0
        total = pagination.total
      }
      this.rows = [...before, ...rows]
      this.marks = marks
      this.note(total, from.index === 0, isLast)
      this.hasMore = !isLast
      this.isPaused = !isLast && barren >= MAX_BARREN
      this.cursor = cursor
      this.fault = undefined
    } catch (error) {
      if (run === this.run) this.fault = asFault(error)
    } finally {
      if (run === this.run) this.isLoading = false
    }
  }

  private note(total: number, isFirst: boolean, isLast: boolean): void {
    if (this.counting === 'first' || isLast) {
      this.total = this.counting === 'first' ? total : this.rows.length
      this.isCounted = true
    } else if (isFirst && this.counting === 'later' && this.countMs < QUICK_COUNT_MS) void this.countLater()
  }

  /** Without a total the list is complete all the same: a fault is not shown. */
  private async countLater(): Promise<void> {
    const { read } = this
    const began = performance.now()
    const counted = await read?.({ limit: 1 }).catch(() => undefined)
    if (!counted || read !== this.read) return
    this.countMs = performance.now() - began
    this.total = counted.pagination.total
    this.isCounted = true
  }
}

export function asFault(error: unknown): ApiFault {
  return error instanceof ApiFault ? error : new ApiFault('internal_error', String(error))
}
