/**
 * Calls scheduled mail back.
 *
 * The queue's own due time does the waiting, so a restart changes nothing: a scheduled message is queued like any other and is
 * due at `send_at`; a sandbox's waits in a table of its own (`sandbox-runner.ts`). What begins it and what cancels it are both
 * transactions that look at its status and its queue row, so exactly one of them wins.
 */
import { giveBackToLimits } from '../accounts/sending-limit-store.js'
import { AppError } from '../core/errors.js'
import type { Tx } from '../db/database.js'
import { recordTransitions } from '../messages/message-history.js'
import type { Message } from '../messages/message-store.js'
import { deleteScheduled } from './sandbox/sandbox-schedule-store.js'

/**
 * Calls back what has not begun; what it counted against the limits of the workspace is free again.
 *
 * @param messages all of the request, as this transaction reads them
 * @param scheduledAt undefined for mail that never was scheduled
 * @throws AppError conflict: sent already, begun, or cancelled before
 */
export async function cancelScheduled(
  tx: Tx,
  messages: readonly Message[],
  scheduledAt: number | undefined,
): Promise<void> {
  const waiting = messages.filter(message => message.status === 'scheduled')
  const hasBegun = messages.some(({ status, reason }) => reason === null && !isBeforeSending(status))
  if (hasBegun || scheduledAt === undefined) throw new AppError('conflict', 'sending has begun already')
  if (waiting.length === 0)
    throw new AppError('conflict', 'the message was cancelled already, or had nobody to go to')
  const ids = waiting.map(({ id }) => id)
  await deleteScheduled(tx.db, ids)
  await recordTransitions(
    tx,
    ids.map(messageId => ({ kind: 'cancelled', messageId, at: scheduledAt })),
  )
  // Those of a request were counted together; in a sandbox nothing is.
  const counted = waiting.filter(({ isSandbox }) => !isSandbox)
  const [first] = counted
  if (first) await giveBackToLimits(tx.db, first.workspaceId, counted.length, first.createdAt)
}

function isBeforeSending(status: Message['status']): boolean {
  return status === 'scheduled' || status === 'cancelled'
}
