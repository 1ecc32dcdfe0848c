/**
 * One consumer's way along the event log: reads on from its cursor, hands over what concerns it, moves the cursor with it.
 *
 * Used by the dispatcher, one for each consumer, with the end of the log that they share. Only one process at a time runs consumers, and
 * the log is only appended to in the order of commits: how far this one has come is read once and then known. Fails: never; it tries
 * again after a pause.
 */
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import { isAppliance } from '../core/owner.js'
import type { Database, Tx } from '../db/database.js'
import { PieceSize } from '../db/piece-size.js'
import { pauseFor, type Clock, type Timer } from '../world/time/clock.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import type { AnyConsumer } from './consumer.js'
import type { EventKind } from './event.js'
import type { EventTail, Read } from './event-tail.js'
import { isStorageError, setAside } from './set-aside-store.js'
import { findCursor, moveCursor, newestSeq, readEventsAfter, type StoredEvent } from './store.js'

export interface LoopParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** At most; fewer where they take longer than a consumer's share of a group commit. */
const EVENTS_PER_TURN = 100
const FEWEST_PER_TURN = 10
/** Events of other kinds that may lie between a stored cursor and what was looked at, to be read again after a restart. */
const PASSED_BY = 50_000
/** Between two looks at the log: where much is appended, many events share a turn. */
const REST_MS = 20
const RETRY: BackoffPolicy = { firstMs: 1_000, factor: 2, maxMs: 60_000 }
/** Of one event alone, before it is set aside: half a minute, so that what passes by itself may pass. */
const TRIES = 5

type Taken = readonly StoredEvent<EventKind>[]

export class ConsumerLoop {
  private readonly parts: LoopParts
  private readonly consumer: AnyConsumer
  private readonly tail: EventTail
  private readonly size: PieceSize
  private running: Promise<void> | undefined
  private isWoken = false
  private isStopped = false
  /** In a row; what is set aside is none that succeeds, so that a consumer that takes nothing is asked ever more rarely. */
  private failures = 0
  private retry: Timer | undefined
  /** As it stands in the database. */
  private cursor: number | undefined
  /** From the cursor up to here there is nothing for this consumer. */
  private seen = 0
  /** One of the events up to here could not be taken with the others: they come one by one. */
  private doubtedUpTo = 0
  private doubted: { readonly seq: number; readonly failures: number } | undefined
  /** What this consumer threw when it was asked whether an event concerns it, by the event's position; of the last refresh. */
  private readonly unclear = new Map<number, unknown>()

  constructor(parts: LoopParts, tail: EventTail, consumer: AnyConsumer) {
    this.parts = parts
    this.tail = tail
    this.consumer = consumer
    this.size = new PieceSize(parts.clock, Math.min(FEWEST_PER_TURN, this.eventsPerTurn), this.eventsPerTurn)
  }

  /** Settles where it begins. */
  async open(): Promise<void> {
    const { database } = this.parts
    const { name, startsAt } = this.consumer
    const known = await findCursor(database.reader, name)
    this.cursor = this.seen = known ?? (startsAt === 'oldest' ? 0 : await this.beginAtNewest())
  }

  /** Written down at once: what is appended from now on is for it, also after a crash. */
  private beginAtNewest(): Promise<number> {
    return this.parts.database.write(async tx => {
      const newest = await newestSeq(tx.db)
      await moveCursor(tx, this.consumer.name, newest)
      return newest
    })
  }

  /** How many events of the log it has yet to refresh at, or to take. @param newest read before */
  behind(newest: number): number {
    return Math.max(0, newest - this.seen)
  }

  wake(): void {
    this.isWoken = true
    if (this.isStopped || this.running || this.retry) return
    this.running = this.run().finally(() => {
      this.running = undefined
      this.wakeAgain()
    })
  }

