/**
 * What a consumer of the event log is. Holds no logic.
 *
 * Implemented above this floor, one for each thing that follows from events; the dispatcher brings it its events.
 */
import type { Queries, Tx } from '../db/database.js'
import type { Event, EventKind } from './event.js'
import type { StoredEvent } from './store.js'

/** A consumer that names no kinds for its type takes events about messages. */
export interface EventConsumer<Kind extends EventKind = Event['kind']> {
  /** Names its cursor; never changed once released. */
  readonly name: string
  readonly kinds: readonly Kind[]
  /**
   * What it is given when it is new: all that the log still has, weeks of it, or only what is appended from then on. What makes
   * something leave this machine (webhooks, mails) begins at the newest.
   */
  readonly startsAt: 'oldest' | 'newest'
  /** Also gets events about the mail that the appliance itself writes, which is no workspace's. */
  readonly includesOwnMail?: boolean
  /** Fewer than usual (100) where one event is much work, more where it is next to none. */
  readonly eventsPerTurn?: number
  /** Looks up what `concerns` goes by: after events were read, so that whatever they follow upon is seen, and before it is asked of them. */
  refresh?(db: Queries): Promise<void>
  /** Whether anything follows from an event of these kinds; what nothing follows from is no work. */
  concerns?(event: StoredEvent<Kind>): boolean
  /** Reacts by writing in this transaction. Idempotent: after a crash the same event may come again. */
  react(tx: Tx, events: readonly StoredEvent<Kind>[]): Promise<void>
}

/** A consumer of whatever kinds; it is only ever given events of those, and of workspaces unless it asks for more. */
export interface AnyConsumer extends Omit<EventConsumer<EventKind>, 'react' | 'concerns'> {
  concerns?(event: never): boolean
  react(tx: Tx, events: readonly never[]): Promise<void>
}
