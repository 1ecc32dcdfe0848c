/** The interface of an event consumer. Implemented in higher layers, called by the dispatcher. */
import type { Queries, Tx } from '../db/database.js'
import type { Event, EventKind } from './event.js'
import type { StoredEvent } from './store.js'

/** By default a consumer of events about messages. */
export interface EventConsumer<Kind extends EventKind = Event['kind']> {
  /** Key of its cursor; must never change. */
  readonly name: string
  readonly kinds: readonly Kind[]
  /**
   * Where a new consumer begins: with all events still in the log, which may be weeks, or with those appended from now on. A consumer
   * that causes external effects (webhooks, mail) begins at the newest.
   */
  readonly startsAt: 'oldest' | 'newest'
  /** Whether it also gets events about mail the server itself sends, which belongs to no workspace. */
  readonly includesOwnMail?: boolean
  /** Batch size, default 100; lower for expensive events, higher for cheap ones. */
  readonly eventsPerTurn?: number
  /** How many events this one counts as in a batch; default 1. */
  weigh?(event: StoredEvent<Kind>): number
  /** Refreshes the state `concerns` depends on. Called after events are read and before `concerns`, so that state is no older than they are. */
  refresh?(db: Queries, events: readonly Pick<StoredEvent<EventKind>, 'workspaceId'>[]): Promise<void>
  /** Whether the event matters to this consumer; others are skipped without a transaction. */
  concerns?(event: StoredEvent<Kind>): boolean
  /** Writes in the transaction that moves the cursor, so each event takes effect once. */
  react(tx: Tx, events: readonly StoredEvent<Kind>[]): Promise<void>
}

export interface AnyConsumer extends Omit<EventConsumer<EventKind>, 'react' | 'concerns' | 'weigh'> {
  weigh?(event: never): number
  concerns?(event: never): boolean
  react(tx: Tx, events: readonly never[]): Promise<void>
}
