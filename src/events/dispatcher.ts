/**
 * Delivers the event log to its consumers, each at its own pace. A consumer's writes and its cursor are one transaction, so each event
 * takes effect exactly once.
 *
 * Consumers only write rows; workers act on them over the network. A consumer that throws is retried with backoff, event by event; the
 * others continue. An event that keeps failing is set aside (`set-aside-store.ts`). Database errors never set an event aside.
 */
import { describeError } from '../core/errors.js'
import { ConsumerLoop, type LoopParts } from './consumer-loop.js'
import type { AnyConsumer } from './consumer.js'
import type { EventKind } from './event.js'
import { EventTail } from './event-tail.js'
import { dropSetAside, listRetryRequested, setAside } from './set-aside-store.js'
import { newestSeq, type StoredEvent } from './store.js'

export class Dispatcher {
  private readonly parts: LoopParts
  private readonly consumers: readonly AnyConsumer[]
  private readonly tail: EventTail
  private readonly loops: ConsumerLoop[]

  constructor(parts: LoopParts, consumers: readonly AnyConsumer[]) {
    this.parts = parts
    this.consumers = consumers
    this.tail = new EventTail(parts.database.reader)
    this.loops = consumers.map(consumer => new ConsumerLoop(parts, this.tail, consumer))
  }

  /** Starts with the events appended since the last stop. Resolves once the cursor of every new consumer is stored. */
  async start(): Promise<void> {
    for (const loop of this.loops) await loop.open()
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

  /** Cheap; call it after every commit that appended events. */
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

  /** For monitoring: number of events each consumer lags behind. */
  async lags(): Promise<{ consumer: string; events: number }[]> {
    const newest = await newestSeq(this.parts.database.reader)
    return this.loops.map((loop, at) => ({
      consumer: this.consumers[at]?.name ?? '',
      events: loop.behind(newest),
    }))
  }

  /** Resolves once every consumer has finished its current batch. */
  async stop(): Promise<void> {
    await Promise.all(this.loops.map(loop => loop.stop()))
    this.parts.log.debug('event dispatcher stopped')
  }
}
