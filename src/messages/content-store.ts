/**
 * SQL of contents: what all recipients of a submission share, stored once. Either composed from fields or relayed as
 * received.
 *
 * The first part of a relayed message is in the content row, which suffices for nearly all mail. Longer messages
 * continue in `message_parts`, written while they arrive and ignored until the content row exists. Attachments are
 * stored there too, one after the other.
 */
import type { Insertable } from 'kysely'
import type { Merging } from '../content/rendering/merging.js'
import type { Queries } from '../db/database.js'
import { inLists, inPieces, statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { NamedAddress } from '../mail/address.js'
import type { Attachment } from '../mail/compose/attachment-part.js'
import type { VisibleRecipients, HeaderField } from '../mail/compose/compose.js'
import type { SubmittedBy } from './mail-log.js'
import { isMarketingMail, originOf, type MailOrigin, type OriginFields } from './mail-origin.js'

/** Messages with more bytes of attachments or relayed message than this wait for memory, behind small ones. */
export const LARGE_OCTETS = 256 * 1_024

interface MessageContentRow {
  id: string
  workspace_id: string
  from_address: string
  from_name: string | null
  reply_to: string | null
  subject: string
  html: string | null
  text: string | null
  signing_domain_id: string | null
  track_opens: Flag
  track_clicks: Flag
  created_at: number
  raw: Buffer | null
  raw_size: number | null
  submitter: string | null
  dsn_ret: 'FULL' | 'HDRS' | null
  dsn_envid: string | null
  /** JSON string[]. */
  tags: string | null
  /** JSON `VisibleRecipients`; an address without a name is a plain string. */
  addressees: string | null
  /** JSON `{name, value}[]`. */
  headers: string | null
  /** JSON `AttachmentFacts[]`. */
  attachments: string | null
  scheduled_at: number | null
  batch_id: string | null
  batch_index: number | null
  pruned_at: number | null
  is_marketing: Flag
  campaign_id: string | null
  automation_id: string | null
  template_id: string | null
  /** JSON `Merging`. */
  merging: string | null
  key_id: string | null
  peer: string | null
}

interface MessagePartRow {
  content_id: string
  /** 1 for the first part after the one in the content row. */
  part: number
  octets: Buffer
}

declare module '../db/tables.js' {
  interface Tables {
    message_contents: MessageContentRow
    message_parts: MessagePartRow
  }
}

export interface MessageContent extends OriginFields {
  readonly id: string
  readonly workspaceId: string
  readonly from: { readonly name?: string; readonly address: string }
  readonly replyTo?: { readonly name?: string; readonly address: string }
  readonly subject: string
  readonly html?: string
  readonly text?: string
  /** Domain whose DKIM keys sign; null leaves the mail unsigned. */
  readonly signingDomainId: string | null
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  readonly createdAt: number
  readonly tags?: readonly string[]
  /** Absent if each recipient sees only its own address. */
  readonly addressees?: VisibleRecipients
  readonly headers?: readonly HeaderField[]
  readonly attachments?: readonly AttachmentFacts[]
  /** When to send it, ms since epoch UTC; `createdAt` is when it was submitted. */
  readonly scheduledAt?: number
  /** Set if subject, HTML and text contain merge tags. */
  readonly merging?: Merging
  /** Set for relayed mail, which has no `html` and `text` of ours. */
  readonly relayed?: RelayedMessage
  /** Body and custom header fields were deleted by retention; it cannot be sent any more. */
  readonly isPruned?: true
  /** Absent for system mail, mail from commands, and old mail. */
  readonly submittedBy?: SubmittedBy
}

export interface AttachmentFacts extends Omit<Attachment, 'octets'> {
  readonly size: number
}

/** A message relayed as received. */
export interface RelayedMessage {
  /** The message, or its first part; the others are in `message_parts`. */
  readonly firstPart: Buffer
  /** Bytes of all parts. */
  readonly size: number
  /**
   * Envelope sender as submitted, which gets delivery reports; empty for `<>` (RFC 5321 §4.5.5). Absent for system
   * mail, which is itself sent from `<>`.
   */
  readonly submitter?: string
  readonly ret?: 'FULL' | 'HDRS'
  readonly envid?: string
}

const insertRows = statement((db, { rows }: { rows: readonly Insertable<MessageContentRow>[] }) =>
  db.insertInto('message_contents').values(rows),
)

export async function insertContent(db: Queries, content: MessageContent): Promise<void> {
  await insertRows(db, { rows: [rowFrom(content)] })
}

export async function insertContents(db: Queries, contents: readonly MessageContent[]): Promise<void> {
  for (const piece of inPieces(contents)) await insertRows(db, { rows: piece.map(rowFrom) })
}

function rowFrom(content: MessageContent): MessageContentRow {
  const { relayed, batch } = content
  return {
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
    raw: relayed?.firstPart ?? null,
    raw_size: relayed?.size ?? null,
    submitter: relayed?.submitter ?? null,
    dsn_ret: relayed?.ret ?? null,
    dsn_envid: relayed?.envid ?? null,
    tags: jsonOrNull(content.tags),
    addressees: content.addressees ? addresseesToJson(content.addressees) : null,
    headers: jsonOrNull(content.headers),
    attachments: jsonOrNull(content.attachments),
    scheduled_at: content.scheduledAt ?? null,
    batch_id: batch?.id ?? null,
    batch_index: batch?.index ?? null,
    pruned_at: null,
    is_marketing: flag(isMarketingMail(content)),
    campaign_id: content.campaignId ?? null,
    automation_id: content.automationId ?? null,
    template_id: content.templateId ?? null,
    merging: jsonOrNull(content.merging),
    key_id: content.submittedBy?.keyId ?? null,
    peer: content.submittedBy?.peer ?? null,
  }
}

function jsonOrNull(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}

const selectRows = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('message_contents').selectAll().where('id', 'in', ids),
)

