/**
 * SQL for the operator's message search across all workspaces: by recipient, sender, subject, key, status, time or Message-ID.
 *
 * Some searches scan every message, page by page, so they run in the slow reader, and one call reads a bounded number of rows and returns
 * where the next one continues. The log of one workspace is `message-log-store.ts`.
 */
import { sql, type SelectQueryBuilder } from 'kysely'
import { firstIdAt } from '../../core/ids.js'
import { must } from '../../core/must.js'
import { dialectOf, type Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import type { Tables } from '../../db/tables.js'
import type { SubmittedBy } from '../../messages/mail-log.js'
import { isCapturedMessage } from '../../messages/attempt-store.js'
import type { MessageStatus } from '../../messages/message-status.js'
import {
  isSpelled,
  messageFromRow,
  recipientBucket,
  type Message,
  type Spellings,
} from '../../messages/message-store.js'
import {
  deliveryState,
  isWaiting,
  isWaitingState,
  listWaiting,
  type DeliveryState,
  type WaitingState,
} from '../../queue/delivery-state-store.js'
import type { LoggedMessage } from './message-log-store.js'

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

/** Rows read per statement after the first, which reads one page, and per call. */
const MAX_STEP = 2_000
const MAX_SCANNED = 20_000
/** With more workspaces, rare statuses are not looked for workspace by workspace. */
const MAX_SEPARATE = 100

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
  const isFitting = fitting(search)
  const contents: ContentHeads = new Map()
  const owners = search.workspaceId === undefined ? workspaceIds : [search.workspaceId]
  let end = before
  let step = Math.min(limit, MAX_STEP)
  for (let scanned = 0; scanned < MAX_SCANNED;) {
    const rows = await candidates(db, search, owners, end, step)
    const messages = rows.map(row => ({ contentId: row.content_id, message: messageFromRow(row) }))
    const fit = messages.filter(({ message }) => isFitting.message(message))
    await readContents(
      db,
      contents,
      fit.map(({ contentId }) => contentId),
    )
    for (const { contentId, message } of fit) {
      const content = contents.get(contentId)
      if (!content || !isFitting.content(content)) continue
      found.push({ ...message, ...content })
      if (found.length >= limit) return { messages: found, end: message.id }
    }
    if (rows.length < step) return { messages: found, end: undefined }
    end = rows.at(-1)?.id
    scanned += rows.length
    step = Math.min(step * 4, MAX_STEP)
  }
  return { messages: found, end }
}

/** What the message's own row does not say. */
export interface FoundState {
  readonly deliveryState: DeliveryState | null
  readonly isCaptured: boolean
}

/** Status and place in the queue of messages found before, of the same moment; those deleted since are left out. */
export async function withDeliveryStates(
  db: Queries,
  found: readonly FoundMessage[],
): Promise<(FoundMessage & FoundState)[]> {
  const states = new Map<string, Pick<LoggedMessage, 'status' | 'reason'> & FoundState>()
  for (const list of inLists(found.map(({ id }) => id))) {
    const rows = await db
      .selectFrom('messages')
      .leftJoin('queue', join =>
        join.onRef('queue.message_id', '=', 'messages.id').on('messages.status', '=', 'sent'),
      )
      .select(['messages.id', 'messages.status', 'messages.reason'])
      .select([deliveryState.as('deliveryState'), isCapturedMessage.as('captured')])
      .where('messages.id', 'in', list)
      .execute()
    for (const { id, captured, ...state } of rows) states.set(id, { ...state, isCaptured: captured === 1 })
  }
  return found.flatMap(one => {
    const state = states.get(one.id)
    return state ? [{ ...one, ...state }] : []
  })
}

type Candidates = SelectQueryBuilder<Tables, 'messages', object>

