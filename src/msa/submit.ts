/**
 * The door: every message that enters, by whatever way, passes here.
 *
 * authorise -> suppress -> store -> enqueue -> event, the last four in one transaction; the caller hears of success
 * only after that transaction is on disk, so nothing that was accepted can be lost.
 */
import { countAgainstLimits } from '../accounts/sending-limit-store.js'
import type { Workspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { Database, Tx } from '../db/database.js'
import type { Principal } from '../http/principal.js'
import type { SlidingWindow } from '../http/sliding-window.js'
import type { Addressees, HeaderField } from '../mail/compose/compose.js'
import type { AttachmentFacts, MessageContent, RelayedMessage } from '../messages/content-store.js'
import type { Clock } from '../world/time/clock.js'
import { acceptLetters, type AcceptParts } from './accept.js'
import type { Letter, Reporting, Submitted } from './letter.js'
import { sortRecipients } from './recipients.js'
import type { Sender } from './sender.js'
import { withPartsStored } from './store-ahead.js'

export interface SubmitParts extends AcceptParts {
  readonly database: Database
  readonly clock: Clock
  /** Counts recipients per key and minute. */
  readonly emailWindows: SlidingWindow
}

export interface Submission {
  readonly principal: Principal
  readonly workspace: Workspace
  readonly to: readonly string[]
  readonly sender: Sender
  readonly subject: string
  readonly html?: string
  readonly text?: string
  /** Instead of html and text: a message that came finished. */
  readonly relayed?: RelayedMessage
  /** Where parts of the message are stored already under this id. */
  readonly contentId?: string
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  readonly tags?: readonly string[]
  readonly addressees?: Addressees
  readonly headers?: readonly HeaderField[]
  readonly attachments?: readonly AttachmentFacts[]
  /** Octets of all attachments, one after the other. */
  readonly attached?: Buffer
  /** When it is to leave, ms since epoch UTC; at once where absent. */
  readonly scheduledAt?: number
  /** What the submitter asked to be told of a recipient, by the recipient as in `to` (RFC 3461). */
  readonly reporting?: ReadonlyMap<string, Reporting>
}

/** Writes more in the transaction that accepts the mail: the answer that is to be kept. */
export type AlsoInTransaction = (tx: Tx, submitted: readonly Submitted[]) => Promise<void>

/** @throws AppError rate_limited, limit_reached, validation_error, unavailable */
export async function submit(
  parts: SubmitParts,
  submission: Submission,
  also?: AlsoInTransaction,
): Promise<Submitted[]> {
  parts.database.storage.requireRoom()
  const { principal, workspace, scheduledAt, attached } = submission
  const now = parts.clock.now()
  const content = toContent(submission, submission.contentId ?? parts.newId(), now)
  const accept = () =>
    parts.database.write(async tx => {
      const recipients = await sortRecipients(tx.db, workspace.id, submission.to, workspace.isMarketing)
      const submitted = recipients.map(recipient => ({
        ...recipient,
        // The id of a scheduled send is its content's: it stands for all recipients, and for a single one it is the same.
        messageId: scheduledAt !== undefined && recipients.length === 1 ? content.id : parts.newId(),
      }))
      if (!principal.isSandbox) {
        const mailed = submitted.filter(one => one.skip === null)
        await countAgainstLimits(tx.db, workspace, mailed.length, now)
        // Last of all refusals, so that a request refused for another reason uses nothing up.
        takeFromKeyLimit(parts.emailWindows, principal, mailed.length)
      }
      const letter: Letter = {
        content,
        submitted,
        dueAt: scheduledAt ?? now,
        ...(attached === undefined ? {} : { attached }),
        ...(submission.reporting === undefined ? {} : { reporting: submission.reporting }),
      }
      await acceptLetters(tx, parts, [letter], principal.isSandbox, now)
      await also?.(tx, submitted)
      return submitted
    })
  return attached === undefined
    ? accept()
    : withPartsStored(parts.database, [{ contentId: content.id, attached }], accept)
}

/** What is stored of a submission, without its recipients. */
export function toContent(submission: Submission, id: string, now: number): MessageContent {
  const { html, text, relayed, tags, addressees, headers, attachments, scheduledAt } = submission
  return {
    id,
    workspaceId: submission.workspace.id,
    ...submission.sender,
    subject: submission.subject,
    ...(html === undefined ? {} : { html }),
    ...(text === undefined ? {} : { text }),
    ...(relayed === undefined ? {} : { relayed }),
    ...(tags === undefined ? {} : { tags }),
    ...(addressees === undefined ? {} : { addressees }),
    ...(headers === undefined ? {} : { headers }),
    ...(attachments === undefined ? {} : { attachments }),
    ...(scheduledAt === undefined ? {} : { scheduledAt }),
    ...(submission.workspace.isMarketing ? { isMarketing: true } : {}),
    trackOpens: submission.trackOpens,
    trackClicks: submission.trackClicks,
    createdAt: now,
  }
}

/**
 * @param mails recipients that are mailed; who is skipped costs nothing
 * @throws AppError rate_limited; validation_error where no minute ever has room for so many, so that nobody tries for ever
 */
export function takeFromKeyLimit(windows: SlidingWindow, principal: Principal, mails: number): void {
  const { keyId, emailRateLimit } = principal
  if (emailRateLimit > 0 && mails > emailRateLimit)
    throw new AppError(
      'validation_error',
      `to, cc and bcc have ${mails} recipients, and this key may send ${emailRateLimit} mails per minute: ` +
        'send to fewer at once, or as a batch, whose messages leave at that rate',
      { path: 'to' },
    )
  const state = windows.take(keyId, mails, emailRateLimit)
  if (!state.isAllowed)
    throw new AppError(
      'rate_limited',
      `this key may send ${state.limit} mails per minute; ${state.remaining} are left in this one`,
      { retryAfterMs: state.retryAfterMs, window: state },
    )
}