export async function findContents(db: Queries, ids: readonly string[]): Promise<MessageContent[]> {
  const contents: MessageContent[] = []
  for (const list of inLists(ids))
    for (const row of (await selectRows(db, { ids: list })).rows) contents.push(contentFromRow(row))
  return contents
}

export async function hasContent(db: Queries, id: string): Promise<boolean> {
  const row = await db.selectFrom('message_contents').select('id').where('id', '=', id).executeTakeFirst()
  return row !== undefined
}

/** Whether it has HTML or text that retention has not deleted. */
export async function hasStoredBody(db: Queries, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('message_contents')
    .select('id')
    .where('id', '=', id)
    .where(where => where.or([where('html', 'is not', null), where('text', 'is not', null)]))
    .executeTakeFirst()
  return row !== undefined
}

const selectOrigins = statement((db, { ids }: { ids: readonly string[] }) =>
  db
    .selectFrom('message_contents')
    .select(['id', 'is_marketing', 'campaign_id', 'automation_id', 'template_id', 'batch_id', 'batch_index'])
    .select(['from_address', 'tags'])
    .where('id', 'in', ids),
)

/** Origins by content id. */
export async function findOrigins(db: Queries, ids: readonly string[]): Promise<Map<string, MailOrigin>> {
  const origins = new Map<string, MailOrigin>()
  for (const list of inLists(ids))
    for (const row of (await selectOrigins(db, { ids: list })).rows)
      origins.set(
        row.id,
        originOf({
          from: { address: row.from_address },
          ...ownOriginFromRow(row),
          ...batchFromRow(row),
          ...tagsFromRow(row),
        }),
      )
  return origins
}

