/** What the door works with, and whom it tells of what was committed. Holds no logic. */
import type { NewId } from '../core/ids.js'
import type { Database } from '../db/database.js'
import type { SlidingWindow } from '../http/sliding-window.js'
import type { MessageContent } from '../messages/content-store.js'
import type { Log } from '../world/log.js'
import type { Clock } from '../world/time/clock.js'

export interface StoreParts {
  /** How long a message is tried before it is given up, ms. */
  readonly expireMs: number
  /** Tells the queue that mail in this lane was committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
  /** Gives the queue a content that was just committed, so that it need not read it back. */
  readonly onStored?: (content: MessageContent) => void
  /** Tells the consumers of the event log of what settles nothing later on: suppressed recipients, a sandbox's outcomes. */
  readonly onEvents?: () => void
  /** Tells that mail of a sandbox waits for this moment, ms since epoch UTC. */
  readonly onSandboxScheduled?: (dueAt: number) => void
  /** Absent for a command, whose output is its own. */
  readonly log?: Log
}

export interface SubmitParts extends StoreParts {
  readonly database: Database
  readonly clock: Clock
  readonly newId: NewId
  /** Counts recipients per key and minute. */
  readonly emailWindows: SlidingWindow
}
