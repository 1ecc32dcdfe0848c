/** A message as the API and the command line show it: its status, and the trace of its attempts. */
import type { Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { formatReply, type HostTried } from '../../mail/outcome.js'
import { listAttempts, type Attempt } from '../../messages/attempt-store.js'
import { findContents, findScheduledAt, type MessageContent } from '../../messages/content-store.js'
import type { Moment } from '../../messages/message-status.js'
import type { Message } from '../../messages/message-store.js'
import { findDeliveryStates } from '../../queue/delivery-state-store.js'
import { findEntries } from '../../queue/queue-store.js'
import type { MessageSchema, MessageStatusSchema } from './message-schema.js'

export async function messageStatus(
  db: Queries,
  message: Message,
): Promise<Static<typeof MessageStatusSchema>> {
  return statusOf(db, message, await listAttempts(db, message.id))
}

export async function messageWithTrace(db: Queries, message: Message): Promise<Static<typeof MessageSchema>> {
  const attempts = await listAttempts(db, message.id)
  const [content] = await findContents(db, [message.contentId])
  return {
    ...(await statusOf(db, message, attempts)),
    ...contentToApi(content),
    campaign_id: message.campaignId ?? null,
    contact_id: message.contactId ?? null,
    created_at: isoTime(message.createdAt),
    is_sandbox: message.isSandbox,
    trace: attempts.map(attemptToApi),
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
): Promise<Static<typeof MessageStatusSchema>> {
  const [entry] = await findEntries(db, [message.id])
  const scheduledAt = await findScheduledAt(db, message.workspaceId, message.contentId)
  const last = attempts.at(-1)
  const states = message.status === 'sent' ? await findDeliveryStates(db, [message.id]) : undefined
  return {
    message_id: message.id,
    status: message.status,
    to: message.recipient,
    ...historyToApi(message),
    ...(message.reason === null ? {} : { reason: message.reason }),
    ...(scheduledAt === undefined ? {} : { scheduled_at: isoTime(scheduledAt) }),
    delivery_state: states?.get(message.id) ?? null,
    attempts: Math.max(entry?.attempts ?? 0, last?.number ?? 0),
    next_attempt_at: isoTimeOrNull(entry?.nextAttemptAt ?? null),
    last_reply: last?.summary ?? null,
  }
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