/** The scheduled time of a content; undefined if it was not scheduled or belongs to another workspace. */
export async function findScheduledAt(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<number | undefined> {
  const row = await db
    .selectFrom('message_contents')
    .select('scheduled_at')
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row?.scheduled_at ?? undefined
}

/** @param part 1 for the first part after the one in the content row */
export async function insertPart(
  db: Queries,
  contentId: string,
  part: number,
  octets: Buffer,
): Promise<void> {
  await db.insertInto('message_parts').values({ content_id: contentId, part, octets }).execute()
}

export async function readRelayed(
  db: Queries,
  contentId: string,
  { firstPart, size }: RelayedMessage,
): Promise<Buffer> {
  if (firstPart.length === size) return firstPart
  const message = Buffer.alloc(size)
  return readParts(db, contentId, message, firstPart.copy(message))
}

export function readAttachments(
  db: Queries,
  contentId: string,
  attachments: readonly AttachmentFacts[],
): Promise<Buffer> {
  return readParts(db, contentId, Buffer.alloc(attachmentOctets(attachments)), 0)
}

/** Whether its messages wait for memory, behind small ones. */
export function isLargeContent({ attachments, relayed }: MessageContent): boolean {
  return (relayed?.size ?? attachmentOctets(attachments ?? [])) > LARGE_OCTETS
}

export function attachmentOctets(attachments: readonly AttachmentFacts[]): number {
  return attachments.reduce((sum, { size }) => sum + size, 0)
}

async function readParts(db: Queries, contentId: string, message: Buffer, filled: number): Promise<Buffer> {
  let length = filled
  // One by one: a single statement would hold the whole message twice.
  for (let part = 1; length < message.length; part += 1) {
    const row = await db
      .selectFrom('message_parts')
      .select('octets')
      .where('content_id', '=', contentId)
      .where('part', '=', part)
      .executeTakeFirst()
    if (!row) throw new Error(`part ${part} of content ${contentId} is missing`)
    length += Buffer.from(row.octets).copy(message, length)
  }
  return message
}

/** Copies attachments and later parts to another content, which has the same facts about them. */
export async function copyParts(db: Queries, from: string, to: string): Promise<void> {
  await db
    .insertInto('message_parts')
    .columns(['content_id', 'part', 'octets'])
    .expression(
      db
        .selectFrom('message_parts')
        .select(e => [e.val(to).as('content_id'), 'part', 'octets'])
        .where('content_id', '=', from),
    )
    .execute()
}

/** Deletes the parts of a message that was never accepted. */
export async function deleteParts(db: Queries, contentId: string): Promise<void> {
  await db.deleteFrom('message_parts').where('content_id', '=', contentId).execute()
}

/** Deletes the parts of messages whose acceptance a crash cut off. @param before contents with this id or a later one may be on their way */
export async function deleteOrphanedParts(db: Queries, before: string): Promise<void> {
  await db
    .deleteFrom('message_parts')
    .where('content_id', '<', before)
    .where('content_id', 'not in', query => query.selectFrom('message_contents').select('id'))
    .execute()
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
    ...tagsFromRow(row),
    ...(row.addressees === null ? {} : { addressees: addresseesFromJson(row.addressees) }),
    ...(row.headers === null ? {} : { headers: JSON.parse(row.headers) as HeaderField[] }),
    ...(row.attachments === null ? {} : { attachments: JSON.parse(row.attachments) as AttachmentFacts[] }),
    ...(row.scheduled_at === null ? {} : { scheduledAt: row.scheduled_at }),
    ...batchFromRow(row),
    ...(row.merging === null ? {} : { merging: JSON.parse(row.merging) as Merging }),
    ...(row.raw === null ? {} : { relayed: relayedFromRow(row, row.raw) }),
    ...(row.pruned_at === null ? {} : { isPruned: true }),
    ...(row.key_id === null ? {} : { submittedBy: { keyId: row.key_id, peer: row.peer ?? '' } }),
    ...ownOriginFromRow(row),
  }
}

function addresseesToJson({ to, cc, hasCopies }: VisibleRecipients): string {
  const short = (list: readonly NamedAddress[]) =>
    list.map(one => (one.name === undefined ? one.address : one))
  return JSON.stringify({ to: short(to), cc: short(cc), hasCopies })
}

function addresseesFromJson(json: string): VisibleRecipients {
  type Kept = readonly (string | NamedAddress)[]
  const { to, cc, hasCopies = false } = JSON.parse(json) as { to: Kept; cc: Kept; hasCopies?: boolean }
  const whole = (list: Kept) => list.map(one => (typeof one === 'string' ? { address: one } : one))
  // Old contents had no shared Message-ID; a retry must not add one.
  return { to: whole(to), cc: whole(cc), hasCopies }
}

function ownOriginFromRow(
  row: Pick<MessageContentRow, 'is_marketing' | 'campaign_id' | 'automation_id' | 'template_id'>,
) {
  return {
    ...(row.is_marketing === 1 ? { isMarketing: true } : {}),
    ...(row.campaign_id === null ? {} : { campaignId: row.campaign_id }),
    ...(row.automation_id === null ? {} : { automationId: row.automation_id }),
    ...(row.template_id === null ? {} : { templateId: row.template_id }),
  }
}

function tagsFromRow({ tags }: Pick<MessageContentRow, 'tags'>) {
  return tags === null ? {} : { tags: JSON.parse(tags) as string[] }
}

function batchFromRow(row: Pick<MessageContentRow, 'batch_id' | 'batch_index'>) {
  return row.batch_id === null ? {} : { batch: { id: row.batch_id, index: row.batch_index ?? 0 } }
}

function relayedFromRow(row: MessageContentRow, raw: Uint8Array): RelayedMessage {
  return {
    // PostgreSQL returns a Uint8Array.
    firstPart: Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength),
    size: row.raw_size ?? raw.length,
    ...(row.submitter === null ? {} : { submitter: row.submitter }),
    ...(row.dsn_ret === null ? {} : { ret: row.dsn_ret }),
    ...(row.dsn_envid === null ? {} : { envid: row.dsn_envid }),
  }
}
