/**
 * SQL for the operator's message search across all workspaces: by recipient, sender, subject, key, status, time or Message-ID.
 *
 * For commands only, which run in their own process: some searches scan every message, page by page, and would block a server.
 * The API's log of one workspace is `message-log-store.ts`. Memory is bounded by a page.
 */
import type { SelectQueryBuilder } from 'kysely'
import { firstIdAt } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
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

/** Rows read per statement. */
const PAGE = 2_000

/** Newest first. @param limit maximum number of results @param workspaceIds all workspaces, including removed ones */
export async function searchMessages(
  db: Queries,
  search: MessageSearch,
  workspaceIds: readonly string[],
  limit: number,
): Promise<FoundMessage[]> {
  const found: FoundMessage[] = []
  const fits = fitting(search)
  for (let before: string | undefined; ;) {
    const rows = await page(db, search, workspaceIds, before)
    for (const row of rows) {
      const one = {
        ...messageFromRow(row),
        subject: row.subject,
        from: row.from_address,
        ...(row.key_id === null ? {} : { submittedBy: { keyId: row.key_id, peer: row.peer ?? '' } }),
      }
      if (fits(one)) found.push(one)
      if (found.length >= limit) return found
    }
    if (rows.length < PAGE) return found
    before = rows.at(-1)?.id
  }
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

/** Relayed mails whose header is searched for an author's Message-ID, and how many per statement. */
export const MAX_HEADERS = 100_000
const HEADERS_AT_ONCE = 50
/** Headers are always shorter (`mail/relay/relayed-header.ts`). */
const HEADER_OCTETS = 262_144

/**
 * Finds the newest relayed mail with this Message-ID. It is stored in the mail itself only, so mail whose text is pruned is not found.
 *
 * @param fieldValue without `<` and `>`
 */
export async function findRelayedContent(db: Queries, fieldValue: string): Promise<string | undefined> {
  const wanted = Buffer.from(`<${fieldValue}>`)
  let before: string | undefined
  for (let looked = 0; looked < MAX_HEADERS; looked += HEADERS_AT_ONCE) {
    const rows = await db
      .selectFrom('message_contents')
      .select(['id', 'raw'])
      .where('raw', 'is not', null)
      .$if(before !== undefined, query => query.where('id', '<', before ?? ''))
      .orderBy('id', 'desc')
      .limit(HEADERS_AT_ONCE)
      .execute()
    const found = rows.find(({ raw }) => raw !== null && hasMessageId(Buffer.from(raw), wanted))
    if (found) return found.id
    if (rows.length < HEADERS_AT_ONCE) return undefined
    before = rows.at(-1)?.id
  }
  return undefined
}

/** Matches the Message-ID field, folded or not (RFC 5322 §3.6.4). */
function hasMessageId(mail: Buffer, wanted: Buffer): boolean {
  if (!mail.includes(wanted)) return false
  const end = mail.indexOf('\r\n\r\n')
  const header = mail.subarray(0, end < 0 ? HEADER_OCTETS : end).toString('latin1')
  return (
    /^message-id:\s*(.*)$/im.exec(header.replace(/\r\n[ \t]+/g, ' '))?.[1]?.trim() ===
    wanted.toString('latin1')
  )
}