  /** For a wake that came after the last refresh at the log but before the end of the run. */
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
    const from = this.cursor === undefined ? ((await findCursor(reader, consumer.name)) ?? 0) : this.seen
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
      if (!this.isStopped) await pauseFor(REST_MS)
    } catch (error) {
      this.pause(describeError(error))
    }
  }

  /** Reads on in the log and takes what it may of it at once. @returns whether there may be more */
  private async takeTurn(): Promise<boolean> {
    if (this.cursor === undefined) await this.open()
    const read = await this.readOn()
    const taken = read.events.slice(0, this.mostAtOnce(read.events))
    const isCut = taken.length < read.events.length
    const upTo = isCut ? (taken.at(-1)?.seq ?? read.end) : read.end
    if (taken.length > 0) await this.handOver(taken, upTo)
    else await this.passBy(upTo)
    return isCut || !read.isLast
  }

  /** From where this consumer stands: what concerns it. */
  private async readOn(): Promise<Read> {
    const limit = Math.max(this.eventsPerTurn, EVENTS_PER_TURN)
    const read = await this.tail.readAfter(this.seen, this.consumer.kinds, limit)
    if (read.events.length > 0) await this.consumer.refresh?.(this.parts.database.reader)
    this.unclear.clear()
    return { ...read, events: read.events.filter(event => this.isFor(event)) }
  }

  private get eventsPerTurn(): number {
    return this.consumer.eventsPerTurn ?? EVENTS_PER_TURN
  }

  /** One by one where one of them could not be taken with the others. */
  private mostAtOnce([first]: Taken): number {
    return first && first.seq <= this.doubtedUpTo ? 1 : this.size.rows
  }

  /** Nothing up to there is for this consumer, which is worth a write only now and then. */
  private async passBy(upTo: number): Promise<void> {
    if (upTo - (this.cursor ?? 0) > PASSED_BY) await this.move(upTo)
    else this.seen = upTo
  }

  private isFor(event: StoredEvent<EventKind>): boolean {
    const { includesOwnMail = false } = this.consumer
    if (isAppliance(event.workspaceId) && !includesOwnMail) return false
    try {
      return this.consumer.concerns?.(event as never) ?? true
    } catch (error) {
      // As if it could not take the event, so that it is set aside in the end.
      this.unclear.set(event.seq, error)
      return true
    }
  }

  private async react(tx: Tx, taken: Taken): Promise<void> {
    for (const { seq } of taken) if (this.unclear.has(seq)) throw this.unclear.get(seq)
    await this.consumer.react(tx, taken as never)
  }

  private async handOver(taken: Taken, upTo: number): Promise<void> {
    let thrown: { readonly error: unknown } | undefined
    try {
      await this.size.measured(taken.length, measure =>
        this.move(upTo, async tx => {
          thrown = undefined
          try {
            await measure(() => this.react(tx, taken))
          } catch (error) {
            thrown = { error }
            throw error
          }
        }),
      )
      this.failures = 0
    } catch (error) {
      // A fault of the commit, or of the disk, is no event's.
      if (!thrown || isStorageError(thrown.error)) throw error
      if (!(await this.isSetAside(taken, describeError(thrown.error)))) throw error
    }
  }

  /** Counts a failure against the event that caused it. @returns whether it is out of the way */
  private async isSetAside(taken: Taken, error: string): Promise<boolean> {
    this.doubtedUpTo = Math.max(this.doubtedUpTo, taken.at(-1)?.seq ?? 0)
    const [event, ...others] = taken
    if (!event || others.length > 0) return false
    const failures = this.doubted?.seq === event.seq ? this.doubted.failures + 1 : 1
    this.doubted = { seq: event.seq, failures }
    if (failures < TRIES) return false
    const { clock, log } = this.parts
    const { name: consumer } = this.consumer
    await this.move(event.seq, tx => setAside(tx.db, { consumer, event, error, setAsideAt: clock.now() }))
    const { seq, kind, messageId } = event
    log.error('event set aside', { consumer, seq, kind, messageId, error })
    return true
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
