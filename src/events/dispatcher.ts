/**
 * Brings the event log to its consumers, each at its own pace and exactly once per event in the database's eyes:
 * what a consumer writes and how far it has come are one transaction.
 *
 * A consumer only writes rows; what needs a network is done by workers that find those rows. A consumer that throws
 * stays where it was and is tried again after a pause; the others go on.
 */
import { describeError } from '../core/errors.js'
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import type { Database, Tx } from '../db/database.js'
import { pauseFor, type Clock, type Timer } from '../world/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import type { Event, EventKind } from './event.js'
import { moveCursor, newestSeq, readCursor, readEventsAfter, type StoredEvent } from './store.js'

/** A consumer that names no kinds for its type takes events about messages. */
export interface EventConsumer<Kind extends EventKind = Event['kind']> {
  /** Names its cursor; never changed once released. */
  readonly name: string
  readonly kinds: readonly Kind[]
  /** Fewer than usual (100) where one event is much work, more where it is next to none. */
  readonly eventsPerTurn?: number
  /** Whether anything follows from an event of these kinds; what nothing follows from is no work. */
  concerns?(event: StoredEvent<Kind>): boolean
  /** Reacts by writing in this transaction. Idempotent: after a crash the same event may come again. */
  react(tx: Tx, events: readonly StoredEvent<Kind>[]): Promise<void>
}

/** A consumer of whatever kinds; it is only ever given events of those. */
export interface AnyConsumer extends Omit<EventConsumer<EventKind>, 'react' | 'concerns'> {
  concerns?(event: never): boolean
  react(tx: Tx, events: readonly never[]): Promise<void>
}

export interface DispatcherParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** Small, so that one consumer's share of a group commit stays a few ms. */
const EVENTS_PER_TURN = 100
/** Events of other kinds that may lie between a stored cursor and what was looked at, to be read again after a restart. */
const PASSED_BY = 1_000
/** Between two looks at the log: where much is appended, many events share a turn. */
const REST_MS = 20
const RETRY: BackoffPolicy = { firstMs: 1_000, factor: 2, maxMs: 60_000 }

export class Dispatcher {
  private readonly parts: DispatcherParts
  private readonly lanes: Lane[]

  constructor(parts: DispatcherParts, consumers: readonly AnyConsumer[]) {
    this.parts = parts
    this.lanes = consumers.map(consumer => new Lane(parts, consumer))
  }

  /** Catches up with what was appended while nobody ran. */
  start(): void {
    this.wake()
  }

  /** Something was appended. Cheap: call it after every commit that appended. */
  wake(): void {
    for (const lane of this.lanes) lane.wake()
  }

  /** The position up to which no consumer has anything to react to any more. */
  async passed(): Promise<number> {
    const newest = await newestSeq(this.parts.database.reader)
    const passed = await Promise.all(this.lanes.map(lane => lane.passed(newest)))
    return Math.min(newest, ...passed)
  }

  /** Resolves once every consumer has finished what it is at. */
  async stop(): Promise<void> {
    await Promise.all(this.lanes.map(lane => lane.stop()))
    this.parts.log.debug('event dispatcher stopped')
  }
}

/**
 * One consumer's way along the log.
 *
 * Only one process at a time runs consumers, and the log is only appended to in the order of commits: how far this one has
 * come is read once and then known.
 */
class Lane {
  private readonly parts: DispatcherParts
  private readonly consumer: AnyConsumer
  private running: Promise<void> | undefined
  private isWoken = false
  private isStopped = false
  private failures = 0
  private retry: Timer | undefined
  /** As it stands in the database. */
  private cursor: number | undefined
  /** From the cursor up to here there is nothing for this consumer. */
  private seen = 0

  constructor(parts: DispatcherParts, consumer: AnyConsumer) {
    this.parts = parts
    this.consumer = consumer
  }

  wake(): void {
    this.isWoken = true
    if (this.isStopped || this.running || this.retry) return
    this.running = this.run().finally(() => {
      this.running = undefined
      this.wakeAgain()
    })
  }

  /** For a wake that came after the last look at the log but before the end of the run. */
  private wakeAgain(): void {
    if (this.isWoken) this.wake()
  }

  async stop(): Promise<void> {
    this.isStopped = true
    this.retry?.cancel()
    await this.running
  }

  /** A cursor stays behind what does not concern its consumer. @param newest read before */
  async passed(newest: number): Promise<number> {
    const { consumer, parts } = this
    const { reader } = parts.database
    const from = this.cursor === undefined ? await readCursor(reader, consumer.name) : this.seen
    const [next] = await readEventsAfter(reader, from, consumer.kinds, 1)
    return next ? next.seq - 1 : newest
  }

  private async run(): Promise<void> {
    try {
      let mayHaveMore = true
      while (mayHaveMore && !this.isStopped) {
        this.isWoken = false
        mayHaveMore = await this.takeTurn()
      }
      this.failures = 0
      if (!this.isStopped) await pauseFor(REST_MS)
    } catch (error) {
      this.pause(describeError(error))
    }
  }

  /** @returns whether there may be more */
  private async takeTurn(): Promise<boolean> {
    const { consumer, parts } = this
    const { reader } = parts.database
    this.cursor ??= this.seen = await readCursor(reader, consumer.name)
    const newest = await newestSeq(reader)
    const atATime = consumer.eventsPerTurn ?? EVENTS_PER_TURN
    const limit = Math.max(atATime, EVENTS_PER_TURN)
    const events = await readEventsAfter(reader, this.seen, consumer.kinds, limit)
    const isAll = events.length < limit
    const lookedAt = isAll ? Math.max(newest, events.at(-1)?.seq ?? 0) : (events.at(-1)?.seq ?? 0)
    const concerning = events.filter(event => consumer.concerns?.(event as never) ?? true)
    const taken = concerning.slice(0, atATime)
    const isRest = taken.length < concerning.length
    const upTo = isRest ? (taken.at(-1)?.seq ?? lookedAt) : lookedAt
    if (taken.length > 0) await this.move(upTo, tx => consumer.react(tx, taken as never))
    else if (upTo - this.cursor > PASSED_BY) await this.move(upTo)
    else this.seen = upTo
    return isRest || !isAll
  }

  /** Moves the cursor, together with what led to it. */
  private async move(seq: number, react?: (tx: Tx) => Promise<void>): Promise<void> {
    await this.parts.database.write(
      async tx => {
        await react?.(tx)
        await moveCursor(tx, this.consumer.name, seq)
      },
      { canWait: true },
    )
    this.cursor = this.seen = seq
  }

  private pause(error: string): void {
    this.failures += 1
    const delayMs = retryDelayMs(RETRY, this.failures, this.parts.random.fraction())
    this.parts.log.error('event consumer failed', { consumer: this.consumer.name, error, retryInMs: delayMs })
    this.retry = this.parts.clock.after(delayMs, () => {
      this.retry = undefined
      this.wake()
    })
  }
}
