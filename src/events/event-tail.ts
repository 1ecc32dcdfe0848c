/**
 * The end of the event log, read once for all consumers and kept in bounded memory.
 *
 * Consumers are nearly always close to the end; one that is further behind reads from the database. The events are shared and must not
 * be modified. A failed read rejects and is repeated by the next caller.
 */
import type { Queries } from '../db/database.js'
import { nextTurn, pauseFor } from '../world/time/clock.js'
import type { EventKind } from './event.js'
import { SettledEvents } from './settled-store.js'
import { newestSeq, readEventsAfter, readTail, type StoredEvent } from './store.js'

/** Maximum events kept: some megabytes. */
const MAX_EVENTS = 4_000
const BATCH_SIZE = 500
/** Pause before looking again for events that are there but not settled. */
const UNSETTLED_MS = 20

export interface Read {
  /** Of the requested kinds, in log order. */
  readonly events: readonly StoredEvent<EventKind>[]
  /** Position of the last event examined, of any kind. */
  readonly end: number
  /** Whether the log ended there. */
  readonly isLast: boolean
}

export class EventTail {
  private readonly reader: Queries
  /** All events after `from`, up to `end`. */
  private events: StoredEvent<EventKind>[] = []
  private from = Infinity
  private end = 0
  /** Number of `appended` calls, and its value when the log was last read to the end. */
  private appends = 0
  private readTo = -1
  private reading: Promise<void> | undefined
  private readonly settled: SettledEvents

  constructor(reader: Queries) {
    this.reader = reader
    this.settled = new SettledEvents(reader)
  }

  /** Call after every commit that appended events. */
  appended(): void {
    this.appends += 1
  }

  /** The log was not followed for some time: begins at its end again. */
  forget(): void {
    this.events = []
    this.from = Infinity
    this.end = 0
    this.readTo = -1
  }

  /** @param limit maximum number of events */
  async readAfter(seq: number, kinds: readonly EventKind[], limit: number): Promise<Read> {
    if (this.isStale) await (this.reading ??= this.readBatch().finally(() => (this.reading = undefined)))
    return seq < this.from ? this.readFromDatabase(seq, kinds, limit) : this.fromMemory(seq, kinds, limit)
  }

  /** Whether there may be more in the log. */
  private get isStale(): boolean {
    return this.readTo !== this.appends
  }

  private async readBatch(): Promise<void> {
    const { appends } = this
    const settled = await this.settled.last()
    if (this.from === Infinity) {
      const newest = await newestSeq(this.reader)
      // Not known yet: consumers read from the database until it is.
      if (settled === 0 && newest > 0) return pauseFor(UNSETTLED_MS)
      this.from = this.end = Math.min(settled, newest)
    }
    // Nothing was appended: on PostgreSQL this saves a statement each time a consumer is woken for nothing.
    if (this.settled.given <= this.end) {
      this.readTo = appends
      return
    }
    const found = await readTail(this.reader, this.end, BATCH_SIZE)
    const read = found.filter(({ seq }) => seq <= settled)
    if (read.length < found.length) await pauseFor(UNSETTLED_MS)
    else if (read.length < BATCH_SIZE) this.readTo = appends
    // Let other work run between batches.
    else await nextTurn()
    this.events.push(...read)
    // Positions that were given and not used, by transactions that failed, are passed as well.
    if (found.length === 0 && settled < Infinity) this.end = Math.max(this.end, settled)
    else this.end = read.at(-1)?.seq ?? this.end
    if (this.events.length <= MAX_EVENTS) return
    this.events = this.events.slice(this.events.length / 2)
    this.from = (this.events[0]?.seq ?? this.end + 1) - 1
  }

  private fromMemory(seq: number, kinds: readonly EventKind[], limit: number): Read {
    const events: StoredEvent<EventKind>[] = []
    for (let at = this.firstAfter(seq); at < this.events.length && events.length < limit; at += 1) {
      const event = this.events[at]
      if (event && kinds.includes(event.kind)) events.push(event)
    }
    const isCut = events.length === limit
    return {
      events,
      end: isCut ? (events.at(-1)?.seq ?? this.end) : Math.max(seq, this.end),
      isLast: !isCut && !this.isStale,
    }
  }

  private firstAfter(seq: number): number {
    let [low, high] = [0, this.events.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.events[middle]?.seq ?? 0) > seq) high = middle
      else low = middle + 1
    }
    return low
  }

  private async readFromDatabase(seq: number, kinds: readonly EventKind[], limit: number): Promise<Read> {
    // Read first: an event appended between the two reads may be read twice, but is never skipped.
    const settled = await this.settled.last()
    const newest = Math.min(settled, await newestSeq(this.reader))
    const found = await readEventsAfter(this.reader, seq, kinds, limit)
    const events = found.filter(event => event.seq <= settled)
    const lastRead = events.at(-1)?.seq ?? seq
    const isHeldBack = events.length < found.length
    if (isHeldBack) await pauseFor(UNSETTLED_MS)
    const isLast = !isHeldBack && events.length < limit
    return { events, end: isLast ? Math.max(newest, lastRead) : lastRead, isLast }
  }
}
