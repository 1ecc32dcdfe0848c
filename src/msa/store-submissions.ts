/**
 * Stores accepted submissions: contents, one message per recipient, events; then enqueues live mail or simulates sandbox mail.
 *
 * Called by `submit.ts` in the caller's transaction. Rows of many submissions are inserted together. The queue is signalled after the
 * commit. Makes no decisions.
 */
import { given } from '../core/given.js'
import { isoTime } from '../core/moments.js'
import type { Tx } from '../db/database.js'
import type { Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import { PART_OCTETS } from '../mail/message-spool.js'
import { insertContents, insertPart, type MessageContent, isLargeContent } from '../messages/content-store.js'
import { logMessage } from '../messages/mail-log.js'
import { originOf, type MailOrigin, priorityOf } from '../messages/mail-origin.js'
import { insertAllMessages } from '../messages/message-store.js'
import type { MessageStatus } from '../messages/message-status.js'
import type { Log } from '../world/log.js'
import { nextTurn } from '../world/time/clock.js'
import type { AcceptedSubmission, SubmittedRecipient, StoreParts } from './mail-submission.js'
import type { Recipient } from './recipients.js'
import { simulateDelivery } from './sandbox/simulator.js'
import { insertQueueEntries, laneOf, type NewQueueEntry } from '../queue/queue-store.js'

/** Messages stored before yielding to the event loop. Other writers wait until all are stored; readers see none before the commit. */
const MESSAGES_AT_ONCE = 64
/** Text characters stored before yielding. */
const CHARACTERS_AT_ONCE = 1_048_576

/** @param now ms since epoch UTC @param isSandbox simulate instead of enqueueing */
export async function storeSubmissions(
  tx: Tx,
  parts: StoreParts,
  accepted: readonly AcceptedSubmission[],
  isSandbox: boolean,
  now: number,
): Promise<void> {
  for (const [index, piece] of inPieces(accepted).entries()) {
    if (index > 0) await nextTurn()
    await storePiece(tx, parts, piece, isSandbox, now)
  }
}

function inPieces(accepted: readonly AcceptedSubmission[]): (readonly AcceptedSubmission[])[] {
  // The common case.
  if (accepted.length === 1 && isPiece(accepted[0])) return [accepted]
  const pieces: AcceptedSubmission[][] = []
  let [messages, characters] = [MESSAGES_AT_ONCE, 0]
  for (const one of accepted.flatMap(inSlices)) {
    const { content, recipients, isContentStored } = one
    if (messages + recipients.length > MESSAGES_AT_ONCE || characters >= CHARACTERS_AT_ONCE) {
      pieces.push([])
      messages = characters = 0
    }
    pieces.at(-1)?.push(one)
    messages += recipients.length
    if (!isContentStored) characters += (content.html?.length ?? 0) + (content.text?.length ?? 0)
  }
  return pieces
}

/** All slices but the first add recipients to the stored content. */
function inSlices(one: AcceptedSubmission): AcceptedSubmission[] {
  const { recipients } = one
  if (isPiece(one)) return [one]
  return Array.from({ length: Math.ceil(recipients.length / MESSAGES_AT_ONCE) }, (_, index) => {
    const from = index * MESSAGES_AT_ONCE
    const slice = { ...one, recipients: recipients.slice(from, from + MESSAGES_AT_ONCE) }
    return index === 0 ? slice : { ...slice, isContentStored: true }
  })
}

function isPiece(one: AcceptedSubmission | undefined): boolean {
  return one !== undefined && one.recipients.length <= MESSAGES_AT_ONCE
}

async function storePiece(
  tx: Tx,
  parts: StoreParts,
  piece: readonly AcceptedSubmission[],
  isSandbox: boolean,
  now: number,
): Promise<void> {
  await storeContents(
    tx,
    piece.filter(({ isContentStored }) => !isContentStored),
  )
  await insertAllMessages(tx.db, isSandbox, piece.map(toMessages))
  await appendEvents(
    tx,
    piece.flatMap(({ content, recipients }) => {
      const origin = originOf(content)
      return recipients.flatMap(one => toEvent(one, content, origin, isSandbox))
    }),
  )
  const deliver = isSandbox ? simulateDelivery : enqueueMessages
  await deliver(tx, parts, piece, now)
  if (piece.some(({ recipients }) => recipients.some(({ skip }) => skip === 'suppressed')))
    tx.onCommit(() => parts.onEvents?.())
  const { log } = parts
  if (log) tx.onCommit(() => logAccepted(log, piece, isSandbox))
}

function logAccepted(log: Log, piece: readonly AcceptedSubmission[], isSandbox: boolean): void {
  for (const { content, recipients, isContentStored } of piece) {
    const submission = { from: content.from.address, ...content.submittedBy }
    const facts = {
      workspaceId: content.workspaceId,
      ...(isSandbox ? { isSandbox } : {}),
      ...(content.scheduledAt === undefined ? {} : { scheduledAt: isoTime(content.scheduledAt) }),
      ...(content.batch ? { batchId: content.batch.id } : {}),
      ...(content.campaignId === undefined ? {} : { campaignId: content.campaignId }),
      ...(content.relayed && !isContentStored ? { size: content.relayed.size } : {}),
    }
    for (const { messageId, address, skip } of recipients)
      if (skip === null) logMessage(log, 'accepted', messageId, submission, address, facts)
      else
        logMessage(log, skip === 'suppressed' ? skip : 'skipped', messageId, submission, address, {
          ...facts,
          reason: skip,
        })
  }
}

async function storeContents(tx: Tx, piece: readonly AcceptedSubmission[]): Promise<void> {
  await insertContents(
    tx.db,
    piece.map(({ content }) => content),
  )
  for (const { content, attached } of piece)
    if (attached && attached.length > 0)
      await insertPart(tx.db, content.id, 1, attached.subarray(0, PART_OCTETS))
}

function toMessages({ content, recipients, dsn, data }: AcceptedSubmission) {
  const messages = recipients.map(one => ({
    id: one.messageId,
    recipient: one.address,
    status: firstStatus(one, content),
    reason: one.skip,
    ...(one.contactId === undefined ? {} : { contactId: one.contactId }),
    ...(data ? given({ mergeData: data.get(one.asked) }) : {}),
    ...dsn?.get(one.asked),
  }))
  return { content, messages }
}

function firstStatus({ skip }: Recipient, { scheduledAt }: MessageContent): MessageStatus {
  if (skip === null) return scheduledAt === undefined ? 'sent' : 'scheduled'
  return skip === 'suppressed' ? 'suppressed' : 'failed'
}

function toEvent(
  one: SubmittedRecipient,
  content: MessageContent,
  origin: MailOrigin,
  isSandbox: boolean,
): Event[] {
  const head = {
    workspaceId: content.workspaceId,
    messageId: one.messageId,
    isSandbox,
    occurredAt: content.createdAt,
    payload: {
      to: one.address,
      ...origin,
      ...(one.contactId === undefined ? {} : { contactId: one.contactId }),
    },
  }
  if (one.skip === null) return [{ ...head, kind: 'email.accepted' }]
  return one.skip === 'suppressed' ? [{ ...head, kind: 'email.suppressed' }] : []
}

export async function enqueueMessages(
  tx: Tx,
  parts: StoreParts,
  accepted: readonly AcceptedSubmission[],
  now: number,
): Promise<void> {
  const entries = accepted.flatMap(({ content, recipients, dueAt, dsn }) => {
    const priority = priorityOf(content)
    const isLarge = isLargeContent(content)
    const { campaignId } = content
    return recipients
      .filter(one => one.skip === null)
      .map(one => {
        const notify = dsn?.get(one.asked)?.notify
        const entry = {
          messageId: one.messageId,
          workspaceId: content.workspaceId,
          destination: one.destination,
          priority,
          nextAttemptAt: dueAt,
          expiresAt: dueAt + parts.expireMs,
          enqueuedAt: now,
          contentId: content.id,
          recipient: one.address,
          isLarge,
          campaignId,
        }
        return notify === undefined ? entry : { notify, ...entry }
      })
  })
  const stored: readonly NewQueueEntry[] = parts.claimAccepted?.(tx, entries) ?? entries
  const firstDue = new Map<string, number>()
  for (const entry of stored) {
    if (entry.claim) continue
    const lane = laneOf(entry)
    firstDue.set(lane, Math.min(entry.nextAttemptAt, firstDue.get(lane) ?? Infinity))
  }
  await insertQueueEntries(tx.db, stored)
  tx.onCommit(() => {
    for (const { content, dueAt } of accepted) if (dueAt <= now) parts.onStored?.(content)
    for (const [lane, dueAt] of firstDue) parts.onEnqueued(lane, dueAt)
    if (entries.length > 0) parts.onMessages?.(entries.length)
  })
}
