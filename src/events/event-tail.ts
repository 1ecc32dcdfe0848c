/**
 * The end of the event log, read once for all consumers: what was appended lately is kept in memory for as long as somebody may ask.
 *
 * Used by the loops of the dispatcher, which all stand near the end nearly always. Who is further behind reads from the database. Events
 * are handed out to several, and nobody changes them. Fails: as the database does, and then the next who asks reads again.
 */
import type { Queries } from '../db/database.js'
import { nextTurn } from '../world/time/clock.js'
import type { EventKind } from './event.js'
import { newestSeq, readEventsAfter, readTail, type StoredEvent } from './store.js'

/** Kept at most, by weight: what an import appends while its slowest reader rests, a few times over. Some megabytes. */
const KEPT = 12_000
/** What an event about a message weighs: it is kept with all that it says. */
const OF_A_MESSAGE = 3
/** Read at a time. */
const AT_ONCE = 500

/** What there is after a position. */
export interface Read {
  /** Of the kinds asked for, in order. */
  readonly events: readonly StoredEvent<EventKind>[]
  /** The position of what was looked at last, whatever its kind. */
  readonly end: number
  /** Whether the log ended there. */
  readonly isLast: boolean
}

export class EventTail {
  private readonly reader: Queries
  /** All events after `from`, up to `end`. */
  private events: StoredEvent<EventKind>[] = []
  private weight = 0
  private from = Infinity
  private end = 0
  /** How often something was appended, and how often it had been when all was read. */
  private appends = 0
  private readTo = -1
  private reading: Promise<void> | undefined

  constructor(reader: Queries) {
    this.reader = reader
  }

  /** Something was appended. */
  appended(): void {
    this.appends += 1
  }

  /** @param limit how many events at most */
  async readAfter(seq: number, kinds: readonly EventKind[], limit: number): Promise<Read> {
    if (this.isStale) await (this.reading ??= this.readOn().finally(() => (this.reading = undefined)))
    return seq < this.from ? this.readBehind(seq, kinds, limit) : this.fromMemory(seq, kinds, limit)
  }

  /** Whether there may be more in the log. */
  private get isStale(): boolean {
    return this.readTo !== this.appends
  }

  private async readOn(): Promise<void> {
    const { appends } = this
    if (this.from === Infinity) this.from = this.end = await newestSeq(this.reader)
    const read = await readTail(this.reader, this.end, AT_ONCE)
    if (read.length < AT_ONCE) this.readTo = appends
    // What else the event loop has to do comes in between.
    else await nextTurn()
    this.events.push(...read)
    this.end = read.at(-1)?.seq ?? this.end
    this.weight += weightOf(read)
    if (this.weight <= KEPT) return
    this.events = this.events.slice(this.events.length / 2)
    this.weight = weightOf(this.events)
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

  private async readBehind(seq: number, kinds: readonly EventKind[], limit: number): Promise<Read> {
    // Asked first: what is appended between the two reads is read twice at worst, and never passed over.
    const newest = await newestSeq(this.reader)
    const events = await readEventsAfter(this.reader, seq, kinds, limit)
    const lastRead = events.at(-1)?.seq ?? 0
    const isLast = events.length < limit
    return { events, end: isLast ? Math.max(newest, lastRead) : lastRead, isLast }
  }
}

function weightOf(events: readonly StoredEvent<EventKind>[]): number {
  return events.reduce((sum, { messageId }) => sum + (messageId === null ? 1 : OF_A_MESSAGE), 0)
}
