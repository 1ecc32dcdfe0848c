/** A message as the API and the command line show it: its status, and the trace of its attempts. */
import type { Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { waitingToApi, type ShownWaiting } from '../../http/answer/waiting-for.js'
import { formatReply, type HostTried } from '../../mail/outcome.js'
import { listAttempts, type Attempt, listAttemptsOf } from '../../messages/attempt-store.js'
import { findContents, findScheduledAt, type MessageContent } from '../../messages/content-store.js'
import type { Moment, MessageStatus } from '../../messages/message-status.js'
import { type Message, findMessagesOf } from '../../messages/message-store.js'
import { findDeliveryStates } from '../../queue/delivery-state-store.js'
import { listEntries, type QueueListEntry } from '../../queue/operator/queue-admin-store.js'
import { findEntries } from '../../queue/queue-store.js'
import { findMessageWaits, type MessageWaitsParts } from '../../queue/waiting.js'
import type { MessageSchema, MessageStatusSchema } from './message-schema.js'

/** An answer but for why the message waits, which `withWait` adds: sites are asked outside of the snapshot. */
export interface Unwaited<Shown> {
  readonly shown: Shown
  /** Undefined if the message is not in the queue, or the id stands for several. */
  readonly queued: QueueListEntry | undefined
}

type ShownStatus = Omit<Static<typeof MessageStatusSchema>, 'waiting_for'>
type ShownMessage = Omit<Static<typeof MessageSchema>, 'waiting_for'>

export async function withWait<Shown extends object>(
  parts: MessageWaitsParts,
  { shown, queued }: Unwaited<Shown>,
): Promise<Shown & { waiting_for: ShownWaiting | null }> {
  const waits = await findMessageWaits(parts, queued ? [queued] : [])
  return { ...shown, waiting_for: waitingToApi(queued && waits.get(queued.messageId)) }
}

export async function messageStatus(db: Queries, message: Message): Promise<Unwaited<ShownStatus>> {
  return statusOf(db, message, await listAttempts(db, message.id))
}

export async function messageWithTrace(db: Queries, message: Message): Promise<Unwaited<ShownMessage>> {
  const attempts = await listAttempts(db, message.id)
  const [content] = await findContents(db, [message.contentId])
  const { shown, queued } = await statusOf(db, message, attempts)
  return {
    shown: {
      ...shown,
      ...contentToApi(content),
      campaign_id: message.campaignId ?? null,
      contact_id: message.contactId ?? null,
      created_at: isoTime(message.createdAt),
      is_sandbox: message.isSandbox,
      trace: attempts.map(attemptToApi),
    },
    queued,
  }
}

export function contentToApi(content: MessageContent | undefined) {
  const { name, address } = content?.from ?? { address: '' }
  const cc = content?.addressees?.cc ?? []
  return {
    subject: content?.subject ?? '',
    from: name === undefined ? address : `${name} <${address}>`,
    ...(cc.length === 0 ? {} : { cc: cc.map(({ address }) => address) }),
    tags: [...(content?.tags ?? [])],
    attachments: (content?.attachments ?? []).map(({ filename, contentType, size }) => ({
      filename,
      content_type: contentType,
      size,
    })),
    batch_id: content?.batch?.id ?? null,
    template_id: content?.templateId ?? null,
  }
}

async function statusOf(
  db: Queries,
  message: Message,
  attempts: readonly Attempt[],
): Promise<Unwaited<ShownStatus>> {
  const [queued] = await listEntries(db, { messageIds: [message.id] }, 1)
  const scheduledAt = await findScheduledAt(db, message.workspaceId, message.contentId)
  const last = attempts.at(-1)
  const states = message.status === 'sent' ? await findDeliveryStates(db, [message.id]) : undefined
  const shown = {
    message_id: message.id,
    status: message.status,
    to: message.recipient,
    ...historyToApi(message),
    ...(message.reason === null ? {} : { reason: message.reason }),
    ...(scheduledAt === undefined ? {} : { scheduled_at: isoTime(scheduledAt) }),
    delivery_state: states?.get(message.id) ?? null,
    attempts: Math.max(queued?.attempts ?? 0, last?.number ?? 0),
    next_attempt_at: isoTimeOrNull(queued?.nextAttemptAt ?? null),
    last_reply: last?.summary ?? null,
  }
  return { shown, queued }
}

/** Timestamps of a message or a group. */
export function historyToApi(history: Pick<Message, Moment | 'bounceType'>) {
  return {
    sent_at: isoTimeOrNull(history.sentAt),
    delivered_at: isoTimeOrNull(history.deliveredAt),
    opened_at: isoTimeOrNull(history.openedAt),
    clicked_at: isoTimeOrNull(history.clickedAt),
    bounced_at: isoTimeOrNull(history.bouncedAt),
    complained_at: isoTimeOrNull(history.complainedAt),
    bounce_type: history.bounceType,
  }
}

export function attemptToApi(attempt: Attempt): Static<typeof MessageSchema>['trace'][number] {
  return {
    attempt: attempt.number,
    started_at: isoTime(attempt.startedAt),
    finished_at: isoTime(attempt.finishedAt),
    outcome: attempt.kind,
    summary: attempt.summary,
    reply_code: attempt.replyCode,
    smtp_status: attempt.status,
    cause: attempt.classification?.cause ?? null,
    scope: attempt.classification?.scope ?? null,
    subtype: attempt.classification?.subtype ?? null,
    hosts: attempt.tried.map(hostToApi),
  }
}

function hostToApi(tried: HostTried): Static<typeof MessageSchema>['trace'][number]['hosts'][number] {
  const { tls } = tried
  return {
    host: tried.host,
    address: tried.address ?? null,
    port: tried.port,
    stage: tried.stage,
    reply: tried.reply ? formatReply(tried.reply) : null,
    error: tried.error ?? null,
    tls: tls
      ? {
          version: tls.version,
          cipher: tls.cipher,
          verified: tls.verified,
          unverified_reason: tls.unverifiedReason ?? null,
        }
      : null,
    tls_policy: tried.tlsPolicy ?? null,
    tls_policy_source: tried.tlsPolicySource ?? null,
    mta_sts: tried.sts
      ? { mode: tried.sts.mode, result: tried.sts.result ?? null, reason: tried.sts.reason ?? null }
      : null,
    duration_ms: Math.round(tried.durationMs),
    reused_connection: tried.reused,
  }
}

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

export async function groupStatus(db: Queries, group: ScheduledGroup): Promise<Unwaited<ShownStatus>> {
  const shown = await groupStatusFields(db, group, await listAttemptsOf(db, idsOf(group)))
  return { shown, queued: undefined }
}

/** Includes the attempts of all recipients, oldest first. */
export async function groupWithTrace(db: Queries, group: ScheduledGroup): Promise<Unwaited<ShownMessage>> {
  const attempts = await listAttemptsOf(db, idsOf(group))
  const [content] = await findContents(db, [group.id])
  const [first] = group.messages
  const shown = {
    ...(await groupStatusFields(db, group, attempts)),
    ...contentToApi(content),
    campaign_id: first?.campaignId ?? null,
    contact_id: null,
    created_at: isoTime(first?.createdAt ?? group.scheduledAt),
    is_sandbox: first?.isSandbox ?? false,
    trace: attempts.map(attempt => ({ ...attemptToApi(attempt), message_id: attempt.messageId })),
  }
  return { shown, queued: undefined }
}

function idsOf({ messages }: ScheduledGroup): string[] {
  return messages.map(({ id }) => id)
}

async function groupStatusFields(
  db: Queries,
  group: ScheduledGroup,
  attempts: readonly Attempt[],
): Promise<ShownStatus> {
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
