/**
 * SQL for the operator's message search across all workspaces: by recipient, sender, subject, key, status, time or Message-ID.
 *
 * Some searches scan every message, page by page, so they run in the slow reader, and one call reads a bounded number of rows and returns
 * where the next one continues. The log of one workspace is `message-log-store.ts`.
 */
import { sql, type SelectQueryBuilder } from 'kysely'
import { firstIdAt } from '../../core/ids.js'
import { dialectOf, type Queries } from '../../db/database.js'
import type { Tables } from '../../db/tables.js'
import type { SubmittedBy } from '../../messages/mail-log.js'
import type { MessageStatus } from '../../messages/message-status.js'
import {
  isSpelled,
  messageFromRow,
  recipientBucket,
  type Message,
  type Spellings,
} from '../../messages/message-store.js'
import { isWaiting, isWaitingState, type WaitingState } from '../../queue/delivery-state-store.js'

export interface MessageSearch {
  /** An address, or a whole domain as `@example.com`. */
  readonly to?: string
  /** The author's address, or a domain as `@example.com`. */
  readonly from?: string
  readonly status?: MessageStatus | WaitingState
  /** Ms since epoch UTC; `since` inclusive, `until` exclusive. */
  readonly since?: number
  readonly until?: number
  /** A substring, case-insensitive. */
  readonly subject?: string
  /** Id of the API key that submitted it. */
  readonly keyId?: string
  readonly workspaceId?: string
}

export interface FoundMessage extends Message {
  readonly subject: string
  readonly from: string
  readonly submittedBy?: SubmittedBy
}

/** Rows read per statement, and per call. */
const PAGE = 1_000
const MAX_SCANNED = 50_000

export interface SearchPage {
  readonly messages: readonly FoundMessage[]
  /** Id of the last message read, where the next call continues; undefined if there are no more. */
  readonly end: string | undefined
}

/**
 * Newest first; may find fewer than `limit` and still have an `end`.
 *
 * @param workspaceIds all workspaces, including removed ones @param before id of the message before the first one
 */
export async function searchMessages(
  db: Queries,
  search: MessageSearch,
  workspaceIds: readonly string[],
  limit: number,
  before?: string,
): Promise<SearchPage> {
  const found: FoundMessage[] = []
  const fits = fitting(search)
  let end = before
  for (let scanned = 0; scanned < MAX_SCANNED; scanned += PAGE) {
    const rows = await page(db, search, workspaceIds, end)
    for (const row of rows) {
      const one = {
        ...messageFromRow(row),
        subject: row.subject,
        from: row.from_address,
        ...(row.key_id === null ? {} : { submittedBy: { keyId: row.key_id, peer: row.peer ?? '' } }),
      }
      end = one.id
      if (fits(one)) found.push(one)
      if (found.length >= limit) return { messages: found, end }
    }
    if (rows.length < PAGE) return { messages: found, end: undefined }
  }
  return { messages: found, end }
}

/** Applies conditions that an index covers or that are free to add; `fitting` checks the rest. */
function page(
  db: Queries,
  { to, status, since, until, workspaceId }: MessageSearch,
  workspaceIds: readonly string[],
  before: string | undefined,
) {
  let query: SelectQueryBuilder<Tables, 'messages', object> = db.selectFrom('messages')
  if (workspaceId !== undefined) query = query.where('workspace_id', '=', workspaceId)
  if (to !== undefined && !to.startsWith('@')) {
    const spellings: Spellings = [to.toLowerCase()]
    // The recipient index starts with the workspace.
    if (workspaceId === undefined) query = query.where('workspace_id', 'in', workspaceIds)
    query = query.where('recipient_bucket', '=', recipientBucket(to)).where(isSpelled(spellings))
  }
  if (status !== undefined && isWaitingState(status))
    query = query.where('status', '=', 'sent').where(isWaiting(status))
  else if (status !== undefined) query = query.where('status', '=', status)
  // An id is generated shortly after the message's own time was read.
  if (since !== undefined) query = query.where('id', '>=', firstIdAt(since))
  if (until !== undefined) query = query.where('id', '<', firstIdAt(until + 1_000))
  if (before !== undefined) query = query.where('id', '<', before)
  const newest = query.selectAll().orderBy('id', 'desc').limit(PAGE).as('messages')
  return db
    .selectFrom(newest)
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .selectAll('messages')
    .select([
      'message_contents.subject',
      'message_contents.from_address',
      'message_contents.key_id',
      'message_contents.peer',
    ])
    .orderBy('messages.id', 'desc')
    .execute()
}

function fitting({ to, from, since, until, subject, keyId }: MessageSearch) {
  const [folded, part] = [from?.toLowerCase(), subject?.toLowerCase()]
  const domain = to?.startsWith('@') === true ? to.toLowerCase() : undefined
  return (one: FoundMessage): boolean =>
    (domain === undefined || one.recipient.toLowerCase().endsWith(domain)) &&
    (folded === undefined || isFrom(one.from.toLowerCase(), folded)) &&
    (part === undefined || one.subject.toLowerCase().includes(part)) &&
    (since === undefined || one.createdAt >= since) &&
    (until === undefined || one.createdAt < until) &&
    (keyId === undefined || one.submittedBy?.keyId === keyId)
}

function isFrom(address: string, wanted: string): boolean {
  return wanted.startsWith('@') ? address.endsWith(wanted) : address === wanted
}

/** Relayed mails that are searched for an author's Message-ID, and how many per statement. */
export const MAX_HEADERS = 100_000
const HEADERS_AT_ONCE = 500
/** Headers are always shorter (`mail/relay/relayed-header.ts`). */
const HEADER_OCTETS = 262_144

/**
 * Finds the newest relayed mail with this Message-ID. It is stored in the mail itself only, so mail whose text is pruned is not found.
 *
 * @param fieldValue without `<` and `>`
 */
export async function findRelayedContent(db: Queries, fieldValue: string): Promise<string | undefined> {
  const wanted = Buffer.from(`<${fieldValue}>`)
  const contains =
    dialectOf(db) === 'postgres'
      ? sql<boolean>`position(${wanted} in raw) > 0`
      : sql<boolean>`instr(raw, ${wanted}) > 0`
  let before: string | undefined
  for (let looked = 0; looked < MAX_HEADERS; looked += HEADERS_AT_ONCE) {
    const relayed = db
      .selectFrom('message_contents')
      .where('raw', 'is not', null)
      .$if(before !== undefined, query => query.where('id', '<', before ?? ''))
    const ids = await relayed.select('id').orderBy('id', 'desc').limit(HEADERS_AT_ONCE).execute()
    const oldest = ids.at(-1)?.id
    if (oldest === undefined) return undefined
    const rows = await relayed
      .select(['id', 'raw'])
      .where('id', '>=', oldest)
      .where(contains)
      .orderBy('id', 'desc')
      .execute()
    const found = rows.find(({ raw }) => raw !== null && hasMessageId(Buffer.from(raw), wanted))
    if (found) return found.id
    if (ids.length < HEADERS_AT_ONCE) return undefined
    before = oldest
  }
  return undefined
}

/** Matches the Message-ID field, folded or not (RFC 5322 §3.6.4). */
function hasMessageId(mail: Buffer, wanted: Buffer): boolean {
  const end = mail.indexOf('\r\n\r\n')
  const header = mail.subarray(0, end < 0 ? HEADER_OCTETS : end).toString('latin1')
  return (
    /^message-id:\s*(.*)$/im.exec(header.replace(/\r\n[ \t]+/g, ' '))?.[1]?.trim() ===
    wanted.toString('latin1')
  )
}
