/**
 * SQL of the message state machine, generated from the table in `message-status.ts`: one statement changes many
 * messages.
 *
 * Used by `message-history.ts`, and by the queue for the transition that has no event.
 */
import { sql } from 'kysely'
import type { Queries } from '../db/database.js'
import { inLists, statement } from '../db/statement.js'
import type { Flag } from '../db/tables.js'
import type { Permanence } from '../mail/outcome.js'
import {
  TRANSITIONS,
  RULES,
  type TransitionKind,
  type MessageStatus,
  type Moment,
  type SkipReason,
} from './message-status.js'

export interface MessageHead {
  readonly id: string
  readonly workspaceId: string
  readonly contentId: string
  readonly recipient: string
  readonly status: MessageStatus
  readonly isSandbox: boolean
  readonly deliveredAt: number | null
  readonly bouncedAt: number | null
  readonly campaignId: string | null
  readonly contactId: string | null
}

const HEAD = [
  'id',
  'workspace_id',
  'content_id',
  'recipient',
  'status',
  'is_sandbox',
  'delivered_at',
  'bounced_at',
  'campaign_id',
  'contact_id',
] as const

interface HeadRow {
  readonly id: string
  readonly workspace_id: string
  readonly content_id: string
  readonly recipient: string
  readonly status: MessageStatus
  readonly is_sandbox: Flag
  readonly delivered_at: number | null
  readonly bounced_at: number | null
  readonly campaign_id: string | null
  readonly contact_id: string | null
}

const COLUMNS = {
  sentAt: 'sent_at',
  deliveredAt: 'delivered_at',
  openedAt: 'opened_at',
  clickedAt: 'clicked_at',
  bouncedAt: 'bounced_at',
  complainedAt: 'complained_at',
} as const satisfies Record<Moment, string>

interface Change extends Readonly<Record<string, unknown>> {
  readonly ids: readonly string[]
  readonly at: number
  readonly bounceType: Permanence
  readonly reason: SkipReason | null
}

type ChangeMessages = ReturnType<typeof statement<Change, HeadRow>>

const CHANGES: ReadonlyMap<TransitionKind, ChangeMessages> = new Map(
  TRANSITIONS.flatMap(kind => (changesMessages(kind) ? [[kind, changeOf(kind)]] : [])),
)

/** Whether it changes the row, and not only appends an event. */
export function changesMessages(kind: TransitionKind): boolean {
  const { next, sets = [] } = RULES[kind]
  return sets.length > 0 || Object.entries(next).some(([before, after]) => before !== after)
}

function changeOf(kind: TransitionKind): ChangeMessages {
  const { next, sets = [], once, clears, reason: hasReason } = RULES[kind]
  return statement<Change, HeadRow>((db, { ids, at, bounceType, reason }) => {
    let change = db
      .updateTable('messages')
      .set({ status: statusAfter(kind) })
      .where('id', 'in', ids)
      .where('status', 'in', Object.keys(next) as MessageStatus[])
    for (const moment of sets) {
      const column = COLUMNS[moment]
      change = change.set({ [column]: once === moment ? at : sql`coalesce(${sql.ref(column)}, ${at})` })
    }
    if (once !== undefined) change = change.where(COLUMNS[once], 'is', null)
    if (clears !== undefined) change = change.set({ [COLUMNS[clears]]: null })
    if (hasReason !== undefined) change = change.set({ reason })
    if (kind === 'bounced') change = change.set({ bounce_type: bounceType })
    return change.returning(HEAD)
  })
}

function statusAfter(kind: TransitionKind) {
  const moves = Object.entries(RULES[kind].next).filter(([before, after]) => before !== after)
  const cases = moves.map(([before, after]) => sql`when ${sql.lit(before)} then ${sql.lit(after)}`)
  return cases.length === 0
    ? sql<MessageStatus>`status`
    : sql<MessageStatus>`case status ${sql.join(cases, sql` `)} else status end`
}

/**
 * @param at shared by all messages, ms since epoch UTC
 * @param facts `bounceType` only for `bounced`, `reason` for what is not sent
 * @returns the changed messages, as they are now
 */
export async function applyTransition(
  db: Queries,
  kind: TransitionKind,
  ids: readonly string[],
  at: number,
  facts: { readonly bounceType?: Permanence; readonly reason?: SkipReason } = {},
): Promise<MessageHead[]> {
  const { bounceType = 'undetermined', reason = RULES[kind].reason ?? null } = facts
  const change = CHANGES.get(kind)
  const heads: MessageHead[] = []
  if (!change) return heads
  for (const list of inLists(ids))
    for (const row of (await change(db, { ids: list, at, bounceType, reason })).rows)
      heads.push(headFromRow(row))
  return heads
}

/** Starts scheduled messages that are claimed for their first attempt; others are unchanged. */
export async function markStarted(db: Queries, ids: readonly string[], at: number): Promise<void> {
  await applyTransition(db, 'started', ids, at)
}

const selectHeads = statement((db, { ids }: { ids: readonly string[] }) =>
  db.selectFrom('messages').select(HEAD).where('id', 'in', ids),
)

export async function findHeads(db: Queries, ids: readonly string[]): Promise<MessageHead[]> {
  const heads: MessageHead[] = []
  for (const list of inLists(ids))
    for (const row of (await selectHeads(db, { ids: list })).rows) heads.push(headFromRow(row))
  return heads
}

function headFromRow(row: HeadRow): MessageHead {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    contentId: row.content_id,
    recipient: row.recipient,
    status: row.status,
    isSandbox: row.is_sandbox === 1,
    deliveredAt: row.delivered_at,
    bouncedAt: row.bounced_at,
    campaignId: row.campaign_id,
    contactId: row.contact_id,
  }
}

const deleteQueued = statement((db, { ids }: { ids: readonly string[] }) =>
  db.deleteFrom('queue').where('message_id', 'in', ids),
)

/** Deletes the queue rows of messages that have ended. @param ids ids that are not queued are ignored */
export async function removeQueued(db: Queries, ids: readonly string[]): Promise<void> {
  for (const list of inLists(ids)) await deleteQueued(db, { ids: list })
}
