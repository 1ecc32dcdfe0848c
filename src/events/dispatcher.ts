/**
 * Brings the event log to its consumers, each at its own pace and exactly once per event in the database's eyes:
 * what a consumer writes and how far it has come are one transaction.
 *
 * A consumer only writes rows; what needs a network is done by workers that find those rows. Where it throws it is tried again
 * after a pause, event by event; the others go on. An event that it cannot take is set aside after some tries, and the rest goes
 * on (`set-aside-store.ts`). While the database does not write nobody is at fault, and everything waits.
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

  /** Catches up with what was appended while nobody ran. Resolves once it is settled where each new consumer begins. */
  async start(): Promise<void> {
    for (const loop of this.loops) await loop.open()
    this.wake()
  }

  /** Gives consumers once more what was set aside and somebody wants tried again. @returns how many were taken */
  async retrySetAside(): Promise<number> {
    let taken = 0
    for (const { consumer: name, event } of await listRetryRequested(this.parts.database.reader)) {
      const consumer = this.consumers.find(one => one.name === name)
      if (consumer && (await this.retry(consumer, event))) taken += 1
    }
    return taken
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

  /** Something was appended. Cheap: call it after every commit that appended. */
  wake(): void {
    this.tail.appended()
    for (const loop of this.loops) loop.wake()
  }

  /** The position up to which no consumer has anything to react to any more. */
  async passed(): Promise<number> {
    const newest = await newestSeq(this.parts.database.reader)
    const passed = await Promise.all(this.loops.map(loop => loop.passed(newest)))
    return Math.min(newest, ...passed)
  }

  /** For monitors: how many events each consumer is behind the newest. */
  async lags(): Promise<{ consumer: string; events: number }[]> {
    const newest = await newestSeq(this.parts.database.reader)
    return this.loops.map((loop, at) => ({
      consumer: this.consumers[at]?.name ?? '',
      events: loop.behind(newest),
    }))
  }

  /** Resolves once every consumer has finished what it is at. */
  async stop(): Promise<void> {
    await Promise.all(this.loops.map(loop => loop.stop()))
    this.parts.log.debug('event dispatcher stopped')
  }
}
