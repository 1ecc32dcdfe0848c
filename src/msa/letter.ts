/** A letter on its way through the door: one content, and the messages that stand for its recipients. Holds no logic. */
import type { MessageContent } from '../messages/content-store.js'
import type { NewMessage } from '../messages/message-store.js'
import type { Recipient } from './recipients.js'

/** What the submitter asked to be told of a recipient (RFC 3461). */
export type Reporting = Pick<NewMessage, 'notify' | 'originalRecipient'>

/** A recipient with the message that stands for it, mailed or skipped. */
export interface Submitted extends Recipient {
  readonly messageId: string
}

export interface Letter {
  readonly content: MessageContent
  readonly submitted: readonly Submitted[]
  /** When it may leave, ms since epoch UTC. */
  readonly dueAt: number
  /** Octets of all attachments; those after the first part are stored already (`store-ahead.ts`). */
  readonly attached?: Buffer
  /** By the recipient as it was asked for. */
  readonly reporting?: ReadonlyMap<string, Reporting>
}
