/**
 * SQL of messages: one row per recipient, and the content that all recipients of a request share, kept once.
 */
import type { Queries } from '../db/database.js'
import { flag, type Flag } from '../db/tables.js'
import type { Permanence } from '../mail/outcome.js'
import type { MessageStatus, SkipReason } from './message-status-store.js'

interface MessageContentRow {
  id: string
  workspace_id: string
  from_address: string
  from_name: string | null
  /** JSON `{name?, address}`. */
  reply_to: string | null
  subject: string
  html: string | null
  text: string | null
  signing_domain_id: string | null
  track_opens: Flag
  track_clicks: Flag
  created_at: number
}

interface MessageRow {
  id: string
  workspace_id: string
  content_id: string
  recipient: string
  status: MessageStatus
  reason: SkipReason | null
  is_sandbox: Flag
  created_at: number
  sent_at: number | null
  delivered_at: number | null
  opened_at: number | null
  clicked_at: number | null
  bounced_at: number | null
  complained_at: number | null
  bounce_type: Permanence | null
}

declare module '../db/tables.js' {
  interface Tables {
    message_contents: MessageContentRow
    messages: MessageRow
  }
}

/** What all recipients of one request share. */
export interface MessageContent {
  readonly id: string
  readonly workspaceId: string
  readonly from: { readonly name?: string; readonly address: string }
  readonly replyTo?: { readonly name?: string; readonly address: string }
  readonly subject: string
  readonly html?: string
  readonly text?: string
  /** Whose DKIM keys sign; null leaves the mail unsigned. */
  readonly signingDomainId: string | null
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  readonly createdAt: number
}

export interface NewMessage {
  readonly id: string
  readonly recipient: string
  readonly status: MessageStatus
  readonly reason: SkipReason | null
}

export interface Message extends NewMessage {
  readonly workspaceId: string
  readonly contentId: string
  readonly isSandbox: boolean
  readonly createdAt: number
  readonly sentAt: number | null
  readonly deliveredAt: number | null
  readonly openedAt: number | null
  readonly clickedAt: number | null
  readonly bouncedAt: number | null
  readonly complainedAt: number | null
  readonly bounceType: Permanence | null
}

export async function insertContent(db: Queries, content: MessageContent): Promise<void> {
  await db
    .insertInto('message_contents')
    .values({
      id: content.id,
      workspace_id: content.workspaceId,
      from_address: content.from.address,
      from_name: content.from.name ?? null,
      reply_to: content.replyTo ? JSON.stringify(content.replyTo) : null,
      subject: content.subject,
      html: content.html ?? null,
      text: content.text ?? null,
      signing_domain_id: content.signingDomainId,
      track_opens: flag(content.trackOpens),
      track_clicks: flag(content.trackClicks),
      created_at: content.createdAt,
    })
    .execute()
}

/** All messages of one content, in rows of 100 to a statement. */
export async function insertMessages(
  db: Queries,
  content: Pick<MessageContent, 'id' | 'workspaceId' | 'createdAt'>,
  isSandbox: boolean,
  messages: readonly NewMessage[],
): Promise<void> {
  const rows = messages.map(message => ({
    id: message.id,
    workspace_id: content.workspaceId,
    content_id: content.id,
    recipient: message.recipient,
    status: message.status,
    reason: message.reason,
    is_sandbox: flag(isSandbox),
    created_at: content.createdAt,
    sent_at: message.status === 'sent' ? content.createdAt : null,
  }))
  for (let start = 0; start < rows.length; start += 100)
    await db
      .insertInto('messages')
      .values(rows.slice(start, start + 100))
      .execute()
}

export async function findMessage(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Message | undefined> {
  const row = await db
    .selectFrom('messages')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row && messageFromRow(row)
}

/** For the operator, who sees every workspace. */
export async function findAnyMessage(db: Queries, id: string): Promise<Message | undefined> {
  const row = await db.selectFrom('messages').selectAll().where('id', '=', id).executeTakeFirst()
  return row && messageFromRow(row)
}

export async function findMessages(db: Queries, ids: readonly string[]): Promise<Message[]> {
  if (ids.length === 0) return []
  const rows = await db.selectFrom('messages').selectAll().where('id', 'in', ids).execute()
  return rows.map(messageFromRow)
}

export async function findContents(db: Queries, ids: readonly string[]): Promise<MessageContent[]> {
  if (ids.length === 0) return []
  const rows = await db.selectFrom('message_contents').selectAll().where('id', 'in', ids).execute()
  return rows.map(contentFromRow)
}

function messageFromRow(row: MessageRow): Message {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    contentId: row.content_id,
    recipient: row.recipient,
    status: row.status,
    reason: row.reason,
    isSandbox: row.is_sandbox === 1,
    createdAt: row.created_at,
    sentAt: row.sent_at,
    deliveredAt: row.delivered_at,
    openedAt: row.opened_at,
    clickedAt: row.clicked_at,
    bouncedAt: row.bounced_at,
    complainedAt: row.complained_at,
    bounceType: row.bounce_type,
  }
}

function contentFromRow(row: MessageContentRow): MessageContent {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    from: { ...(row.from_name === null ? {} : { name: row.from_name }), address: row.from_address },
    ...(row.reply_to === null
      ? {}
      : { replyTo: JSON.parse(row.reply_to) as { name?: string; address: string } }),
    subject: row.subject,
    ...(row.html === null ? {} : { html: row.html }),
    ...(row.text === null ? {} : { text: row.text }),
    signingDomainId: row.signing_domain_id,
    trackOpens: row.track_opens === 1,
    trackClicks: row.track_clicks === 1,
    createdAt: row.created_at,
  }
}
