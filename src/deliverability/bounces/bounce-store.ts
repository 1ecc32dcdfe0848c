/** SQL of bounces: one row per message that bounced. Written only by the event consumer `bounces`. */
import type { Insertable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { keysetPage, type KeysetOrder } from '../../db/listing.js'
import { deleteOldest } from '../../db/retention.js'
import { inPieces, statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { Cause, Permanence, Scope } from '../../mail/outcome.js'
import { createHash } from 'node:crypto'
import { uuidv7 } from '../../core/ids.js'

interface BounceRow {
  id: string
  workspace_id: string
  message_id: string
  email: string
  contact_id: string | null
  campaign_id: string | null
  type: Permanence
  subtype: string
  cause: Cause
  scope: Scope
  smtp_status: string
  diagnostic_code: string
  isp_name: string | null
  remote_mta: string | null
  is_sandbox: Flag
  created_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    bounces: BounceRow
  }
}

export interface Bounce {
  readonly id: string
  readonly workspaceId: string
  readonly messageId: string
  /** Lower case. */
  readonly email: string
  readonly contactId: string | null
  readonly campaignId: string | null
  readonly type: Permanence
  readonly subtype: string
  readonly cause: Cause
  readonly scope: Scope
  readonly smtpStatus: string
  readonly diagnosticCode: string
  /** E.g. `Gmail`; null for smaller providers. */
  readonly ispName: string | null
  readonly remoteMta: string | null
  readonly isSandbox: boolean
  readonly createdAt: number
}

const insertRows = statement((db, { rows }: { rows: readonly Insertable<BounceRow>[] }) =>
  db
    .insertInto('bounces')
    .values(rows)
    .onConflict(conflict => conflict.column('message_id').doNothing()),
)

/** A message that has a bounce keeps it. */
export async function insertBounces(db: Queries, bounces: readonly Bounce[]): Promise<void> {
  const rows = bounces.map(bounce => ({
    id: bounce.id,
    workspace_id: bounce.workspaceId,
    message_id: bounce.messageId,
    email: bounce.email,
    contact_id: bounce.contactId,
    campaign_id: bounce.campaignId,
    type: bounce.type,
    subtype: bounce.subtype,
    cause: bounce.cause,
    scope: bounce.scope,
    smtp_status: bounce.smtpStatus,
    diagnostic_code: bounce.diagnosticCode,
    isp_name: bounce.ispName,
    remote_mta: bounce.remoteMta,
    is_sandbox: flag(bounce.isSandbox),
    created_at: bounce.createdAt,
  }))
  for (const piece of inPieces(rows)) await insertRows(db, { rows: piece })
}

export interface BounceFilter {
  readonly type?: Permanence
  readonly subtype?: string
  /** Lower case. */
  readonly email?: string
  readonly messageId?: string
  readonly campaignId?: string
  /** Ms since epoch UTC; `since` is inclusive, `until` exclusive. */
  readonly since?: number
  readonly until?: number
}

const NEWEST_FIRST: KeysetOrder = {
  columns: ['created_at', 'id'],
  kinds: ['number', 'text'],
  direction: 'desc',
}

export async function listBounces(
  db: Queries,
  workspaceId: string,
  filter: BounceFilter,
  page: Page,
): Promise<Listing<Bounce>> {
  return keysetPage(matching(db, workspaceId, filter), NEWEST_FIRST, page, bounceFromRow)
}

export async function findBounce(db: Queries, workspaceId: string, id: string): Promise<Bounce | undefined> {
  const row = await db
    .selectFrom('bounces')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row && bounceFromRow(row)
}

/** In any workspace, for the operator. */
export async function findBounceOf(db: Queries, messageId: string): Promise<Bounce | undefined> {
  const row = await db
    .selectFrom('bounces')
    .selectAll()
    .where('message_id', '=', messageId)
    .executeTakeFirst()
  return row && bounceFromRow(row)
}

export function deleteBouncesBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'bounces', key: 'id', time: 'created_at' }, before, limit)
}

function matching(db: Queries, workspaceId: string, filter: BounceFilter) {
  let query = db.selectFrom('bounces').where('workspace_id', '=', workspaceId)
  const { type, subtype, email, messageId, campaignId, since, until } = filter
  if (type !== undefined) query = query.where('type', '=', type)
  if (subtype !== undefined) query = query.where('subtype', '=', subtype)
  if (email !== undefined) query = query.where('email', '=', email)
  if (messageId !== undefined) query = query.where('message_id', '=', messageId)
  if (campaignId !== undefined) query = query.where('campaign_id', '=', campaignId)
  if (since !== undefined) query = query.where('created_at', '>=', since)
  if (until !== undefined) query = query.where('created_at', '<', until)
  return query
}

function bounceFromRow(row: BounceRow): Bounce {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    messageId: row.message_id,
    email: row.email,
    contactId: row.contact_id,
    campaignId: row.campaign_id,
    type: row.type,
    subtype: row.subtype,
    cause: row.cause,
    scope: row.scope,
    smtpStatus: row.smtp_status,
    diagnosticCode: row.diagnostic_code,
    ispName: row.isp_name,
    remoteMta: row.remote_mta,
    isSandbox: row.is_sandbox === 1,
    createdAt: row.created_at,
  }
}

/**
 * The id follows from message and time, so an event can name its bounce before it is recorded.
 *
 * @param occurredAt ms since epoch UTC
 */
export function bounceIdOf({
  messageId,
  occurredAt,
}: {
  readonly messageId: string
  readonly occurredAt: number
}): string {
  return uuidv7(occurredAt, createHash('sha256').update(`bounce of ${messageId}`).digest())
}