/** The next rows that may fit, newest first. A statement reads few rows beside those that it returns. */
async function candidates(
  db: Queries,
  { to, status, since, until, workspaceId }: MessageSearch,
  owners: readonly string[],
  before: string | undefined,
  limit: number,
) {
  const within = (query: Candidates): Candidates => {
    let some = query
    // An id is generated shortly after the message's own time was read.
    if (since !== undefined) some = some.where('id', '>=', firstIdAt(since))
    if (until !== undefined) some = some.where('id', '<', firstIdAt(until + 1_000))
    return before === undefined ? some : some.where('id', '<', before)
  }
  const newest = (query: Candidates) => within(query).selectAll().orderBy('id', 'desc').limit(limit)
  if (to !== undefined && !to.startsWith('@')) {
    const spellings: Spellings = [to.toLowerCase()]
    // The recipient index starts with the workspace.
    const named = db
      .selectFrom('messages')
      .where('workspace_id', 'in', owners)
      .where('recipient_bucket', '=', recipientBucket(to))
      .where(isSpelled(spellings))
    const isForWaiting = status !== undefined && isWaitingState(status)
    return newest(isForWaiting ? named.where(isWaiting(status)) : named).execute()
  }
  const all = db.selectFrom('messages')
  if (status !== undefined && isWaitingState(status)) {
    if (owners.length > MAX_SEPARATE)
      return newest(all.where('workspace_id', 'in', owners).where(isWaiting(status))).execute()
    const end = until === undefined ? before : earlier(before, firstIdAt(until + 1_000))
    const each = owners.map(owner =>
      listWaiting(db, { state: status, workspaceId: owner, since, beforeId: end }, limit),
    )
    const ids = (await Promise.all(each)).flat().sort().reverse().slice(0, limit)
    return ids.length === 0 ? [] : newest(all.where('id', 'in', ids)).execute()
  }
  if (status !== undefined && status !== 'sent' && status !== 'delivered' && owners.length <= MAX_SEPARATE) {
    const [first, ...others] = owners.map(owner =>
      db
        .selectFrom(newest(ofRareStatus(all.where('workspace_id', '=', owner), status)).as('own'))
        .selectAll(),
    )
    if (!first) return []
    return others
      .reduce((union, one) => union.unionAll(one), first)
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
  }
  return newest(workspaceId === undefined ? all : all.where('workspace_id', '=', workspaceId)).execute()
}

function earlier(id: string | undefined, other: string): string {
  return id !== undefined && id < other ? id : other
}

/** The others are most messages, and have no index. */
function ofRareStatus(query: Candidates, status: MessageStatus): Candidates {
  // A partial index is used only if the query repeats its condition verbatim.
  return query.where('status', '=', status).where(sql<boolean>`status not in ('sent', 'delivered')`)
}

type ContentHead = Pick<FoundMessage, 'subject' | 'from' | 'submittedBy'>
type ContentHeads = Map<string, ContentHead>

async function readContents(db: Queries, known: ContentHeads, ids: readonly string[]): Promise<void> {
  const missing = [...new Set(ids)].filter(id => !known.has(id))
  for (const list of inLists(missing)) {
    const rows = await db
      .selectFrom('message_contents')
      .select(['id', 'subject', 'from_address', 'key_id', 'peer'])
      .where('id', 'in', list)
      .execute()
    for (const { id, subject, from_address: from, key_id: keyId, peer } of rows)
      known.set(id, {
        subject,
        from,
        ...(keyId === null ? {} : { submittedBy: { keyId, peer: peer ?? '' } }),
      })
  }
}

/** Checks again what `candidates` narrows down only in part. */
function fitting({ to, from, status, since, until, subject, keyId }: MessageSearch) {
  const [folded, part] = [from?.toLowerCase(), subject?.toLowerCase()]
  const domain = to?.startsWith('@') === true ? to.toLowerCase() : undefined
  const stored = status !== undefined && isWaitingState(status) ? 'sent' : status
  return {
    message: (one: Message): boolean =>
      (stored === undefined || one.status === stored) &&
      (domain === undefined || one.recipient.toLowerCase().endsWith(domain)) &&
      (since === undefined || one.createdAt >= since) &&
      (until === undefined || one.createdAt < until),
    content: (one: ContentHead): boolean =>
      (folded === undefined || isFrom(one.from.toLowerCase(), folded)) &&
      (part === undefined || one.subject.toLowerCase().includes(part)) &&
      (keyId === undefined || one.submittedBy?.keyId === keyId),
  }
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
      .$if(before !== undefined, query => query.where('id', '<', must(before, 'before')))
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
    /^message-id:(.*)$/im.exec(header.replace(/\r\n[ \t]+/g, ' '))?.[1]?.trim() === wanted.toString('latin1')
  )
}
