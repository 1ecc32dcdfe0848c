/**
 * Delivers the event log to its consumers, each at its own pace. A consumer's writes and its cursor are one transaction, so each event
 * takes effect exactly once.
 *
 * Consumers only write rows; workers act on them over the network. A consumer that throws is retried with backoff, event by event; the
 * others continue. An event that keeps failing is set aside (`set-aside-store.ts`). Database errors never set an event aside.
 */
import { describeError } from '../core/errors.js'
import { isAppliance } from '../core/owner.js'
import type { Tx } from '../db/database.js'
import { PieceSize } from '../db/piece-size.js'
import { isStorageError } from '../db/faults/transient-error.js'
import type { Services } from '../db/services.js'
import { pauseFor, systemClock } from '../world/time/clock.js'
import { AT_ONCE, WHEN_WOKEN, Worker } from '../world/time/worker.js'
import type { AnyConsumer } from './consumer.js'
import type { EventKind } from './event.js'
import { EventTail, type Read } from './event-tail.js'
import { dropSetAside, listRetryRequested, setAside } from './set-aside-store.js'
import {
  advanceCursor,
  findCursor,
  moveCursor,
  newestSeq,
  readEventsAfter,
  type StoredEvent,
} from './store.js'

export type DispatcherParts = Pick<Services, 'database' | 'clock' | 'log'>

/** Reduced if a batch takes longer than a consumer's share of a group commit. */
const EVENTS_PER_TURN = 100
const MIN_EVENTS_PER_TURN = 10
/** Irrelevant events after which the cursor is stored anyway, to bound what a restart reads again. */
const MAX_UNSAVED = 50_000
/** Where nodes share the database, also after this long: retention may be the work of another node, which sees only what is stored. */
const MAX_UNSAVED_MS = 3_600_000
/** Pause between reads, so that under load many events share a batch. */
const PAUSE_MS = 20
/**
 * The same on PostgreSQL, for a consumer that has written: each write of its cursor leaves a dead row, and all of them are passed again and again
 * while an open snapshot keeps them. The first event after a rest is not delayed.
 */
const WRITE_INTERVAL_MS = 1_000
/** So many times the usual events share a batch there. */
const BATCHES_AT_ONCE = 20
/** Other writes of the node wait for so long; without it a large backlog would be worked off in small steps. */
const PACED_PIECE_MS = 100
/** Attempts at a single event before it is set aside: about half a minute, for transient errors to pass. */
const MAX_TRIES = 5

type Batch = readonly StoredEvent<EventKind>[]

export class Dispatcher {
  private readonly parts: DispatcherParts
  private readonly consumers: readonly AnyConsumer[]
  private readonly tail: EventTail
  private readonly loops: ConsumerLoop[]

  constructor(parts: DispatcherParts, consumers: readonly AnyConsumer[]) {
    this.parts = parts
    this.consumers = consumers
    this.tail = new EventTail(parts.database.reader)
    this.loops = consumers.map(consumer => new ConsumerLoop(parts, this.tail, consumer))
  }

  /**
   * Starts consumers with the events appended since the last stop, here or on another node. Resolves once the cursor of every new one is stored.
   *
   * @param names default all
   */
  async start(names?: readonly string[]): Promise<void> {
    if (!this.loops.some(loop => loop.isOpen)) this.tail.forget()
    for (const loop of this.named(names)) await loop.open()
    this.wake()
  }

  /** Retries set-aside events for which a retry was requested. @returns how many succeeded */
  async retrySetAside(): Promise<number> {
    let succeeded = 0
    for (const { consumer: name, event } of await listRetryRequested(this.parts.database.reader)) {
      const consumer = this.consumers.find(one => one.name === name)
      if (consumer && (await this.retry(consumer, event))) succeeded += 1
    }
    return succeeded
  }

  private async retry(consumer: AnyConsumer, event: StoredEvent<EventKind>): Promise<boolean> {
    const { database, clock, log } = this.parts
    try {
      await database.write(async tx => {
        await consumer.react(tx, [event as never])
        await dropSetAside(tx.db, { consumer: consumer.name, seq: event.seq })
      })
      log.info('set-aside event retried', { consumer: consumer.name, seq: event.seq })
      return true
    } catch (thrown) {
      const error = describeError(thrown)
      await database.write(tx =>
        setAside(tx.db, { consumer: consumer.name, event, error, setAsideAt: clock.now() }),
      )
      log.error('set-aside event failed', { consumer: consumer.name, seq: event.seq, error })
      return false
    }
  }

  /** Cheap; call it after every commit that appended events. Does nothing for consumers that are not started here. */
  wake(): void {
    this.tail.appended()
    for (const loop of this.loops) loop.wake()
  }

  /** The position that all consumers have passed. */
  async passed(): Promise<number> {
    const newest = await newestSeq(this.parts.database.reader)
    const passed = await Promise.all(this.loops.map(loop => loop.passed(newest)))
    return Math.min(newest, ...passed)
  }

