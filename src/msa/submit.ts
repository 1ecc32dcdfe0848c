/**
 * The door: every message that enters, by whatever way, passes here.
 *
 * authorise -> suppress -> store -> enqueue -> event, the last four in one transaction; the caller hears of success
 * only after that transaction is on disk, so nothing that was accepted can be lost.
 */
import { countAgainstLimits } from '../accounts/sending-limit-store.js'
import type { Workspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { NewId } from '../core/ids.js'
import type { Database, Tx } from '../db/database.js'
import type { Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import type { Principal } from '../http/principal.js'
import type { SlidingWindow } from '../http/sliding-window.js'
import { laneKey, PRIORITIES } from '../queue/lane.js'
import { insertContent, type MessageContent, type RelayedMessage } from '../queue/content-store.js'
import { insertMessages, type NewMessage } from '../queue/message-store.js'
import type { MessageStatus } from '../queue/message-status-store.js'
import { insertQueueEntries } from '../queue/queue-store.js'
import type { Clock } from '../world/clock.js'
import { sortRecipients, type Recipient } from './recipients.js'
import type { Sender } from './sender.js'

export interface SubmitParts {
  readonly database: Database
  readonly clock: Clock
  readonly newId: NewId
  /** Counts recipients per key and minute. */
  readonly emailWindows: SlidingWindow
  /** How long a message is tried before it is given up, ms. */
  readonly expireMs: number
  /** Tells the queue that mail in this lane was committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
  /** Gives the queue a content that was just committed, so that it need not read it back. */
  readonly onStored?: (content: MessageContent) => void
  /** Tells the consumers of the event log of mail that settles nothing later on: there were suppressed recipients. */
  readonly onSuppressed?: () => void
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
  /** What the submitter asked to be told of a recipient, by the recipient as in `to` (RFC 3461). */
  readonly reporting?: ReadonlyMap<string, Reporting>
}

export type Reporting = Pick<NewMessage, 'notify' | 'originalRecipient'>

/** A recipient with the message that stands for it, mailed or skipped. */
export interface Submitted extends Recipient {
  readonly messageId: string
}

/** @throws AppError rate_limited, limit_reached */
export async function submit(parts: SubmitParts, submission: Submission): Promise<Submitted[]> {
  const { principal, workspace } = submission
  const now = parts.clock.now()
  const content: MessageContent = {
    id: submission.contentId ?? parts.newId(),
    workspaceId: workspace.id,
    ...submission.sender,
    subject: submission.subject,
    ...(submission.html === undefined ? {} : { html: submission.html }),
    ...(submission.text === undefined ? {} : { text: submission.text }),
    ...(submission.relayed === undefined ? {} : { relayed: submission.relayed }),
    ...(submission.tags === undefined ? {} : { tags: submission.tags }),
    trackOpens: submission.trackOpens,
    trackClicks: submission.trackClicks,
    createdAt: now,
  }
  return parts.database.write(async tx => {
    const recipients = await sortRecipients(tx.db, workspace.id, submission.to)
    const submitted = recipients.map(recipient => ({ ...recipient, messageId: parts.newId() }))
    const mailed = submitted.filter(one => one.skip === null)
    if (!principal.isSandbox) {
      await countAgainstLimits(tx.db, workspace, mailed.length, now)
      // Last of all refusals, so that a request refused for another reason uses nothing up.
      takeFromKeyLimit(parts.emailWindows, principal, submission.to.length)
    }
    await store(tx, content, submission, submitted)
    if (!principal.isSandbox) await enqueue(tx, parts, content, mailed)
    await appendEvents(
      tx,
      submitted.flatMap(one => toEvent(one, content, principal.isSandbox)),
    )
    if (submitted.some(({ skip }) => skip === 'suppressed')) tx.onCommit(() => parts.onSuppressed?.())
    return submitted
  })
}

function takeFromKeyLimit(windows: SlidingWindow, principal: Principal, recipients: number): void {
  const state = windows.take(principal.keyId, recipients, principal.emailRateLimit)
  if (!state.isAllowed)
    throw new AppError('rate_limited', `this key may send ${state.limit} mails per minute`, {
      retryAfterMs: state.retryAfterMs,
    })
}

async function store(
  tx: Tx,
  content: MessageContent,
  { principal, reporting }: Submission,
  submitted: readonly Submitted[],
): Promise<void> {
  await insertContent(tx.db, content)
  await insertMessages(
    tx.db,
    content,
    principal.isSandbox,
    submitted.map(one => ({
      id: one.messageId,
      recipient: one.address,
      status: firstStatus(one),
      reason: one.skip,
      ...reporting?.get(one.asked),
    })),
  )
}

function firstStatus({ skip }: Recipient): MessageStatus {
  if (skip === null) return 'sent'
  return skip === 'suppressed' ? 'suppressed' : 'failed'
}

async function enqueue(
  tx: Tx,
  parts: SubmitParts,
  content: MessageContent,
  mailed: readonly Submitted[],
): Promise<void> {
  const now = content.createdAt
  await insertQueueEntries(
    tx.db,
    mailed.map(one => ({
      messageId: one.messageId,
      workspaceId: content.workspaceId,
      destination: one.destination,
      priority: PRIORITIES.transactional,
      nextAttemptAt: now,
      expiresAt: now + parts.expireMs,
      enqueuedAt: now,
      contentId: content.id,
      recipient: one.address,
    })),
  )
  tx.onCommit(() => {
    parts.onStored?.(content)
    for (const destination of new Set(mailed.map(one => one.destination)))
      parts.onEnqueued(laneKey(destination, PRIORITIES.transactional, content.workspaceId), now)
  })
}

function toEvent(one: Submitted, content: MessageContent, isSandbox: boolean): Event[] {
  const head = {
    workspaceId: content.workspaceId,
    messageId: one.messageId,
    isSandbox,
    occurredAt: content.createdAt,
    payload: { to: one.address },
  }
  if (one.skip === null) return [{ ...head, kind: 'email.accepted' }]
  return one.skip === 'suppressed' ? [{ ...head, kind: 'email.suppressed' }] : []
}
