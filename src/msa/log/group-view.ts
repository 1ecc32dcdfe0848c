/**
 * A scheduled send to several recipients as the API shows it: one id for all, and each recipient's status.
 *
 * Called by the email routes. The status is `scheduled` while any recipient is waiting, then the lowest of any recipient. Skipped
 * recipients count only if all were skipped, cancelled ones only if nobody else remains. Each timestamp is that of the first
 * recipient to reach it. Read-only.
 */
import type { Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { listAttemptsOf, type Attempt } from '../../messages/attempt-store.js'
import { findContents, findScheduledAt } from '../../messages/content-store.js'
import type { MessageStatus, Moment } from '../../messages/message-status.js'
import { findMessagesOf, type Message } from '../../messages/message-store.js'
import { findEntries } from '../../queue/queue-store.js'
import type { MessageSchema, MessageStatusSchema } from './message-schema.js'
import { attemptToApi, contentToApi, historyToApi } from './message-view.js'

export interface ScheduledGroup {
  /** The content's id. */
  readonly id: string
  readonly scheduledAt: number
  /** At least two, in the order of the request. */
  readonly messages: readonly Message[]
}

/** Lowest first; the group has the lowest of its messages. */
const RANKS: readonly MessageStatus[] = [
  'scheduled',
  'sent',
  'failed',
  'suppressed',
  'bounced',
  'delivered',
  'opened',
  'clicked',
  'cancelled',
]

/** @returns undefined unless it is a scheduled send to several recipients; a single recipient has a message id */
export async function findGroup(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<ScheduledGroup | undefined> {
  const scheduledAt = await findScheduledAt(db, workspaceId, id)
  if (scheduledAt === undefined) return undefined
  const messages = await findMessagesOf(db, id)
  return messages.length > 1 ? { id, scheduledAt, messages } : undefined
}

export async function groupStatus(
  db: Queries,
  group: ScheduledGroup,
): Promise<Static<typeof MessageStatusSchema>> {
  return statusOf(db, group, await listAttemptsOf(db, idsOf(group)))
}

/** Includes the attempts of all recipients, oldest first. */
export async function groupWithTrace(
  db: Queries,
  group: ScheduledGroup,
): Promise<Static<typeof MessageSchema>> {
  const attempts = await listAttemptsOf(db, idsOf(group))
  const [content] = await findContents(db, [group.id])
  const [first] = group.messages
  return {
    ...(await statusOf(db, group, attempts)),
    ...contentToApi(content),
    campaign_id: first?.campaignId ?? null,
    contact_id: null,
    created_at: isoTime(first?.createdAt ?? group.scheduledAt),
    is_sandbox: first?.isSandbox ?? false,
    trace: attempts.map(attempt => ({ ...attemptToApi(attempt), message_id: attempt.messageId })),
  }
}

function idsOf({ messages }: ScheduledGroup): string[] {
  return messages.map(({ id }) => id)
}

async function statusOf(
  db: Queries,
  group: ScheduledGroup,
  attempts: readonly Attempt[],
): Promise<Static<typeof MessageStatusSchema>> {
  const { id, scheduledAt, messages } = group
  const entries = await findEntries(db, idsOf(group))
  return {
    message_id: id,
    status: lowest(messages),
    to: messages.map(({ recipient }) => recipient).join(', '),
    ...historyToApi({
      sentAt: firstMoment(messages, 'sentAt'),
      deliveredAt: firstMoment(messages, 'deliveredAt'),
      openedAt: firstMoment(messages, 'openedAt'),
      clickedAt: firstMoment(messages, 'clickedAt'),
      bouncedAt: firstMoment(messages, 'bouncedAt'),
      complainedAt: firstMoment(messages, 'complainedAt'),
      bounceType: inTime(messages, 'bouncedAt')[0]?.bounceType ?? null,
    }),
    scheduled_at: isoTime(scheduledAt),
    recipients: messages.map(message => ({
      to: message.recipient,
      message_id: message.id,
      status: message.status,
      ...(message.reason === null ? {} : { reason: message.reason }),
    })),
    delivery_state: null,
    attempts: messages.reduce((sum, message) => sum + attemptsAt(message, attempts, entries), 0),
    next_attempt_at: isoTimeOrNull(least(entries.map(({ nextAttemptAt }) => nextAttemptAt))),
    last_reply: attempts.at(-1)?.summary ?? null,
  }
}

function lowest(messages: readonly Message[]): MessageStatus {
  const mailed = messages.filter(({ reason }) => reason === null)
  const counting = new Set((mailed.length > 0 ? mailed : messages).map(({ status }) => status))
  return RANKS.find(rank => counting.has(rank)) ?? 'failed'
}

/** The queue counts an attempt in progress, which is not logged yet. */
function attemptsAt(
  { id }: Message,
  attempts: readonly Attempt[],
  entries: readonly { readonly messageId: string; readonly attempts: number }[],
): number {
  const logged = attempts.filter(({ messageId }) => messageId === id).at(-1)?.number ?? 0
  return Math.max(logged, entries.find(({ messageId }) => messageId === id)?.attempts ?? 0)
}

function firstMoment(messages: readonly Message[], moment: Moment): number | null {
  return least(messages.flatMap(message => message[moment] ?? []))
}

function inTime(messages: readonly Message[], moment: Moment): Message[] {
  return messages
    .filter(message => message[moment] !== null)
    .sort((a, b) => (a[moment] ?? 0) - (b[moment] ?? 0))
}

function least(moments: readonly number[]): number | null {
  return moments.length === 0 ? null : Math.min(...moments)
}