  /** For monitoring: number of events each consumer lags behind, of those that run here. */
  async lags(): Promise<{ consumer: string; events: number }[]> {
    const running = this.loops.filter(loop => loop.isOpen)
    if (running.length === 0) return []
    const newest = await newestSeq(this.parts.database.reader)
    return running.map(loop => ({ consumer: loop.name, events: loop.behind(newest) }))
  }

  /** Resolves once the consumers have finished their current batch. @param names default all */
  async stop(names?: readonly string[]): Promise<void> {
    await Promise.all(this.named(names).map(loop => loop.stop()))
    this.parts.log.debug('event dispatcher stopped')
  }

  private named(names: readonly string[] | undefined): readonly ConsumerLoop[] {
    return names ? this.loops.filter(({ name }) => names.includes(name)) : this.loops
  }
}

/**
 * Runs one consumer along the log: reads from its cursor, passes on relevant events, moves the cursor in the same transaction. Only one
 * process runs a consumer, so the cursor is read at its start and then kept in memory.
 */
class ConsumerLoop {
  private readonly parts: DispatcherParts
  private readonly consumer: AnyConsumer
  private readonly tail: EventTail
  private readonly size: PieceSize
  private readonly worker: Worker
  /** Whether cursors are written about once a second, see `WRITE_INTERVAL_MS`. */
  private readonly isPaced: boolean
  /** Undefined while the consumer is not started here. */
  private cursor: number | undefined
  /** When the cursor was stored, on the monotonic clock. */
  private savedAt = 0
  /** Events up to here are processed or irrelevant; at least `cursor`. */
  private seen = 0
  /** A batch up to here failed: its events are processed one at a time. */
  private singlyUpTo = 0
  private suspect: { readonly seq: number; readonly failures: number } | undefined
  /** Errors thrown by `concerns` in the last read, by position. */
  private readonly concernErrors = new Map<number, unknown>()

  constructor(parts: DispatcherParts, tail: EventTail, consumer: AnyConsumer) {
    this.parts = parts
    this.tail = tail
    this.consumer = consumer
    this.isPaced = parts.database.dialect === 'postgres'
    const most = this.eventsPerTurn * (this.isPaced ? BATCHES_AT_ONCE : 1)
    this.size = this.isPaced
      ? new PieceSize(parts.clock, this.eventsPerTurn, most, PACED_PIECE_MS)
      : new PieceSize(parts.clock, Math.min(MIN_EVENTS_PER_TURN, most), most)
    this.worker = new Worker({
      ...parts,
      failure: 'event consumer failed',
      failureFields: { consumer: consumer.name },
      runPiece: stopping => this.runBatch(stopping),
    })
  }

  /** Loads the cursor, which another node may have moved, or stores that of a new consumer. */
  async open(): Promise<void> {
    const { database } = this.parts
    const { name, startsAt } = this.consumer
    const known = await findCursor(database.reader, name)
    this.cursor = this.seen = known ?? (startsAt === 'oldest' ? 0 : await this.startAtNewest())
    this.savedAt = this.parts.clock.monotonic()
    this.singlyUpTo = 0
    this.suspect = undefined
    this.worker.reopen()
  }

  get name(): string {
    return this.consumer.name
  }

  get isOpen(): boolean {
    return this.cursor !== undefined
  }

  /** Stored immediately, so that events appended before a crash are not missed. */
  private startAtNewest(): Promise<number> {
    return this.parts.database.write(async tx => {
      const newest = await newestSeq(tx.db)
      await moveCursor(tx, this.consumer.name, newest)
      return newest
    })
  }

  /** Number of events not yet examined. @param newest read before the call */
  behind(newest: number): number {
    return Math.max(0, newest - this.seen)
  }

  wake(): void {
    if (!this.isOpen) return
    this.worker.wake()
    this.worker.start()
  }

  async stop(): Promise<void> {
    await this.worker.stop()
    this.cursor = undefined
  }

  /** The last position this consumer no longer needs, which may be past its cursor. @param newest read before the call */
  async passed(newest: number): Promise<number> {
    const { consumer, parts } = this
    const { reader } = parts.database
    const from = this.cursor === undefined ? ((await findCursor(reader, consumer.name)) ?? 0) : this.seen
    const [next] = await readEventsAfter(reader, from, consumer.kinds, 1)
    return next ? next.seq - 1 : newest
  }

  private async runBatch(stopping: AbortSignal): Promise<number> {
    const read = await this.readNext()
    const batch = this.batchOf(read.events)
    const isCut = batch.length < read.events.length
    const upTo = isCut ? (batch.at(-1)?.seq ?? read.end) : read.end
    if (batch.length > 0) await this.process(batch, upTo)
    else await this.skipTo(upTo)
    if (isCut || !read.isLast) return AT_ONCE
    if (!stopping.aborted) await this.rest(batch.length > 0, stopping)
    return WHEN_WOKEN
  }

