/**
 * A submission (RFC 5598 §4.1, RFC 6409): one content and its recipients, as `submit.ts` receives and accepts it; and what intake needs.
 * Types only.
 *
 * A single send, a message of a batch and a mail received by SMTP are one submission each.
 */
import type { Workspace } from '../accounts/workspace-store.js'
import type { MergeData } from '../content/rendering/merging.js'
import type { Services } from '../db/services.js'
import type { Principal } from '../http/principal.js'
import type { MessageContent } from '../messages/content-store.js'
import type { NewMessage } from '../messages/message-store.js'
import type { Recipient } from './recipients.js'
import type { Tx } from '../db/database.js'
import type { NewQueueEntry } from '../queue/queue-store.js'
import type { SlidingWindow } from '../http/sliding-window.js'
import type { Log } from '../world/log.js'

/** Content shared by all recipients. `submit.ts` adds the workspace and the time. */
export type SubmittedContent = Omit<MessageContent, 'workspaceId' | 'createdAt' | 'isPruned'>

/** DSN parameters of a recipient (RFC 3461 §4.1, §4.2). */
export type DsnParameters = Pick<NewMessage, 'notify' | 'originalRecipient'>

export interface Submission {
  readonly content: SubmittedContent
  /** Addresses as the caller gave them. */
  readonly to: readonly string[]
  /** All attachments' octets, concatenated; parts after the first are already stored (`store-long-content.ts`). */
  readonly attached?: Buffer
  /** By the address as in `to`. */
  readonly dsn?: ReadonlyMap<string, DsnParameters>
  /** A recipient's own merge data, in addition to the content's; by the address as in `to`. */
  readonly data?: ReadonlyMap<string, MergeData>
  /** Contact ids by the address as in `to`; looked up if absent. */
  readonly contacts?: ReadonlyMap<string, string>
  /** An earlier transaction stored the content; this one only adds recipients. */
  readonly isContentStored?: boolean
  /** Whose per-minute rate applies; absent if no rate does, or if the batch has a `pace`. */
  readonly key?: Pick<Principal, 'keyId' | 'emailRateLimit'>
}

/** Submissions of one workspace in one transaction: all live or all sandboxed. */
export interface SubmissionBatch {
  readonly workspace: Workspace
  /** Exempt from sending limits; the caller bounds such mail. */
  readonly isOutsideLimits?: boolean
  /** Outcomes are simulated; nothing is queued or counted. */
  readonly isSandbox: boolean
  readonly submissions: readonly Submission[]
  /** Spreads due times; without it, mail is due at once. */
  readonly pace?: { next(mails: number): number }
}

/** A recipient and its message, mailed or skipped. */
export interface SubmittedRecipient extends Recipient {
  readonly messageId: string
}

/** A submission that was accepted and is about to be stored. */
export interface AcceptedSubmission {
  readonly content: MessageContent
  readonly recipients: readonly SubmittedRecipient[]
  /** When it becomes due, ms since epoch UTC. */
  readonly dueAt: number
  readonly attached: Submission['attached'] | undefined
  readonly dsn: Submission['dsn'] | undefined
  readonly data: Submission['data'] | undefined
  readonly isContentStored: boolean | undefined
}

export interface StoreParts {
  /** How long delivery is retried before a message expires, ms. */
  readonly expireMs: number
  /** Signals the queue that mail in this lane was committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
  /** Claims what can be delivered at once, in the transaction that stores it. @returns the entries to store */
  readonly claimAccepted?: (tx: Tx, entries: readonly NewQueueEntry[]) => readonly NewQueueEntry[]
  /** Passes a just committed content to the queue, which saves reading it back. */
  readonly onStored?: (content: MessageContent) => void
  /** Counts messages accepted for delivery. */
  readonly onMessages?: (count: number) => void
  /** Wakes event consumers for events no delivery follows: suppressed recipients, sandbox outcomes. */
  readonly onEvents?: () => void
  /** Signals that sandbox mail is scheduled for this time, ms since epoch UTC. */
  readonly onSandboxScheduled?: (dueAt: number) => void
  /** Absent in commands, whose output goes to the terminal. */
  readonly log?: Log
}

export interface SubmitParts extends StoreParts, Pick<Services, 'database' | 'clock' | 'newId'> {
  /** Counts recipients per key and minute. */
  readonly emailWindows: SlidingWindow
}
