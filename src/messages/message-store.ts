/** SQL of messages: one row per recipient; `content-store.ts` has what the recipients share. */
import { sql, type Insertable } from 'kysely'
import { bucketOf } from '../core/bucket.js'
import type { MergeData } from '../content/rendering/merging.js'
import type { Queries } from '../db/database.js'
import { inLists, inPieces, statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { Permanence } from '../mail/outcome.js'
import type { MessageContent } from './content-store.js'
import type { MessageStatus, SkipReason } from './message-status.js'

export interface MessageRow {
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
  /** RFC 3461 §4.1, comma-separated; null if the submitter gave none. */
  dsn_notify: string | null
  /** RFC 3461 §4.2, `type;address`. */
  dsn_orcpt: string | null
  campaign_id: string | null
  recipient_bucket: number
  contact_id: string | null
  /** JSON `MergeData`. */
  merge_data: string | null
}

declare module '../db/tables.js' {
  interface Tables {
    messages: MessageRow
  }
}

export interface NewMessage {
  readonly id: string
  readonly recipient: string
  readonly status: MessageStatus
  readonly reason: SkipReason | null
  /** The submitter's NOTIFY parameter (RFC 3461 §4.1), e.g. `FAILURE,DELAY` or `NEVER`. */
  readonly notify?: string
  /** The submitter's ORCPT parameter (RFC 3461 §4.2). */
  readonly originalRecipient?: string
  /** Default: that of the content. */
  readonly campaignId?: string
  /** The contact who had the address at acceptance. */
  readonly contactId?: string
  /** Merge data of this recipient, in addition to the content's. */
  readonly mergeData?: MergeData
}

export interface Message extends Omit<NewMessage, 'mergeData'> {
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

const insertRows = statement((db, { rows }: { rows: readonly Insertable<MessageRow>[] }) =>
  db.insertInto('messages').values(rows),
)

type Head = Pick<MessageContent, 'id' | 'workspaceId' | 'createdAt' | 'campaignId'>

export async function insertMessages(
  db: Queries,
  content: Head,
  isSandbox: boolean,
  messages: readonly NewMessage[],
): Promise<void> {
  await insertAllMessages(db, isSandbox, [{ content, messages }])
}

export async function insertAllMessages(
  db: Queries,
  isSandbox: boolean,
  groups: readonly { readonly content: Head; readonly messages: readonly NewMessage[] }[],
): Promise<void> {
  const rows = groups.flatMap(({ content, messages }) =>
    messages.map(one => rowFrom(content, isSandbox, one)),
  )
  for (const piece of inPieces(rows)) await insertRows(db, { rows: piece })
}

/** Case folding is done here because a database's `lower()` may handle ASCII only. */
function foldRecipient(address: string): string {
  return address.toLowerCase()
}

/** The first column of the index by recipient. Case-insensitive. */
export function recipientBucket(address: string): number {
  return bucketOf(foldRecipient(address))
}

/** Folds as both JavaScript and PostgreSQL do, which disagree about the final sigma. */
function isSameFolded(one: string, other: string): boolean {
  return foldRecipient(one.toUpperCase()) === foldRecipient(other.toUpperCase())
}

// eslint-disable-next-line no-control-regex -- the range of ASCII
const ASCII = /^[\x00-\x7f]*$/

/** Lower-case forms of an address as the database has them; at least one. */
export type Spellings = readonly [string, ...string[]]

/**
 * The values of `lower(recipient)` for mail to this address, so that its index can be used and every database finds the
 * same rows.
 *
 * An ASCII address has one. Otherwise the recipient's bucket is read, 1/256 of the workspace's messages, within an
 * index.
 *
 * @returns may include forms that no message has
 */
export async function recipientSpellings(
  db: Queries,
  workspaceId: string,
  address: string,
): Promise<Spellings> {
  const folded = foldRecipient(address)
  if (ASCII.test(folded)) return [folded]
  const rows = await db
    .selectFrom('messages')
    .select(sql<string>`lower(recipient)`.as('spelling'))
    .distinct()
    .where('workspace_id', '=', workspaceId)
    .where('recipient_bucket', '=', recipientBucket(address))
    .execute()
  return [
    folded,
    ...rows
      .map(({ spelling }) => spelling)
      .filter(spelling => spelling !== folded && isSameFolded(spelling, folded)),
  ]
}

export function isSpelled(spellings: Spellings) {
  const [only, ...others] = spellings
  return others.length === 0
    ? sql<boolean>`lower(recipient) = ${only}`
    : sql<boolean>`lower(recipient) in (${sql.join(spellings)})`
}

function rowFrom(content: Head, isSandbox: boolean, message: NewMessage): Insertable<MessageRow> {
  return {
    id: message.id,
    workspace_id: content.workspaceId,
    content_id: content.id,
    recipient: message.recipient,
    status: message.status,
    reason: message.reason,
    is_sandbox: flag(isSandbox),
    created_at: content.createdAt,
    sent_at: message.status === 'sent' ? content.createdAt : null,
    dsn_notify: message.notify ?? null,
    dsn_orcpt: message.originalRecipient ?? null,
    campaign_id: message.campaignId ?? content.campaignId ?? null,
    recipient_bucket: recipientBucket(message.recipient),
    contact_id: message.contactId ?? null,
    merge_data: message.mergeData === undefined ? null : JSON.stringify(message.mergeData),
  }
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

/** In any workspace, for the operator. */
export async function findAnyMessage(db: Queries, id: string): Promise<Message | undefined> {
  const row = await db.selectFrom('messages').selectAll().where('id', '=', id).executeTakeFirst()
  return row && messageFromRow(row)
}

export async function findMessages(db: Queries, ids: readonly string[]): Promise<Message[]> {
  if (ids.length === 0) return []
  const rows = await db.selectFrom('messages').selectAll().where('id', 'in', ids).execute()
  return rows.map(messageFromRow)
}

const selectOwn = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('messages').select(['id', 'contact_id', 'merge_data']).where('id', 'in', ids),
)

/** Contact and merge data by message id. */
export async function findMergeSources(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Pick<NewMessage, 'contactId' | 'mergeData'>>> {
  const sources = new Map<string, Pick<NewMessage, 'contactId' | 'mergeData'>>()
  for (const list of inLists(ids))
    for (const row of (await selectOwn(db, { ids: list })).rows)
      sources.set(row.id, {
        ...(row.contact_id === null ? {} : { contactId: row.contact_id }),
        ...(row.merge_data === null ? {} : { mergeData: JSON.parse(row.merge_data) as MergeData }),
      })
  return sources
}

const MAX_RECIPIENTS = 100

/** The messages of contents that may be one mail with copies; incomplete if there are more than a mail can have. */
export async function findCopies(db: Queries, contentIds: readonly string[]): Promise<Message[]> {
  if (contentIds.length === 0) return []
  const rows = await db
    .selectFrom('messages')
    .selectAll()
    .where('content_id', 'in', contentIds)
    .limit(contentIds.length * MAX_RECIPIENTS)
    .execute()
  return rows.map(messageFromRow)
}

/** In the order of the recipients. */
export async function findMessagesOf(db: Queries, contentId: string): Promise<Message[]> {
  const rows = await db
    .selectFrom('messages')
    .selectAll()
    .where('content_id', '=', contentId)
    .orderBy('id')
    .execute()
  return rows.map(messageFromRow)
}

export function messageFromRow(row: MessageRow): Message {
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
    ...(row.dsn_notify === null ? {} : { notify: row.dsn_notify }),
    ...(row.dsn_orcpt === null ? {} : { originalRecipient: row.dsn_orcpt }),
    ...(row.campaign_id === null ? {} : { campaignId: row.campaign_id }),
    ...(row.contact_id === null ? {} : { contactId: row.contact_id }),
  }
}
