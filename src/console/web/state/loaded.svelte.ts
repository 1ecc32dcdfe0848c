/** A value loaded from an API, with its error and loading state. */
import { untrack } from 'svelte'
import { ApiFault } from '../api/fault'
import {
  NO_ROWS,
  readAgain,
  readRows,
  START,
  type Counting,
  type Listed,
  type Mark,
  type Rows,
  type Wanted,
} from './paging'

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

/** A count that took longer is not taken again when the list is read again. */
const QUICK_COUNT_MS = 200

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
  private pages: Rows<T> = NO_ROWS
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
    await untrack(() => this.readFrom(START, 1))
  }

  async more(): Promise<void> {
    await untrack(async () => {
      if (!this.hasMore || this.isLoading || this.isPaused) return
      await this.readFrom({ index: this.rows.length, cursor: this.pages.cursor }, 1)
    })
  }

  async searchOn(): Promise<void> {
    this.isPaused = false
    await this.more()
  }

  /** Reloads the pages loaded so far; of a long list, the visible part. */
  async reload(): Promise<void> {
    await untrack(async () => {
      const { from, wanted } = readAgain(this.pages, this.seenFrom, this.pageSize)
      await this.readFrom(from, wanted)
    })
  }

  /** A later call takes precedence. */
  private async readFrom(from: Mark, wanted: number): Promise<void> {
    const { read, pageSize, counting } = this
    if (!read) return
    const run = ++this.run
    this.isLoading = true
    try {
      const what = { from, wanted, pageSize, counting }
      // A screen may have changed rows since they were read.
      const known = { ...this.pages, rows: this.rows }
      const found = await readRows(read, known, what, () => run === this.run)
      if (!found) return
      this.pages = found
      this.rows = found.rows
      this.note(found.total, from.index === 0, found.isLast)
      this.hasMore = !found.isLast
      this.isPaused = found.isPaused
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
