/**
 * A submission (RFC 5598 §4.1, RFC 6409): one content and whom it is for. What the door (`submit.ts`) is handed, and what it makes
 * of that. Holds no logic.
 *
 * A single send is one, a message of a batch is one, a mail that came by SMTP is one.
 */
import type { Workspace } from '../accounts/workspace-store.js'
import type { MergeData } from '../content/rendering/merging.js'
import type { Principal } from '../http/principal.js'
import type { MessageContent } from '../messages/content-store.js'
import type { NewMessage } from '../messages/message-store.js'
import type { Recipient } from './recipients.js'
import type { ReleasePace } from './release-pace.js'

/** What all recipients get. The door adds whose it is and when it came. */
export type SubmittedContent = Omit<MessageContent, 'workspaceId' | 'createdAt' | 'isMarketing' | 'isPruned'>

/** What the submitter asked to be told of a recipient (RFC 3461 §4.1, §4.2). */
export type DsnParameters = Pick<NewMessage, 'notify' | 'originalRecipient'>

export interface Submission {
  readonly content: SubmittedContent
  /** Addresses as they were given. */
  readonly to: readonly string[]
  /** Octets of all attachments, one after the other; those after the first part are stored already (`store-long-content.ts`). */
  readonly attached?: Buffer
  /** By the address as in `to`. */
  readonly dsn?: ReadonlyMap<string, DsnParameters>
  /** What a recipient's merge tags are filled from beside what the content has for all; by the address as in `to`. */
  readonly data?: ReadonlyMap<string, MergeData>
  /** Whose addresses they are, where the submitter knows: ids by the address as in `to`. Absent: looked up. */
  readonly contacts?: ReadonlyMap<string, string>
  /** An earlier transaction stored the content; this one adds recipients to it. */
  readonly isContentStored?: boolean
  /** Whose mails per minute it is counted among; absent where it is held to no such rate, or released at a pace. */
  readonly key?: Pick<Principal, 'keyId' | 'emailRateLimit'>
}

/** Submissions of one workspace that are taken in the same transaction: all live or all sandboxed, all marketing or none. */
export interface SubmissionBatch {
  readonly workspace: Workspace
  /** Counts against no sending limit: whoever asks for such mail bounds it. */
  readonly isOutsideLimits?: boolean
  /** Outcomes are played, and nothing is queued or counted. */
  readonly isSandbox: boolean
  readonly submissions: readonly Submission[]
  /** What they are released at; at once where absent. */
  readonly pace?: ReleasePace
}

/** A recipient with the message that stands for it, mailed or skipped. */
export interface SubmittedRecipient extends Recipient {
  readonly messageId: string
}

/** A submission that was let in and is to be stored. */
export interface AcceptedSubmission {
  readonly content: MessageContent
  readonly recipients: readonly SubmittedRecipient[]
  /** When it may leave, ms since epoch UTC. */
  readonly dueAt: number
  readonly attached: Submission['attached'] | undefined
  readonly dsn: Submission['dsn'] | undefined
  readonly data: Submission['data'] | undefined
  readonly isContentStored: boolean | undefined
}
