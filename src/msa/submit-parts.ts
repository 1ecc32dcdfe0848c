/** Dependencies of `submit.ts` and its post-commit callbacks. Types only. */
import type { NewId } from '../core/ids.js'
import type { Database } from '../db/database.js'
import type { SlidingWindow } from '../http/sliding-window.js'
import type { MessageContent } from '../messages/content-store.js'
import type { Log } from '../world/log.js'
import type { Clock } from '../world/time/clock.js'

export interface StoreParts {
  /** How long delivery is retried before a message expires, ms. */
  readonly expireMs: number
  /** Signals the queue that mail in this lane was committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
  /** Passes a just committed content to the queue, which saves reading it back. */
  readonly onStored?: (content: MessageContent) => void
  /** Wakes event consumers for events no delivery follows: suppressed recipients, sandbox outcomes. */
  readonly onEvents?: () => void
  /** Signals that sandbox mail is scheduled for this time, ms since epoch UTC. */
  readonly onSandboxScheduled?: (dueAt: number) => void
  /** Absent in commands, whose output goes to the terminal. */
  readonly log?: Log
}

export interface SubmitParts extends StoreParts {
  readonly database: Database
  readonly clock: Clock
  readonly newId: NewId
  /** Counts recipients per key and minute. */
  readonly emailWindows: SlidingWindow
}