  /** In real time, like the pauses of the database. */
  private async rest(hasWritten: boolean, stopping: AbortSignal): Promise<void> {
    if (this.isPaced && hasWritten) await systemClock.sleep(WRITE_INTERVAL_MS, stopping)
    else await pauseFor(PAUSE_MS)
  }

  private async readNext(): Promise<Read> {
    const limit = Math.max(this.eventsPerTurn, EVENTS_PER_TURN) * (this.isPaced ? BATCHES_AT_ONCE : 1)
    const read = await this.tail.readAfter(this.seen, this.consumer.kinds, limit)
    if (read.events.length > 0) await this.consumer.refresh?.(this.parts.database.reader, read.events)
    this.concernErrors.clear()
    return { ...read, events: read.events.filter(event => this.isFor(event)) }
  }

  private get eventsPerTurn(): number {
    return this.consumer.eventsPerTurn ?? EVENTS_PER_TURN
  }

  /** The first events, of the weight of a turn; at least one. */
  private batchOf(events: Batch): Batch {
    const [first] = events
    const limit = first && first.seq <= this.singlyUpTo ? 1 : this.size.rows
    let [count, weight] = [0, 0]
    for (const event of events) {
      weight += this.weightOf(event)
      if (count > 0 && weight > limit) break
      count += 1
    }
    return events.slice(0, count)
  }

  private weightOf(event: StoredEvent<EventKind>): number {
    // A damaged event is found by `react`.
    return this.concernErrors.has(event.seq) ? 1 : (this.consumer.weigh?.(event as never) ?? 1)
  }

  /** Stores the cursor only now and then: skipping needs no transaction. */
  private async skipTo(upTo: number): Promise<void> {
    const isOld = this.isPaced && this.parts.clock.monotonic() - this.savedAt > MAX_UNSAVED_MS
    const unsaved = upTo - (this.cursor ?? 0)
    if (unsaved > MAX_UNSAVED || (isOld && unsaved > 0)) await this.move(upTo)
    else this.seen = upTo
  }

  private isFor(event: StoredEvent<EventKind>): boolean {
    const { includesOwnMail = false } = this.consumer
    if (isAppliance(event.workspaceId) && !includesOwnMail) return false
    try {
      return this.consumer.concerns?.(event as never) ?? true
    } catch (error) {
      // Treated like an error of `react`, so that the event is set aside in the end.
      this.concernErrors.set(event.seq, error)
      return true
    }
  }

  private async react(tx: Tx, batch: Batch): Promise<void> {
    for (const { seq } of batch) if (this.concernErrors.has(seq)) throw this.concernErrors.get(seq)
    await this.consumer.react(tx, batch as never)
  }

  private async process(batch: Batch, upTo: number): Promise<void> {
    let thrown: { readonly error: unknown } | undefined
    try {
      const weight = batch.reduce((sum, event) => sum + this.weightOf(event), 0)
      await this.size.measured(weight, measure =>
        this.move(upTo, async tx => {
          thrown = undefined
          try {
            await measure(() => this.react(tx, batch))
          } catch (error) {
            thrown = { error }
            throw error
          }
        }),
      )
      this.worker.resetBackoff()
    } catch (error) {
      // Errors of the commit or the disk are not the event's fault.
      if (!thrown || isStorageError(thrown.error)) throw error
      if (!(await this.countFailure(batch, describeError(thrown.error)))) throw error
    }
  }

  /**
   * Counts a failure against a single event. Setting it aside does not reset the back-off, so a consumer that fails on everything slows down.
   *
   * @returns whether it was set aside
   */
  private async countFailure(batch: Batch, error: string): Promise<boolean> {
    this.singlyUpTo = Math.max(this.singlyUpTo, batch.at(-1)?.seq ?? 0)
    const [event, ...others] = batch
    if (!event || others.length > 0) return false
    const failures = this.suspect?.seq === event.seq ? this.suspect.failures + 1 : 1
    this.suspect = { seq: event.seq, failures }
    if (failures < MAX_TRIES) return false
    const { clock, log } = this.parts
    const { name: consumer } = this.consumer
    await this.move(event.seq, tx => setAside(tx.db, { consumer, event, error, setAsideAt: clock.now() }))
    const { seq, kind, messageId } = event
    log.error('event set aside', { consumer, seq, kind, messageId, error })
    return true
  }

  private async move(seq: number, react?: (tx: Tx) => Promise<void>): Promise<void> {
    const { database } = this.parts
    const { name } = this.consumer
    const from = this.cursor ?? 0
    const isMoved = await database.write(async tx => {
      const isHere = await advanceCursor(tx, name, from, seq)
      if (isHere) await react?.(tx)
      return isHere
    })
    // If it was elsewhere, an earlier commit had moved it and its answer was lost.
    this.cursor = this.seen = isMoved ? seq : ((await findCursor(database.reader, name)) ?? from)
    this.savedAt = this.parts.clock.monotonic()
  }
}
