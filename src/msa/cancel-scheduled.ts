/**
 * Cancels scheduled mail.
 *
 * A scheduled message is an ordinary queue entry due at `send_at`, so it survives a restart; a sandbox keeps its own table
 * (`sandbox-runner.ts`). Starting and cancelling both check the message's status in a transaction, so exactly one of them wins.
 */
import { giveBackToLimits } from '../accounts/sending-limit-store.js'
import { AppError } from '../core/errors.js'
import type { Tx } from '../db/database.js'
import { recordTransitions } from '../messages/message-history.js'
import type { Message } from '../messages/message-store.js'
import { deleteScheduled } from './sandbox/sandbox-schedule-store.js'

/**
 * Cancels the messages that have not started, and returns their count to the workspace's limits.
 *
 * @param messages all of the request, as this transaction reads them
 * @param scheduledAt undefined for mail that was never scheduled
 * @throws AppError conflict if sending has started or the mail was already cancelled
 */
export async function cancelScheduled(
  tx: Tx,
  messages: readonly Message[],
  scheduledAt: number | undefined,
): Promise<void> {
  const waiting = messages.filter(message => message.status === 'scheduled')
  const hasBegun = messages.some(({ status, reason }) => reason === null && !isBeforeSending(status))
  if (hasBegun || scheduledAt === undefined) throw new AppError('conflict', 'sending has already started')
  if (waiting.length === 0)
    throw new AppError('conflict', 'the message was already cancelled, or all its recipients were skipped')
  const ids = waiting.map(({ id }) => id)
  await deleteScheduled(tx.db, ids)
  await recordTransitions(
    tx,
    ids.map(messageId => ({ kind: 'cancelled', messageId, at: scheduledAt })),
  )
  // One request's messages were counted at the same time; sandbox mail is not counted.
  const counted = waiting.filter(({ isSandbox }) => !isSandbox)
  const [first] = counted
  if (first) await giveBackToLimits(tx.db, first.workspaceId, counted.length, first.createdAt)
}

function isBeforeSending(status: Message['status']): boolean {
  return status === 'scheduled' || status === 'cancelled'
}
