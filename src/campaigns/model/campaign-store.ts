/**
 * SQL of campaigns: one row each, with progress and counts.
 *
 * Counts are incremented in the transaction that changes the recipients they count (`recipient-store.ts`).
 */
import { sql, type Generated, type Selectable } from 'kysely'
import type { WaitReason } from '../../core/waiting.js'
import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import { statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { AbTest } from './ab-test.js'
import type { SendWindow } from './send-window.js'
import type {
  Audience,
  Campaign,
  CampaignFields,
  CampaignStatus,
  Mailing,
  ResendTo,
  SendTime,
  SentTo,
  Stats,
} from './campaign.js'

/** Columns of `Stats`. */
export const STAT_COLUMNS = {
  sends: 'sends',
  deliveries: 'deliveries',
  opens: 'opens',
  uniqueOpens: 'unique_opens',
  clicks: 'clicks',
  uniqueClicks: 'unique_clicks',
  bounces: 'bounces',
  complaints: 'complaints',
  unsubscribes: 'unsubscribes',
} as const
type StatColumn = (typeof STAT_COLUMNS)[keyof typeof STAT_COLUMNS]

/** Count columns by their name in `Campaign`. */
const COUNTS = {
  recipients: 'recipients',
  pending: 'pending',
  queued: 'queued',
  done: 'done',
  skipped: 'skipped',
  cancelled: 'cancelled',
  unsubscribed: 'unsubscribed',
  bounced: 'bounced',
  suppressed: 'suppressed',
  ...STAT_COLUMNS,
} as const
export type CountName = keyof typeof COUNTS
type CountColumn = (typeof COUNTS)[CountName]

/** Increments of counts. */
export type Counted = Partial<Record<CountName, number>>

/** Columns of `Mailing`. */
export interface MailingRow {
  name: string
  subject: string
  template_id: string
  list_id: string | null
  segment_id: string | null
  from_email: string | null
  from_name: string | null
  reply_to: string | null
  preheader: string | null
  track_opens: Flag | null
  track_clicks: Flag | null
  rate_per_hour: number | null
  send_window: string | null
}

interface CampaignHeadRow extends MailingRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  is_sandbox: Flag
  resend_of: string | null
  resend_to: ResendTo | null
  send_time: Generated<SendTime>
  ab_test: string | null
  /** JSON. */
  audience: string | null
  is_archived: Generated<Flag>
  is_indexed: Generated<Flag>
  status: CampaignStatus
  error: string | null
  created_at: number
  updated_at: number
  requested_at: number | null
  scheduled_at: number | null
  started_at: number | null
  finished_at: number | null
  next_at: number | null
  who: string | null
  fixed_before: number | null
  fixed_through: number | null
  fixed_at: number | null
  content_id: string | null
  content_at: number | null
  recipients_pruned_at: number | null
  waiting_since: number | null
  waiting_announced: WaitReason | null
}

type CampaignRow = CampaignHeadRow & Record<CountColumn, Generated<number>>

declare module '../../db/tables.js' {
  interface Tables {
    campaigns: CampaignRow
  }
}

export type NewCampaign = CampaignFields &
  Pick<Campaign, 'id' | 'workspaceId' | 'isSandbox' | 'createdAt' | 'updatedAt'>

export async function insertCampaign(db: Queries, campaign: NewCampaign): Promise<void> {
  await db
    .insertInto('campaigns')
    .values({
      id: campaign.id,
      workspace_id: campaign.workspaceId,
      is_sandbox: flag(campaign.isSandbox),
      status: 'draft',
      created_at: campaign.createdAt,
      ...fieldsToRow(campaign),
      updated_at: campaign.updatedAt,
    })
    .execute()
}

export async function updateDraft(
  db: Queries,
  seq: number,
  fields: CampaignFields,
  updatedAt: number,
): Promise<void> {
  await db
    .updateTable('campaigns')
    .set({ ...fieldsToRow(fields), updated_at: updatedAt })
    .where('seq', '=', seq)
    .execute()
}

export async function deleteCampaign(db: Queries, seq: number): Promise<void> {
  await db.deleteFrom('campaign_data').where('campaign', '=', seq).execute()
  await db.deleteFrom('campaign_checks').where('campaign', '=', seq).execute()
  await db.deleteFrom('campaigns').where('seq', '=', seq).execute()
}

export function mailingToRow(fields: Mailing): MailingRow {
  return {
    name: fields.name,
    subject: fields.subject,
    template_id: fields.templateId,
    list_id: fields.listId,
    segment_id: fields.segmentId,
    from_email: fields.fromEmail,
    from_name: fields.fromName,
    reply_to: fields.replyTo,
    preheader: fields.preheader,
    track_opens: fields.trackOpens === null ? null : flag(fields.trackOpens),
    track_clicks: fields.trackClicks === null ? null : flag(fields.trackClicks),
    rate_per_hour: fields.ratePerHour,
    send_window: fields.sendWindow && JSON.stringify(fields.sendWindow),
  }
}

function fieldsToRow(fields: CampaignFields) {
  return {
    ...mailingToRow(fields),
    resend_of: fields.resendOf,
    resend_to: fields.resendTo,
    send_time: fields.sendTime,
    ab_test: fields.abTest && JSON.stringify(fields.abTest),
    audience: fields.audience && JSON.stringify(fields.audience),
    is_archived: flag(fields.isArchived),
    is_indexed: flag(fields.isIndexed),
  }
}

export async function findCampaign(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Campaign | undefined> {
  const row = await db
    .selectFrom('campaigns')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row && campaignFromRow(row)
}

const selectBySeq = statement((db, { seq }: { seq: number }) =>
  db.selectFrom('campaigns').selectAll().where('seq', '=', seq),
)

export async function findCampaignBySeq(db: Queries, seq: number): Promise<Campaign | undefined> {
  const [row] = (await selectBySeq(db, { seq })).rows
  return row && campaignFromRow(row)
}

/** Newest first. */
export async function listCampaigns(
  db: Queries,
  workspaceId: string,
  status: CampaignStatus | undefined,
  page: Page,
): Promise<Listing<Campaign>> {
  let matching = db.selectFrom('campaigns').where('workspace_id', '=', workspaceId)
  if (status !== undefined) matching = matching.where('status', '=', status)
  return newestFirst(matching, page, campaignFromRow)
}

const selectDue = statement((db, given: { now: number; nextAt: number; seq: number; limit: number }) =>
  db
    .selectFrom('campaigns')
    .selectAll()
    .where('next_at', '<=', given.now)
    .where(e => e(e.refTuple('next_at', 'seq'), '>', e.tuple(given.nextAt, given.seq)))
    .orderBy('next_at')
    .orderBy('seq')
    .limit(given.limit),
)

/** Campaigns with work due, longest waiting first. @param last the last one listed before */
export async function listDue(
  db: Queries,
  now: number,
  last: Pick<Campaign, 'nextAt' | 'seq'> | undefined,
  limit: number,
): Promise<Campaign[]> {
  const after = { nextAt: last?.nextAt ?? -1, seq: last?.seq ?? -1 }
  return (await selectDue(db, { now, limit, ...after })).rows.map(campaignFromRow)
}

const selectNext = statement((db, { now }: { now: number }) =>
  db.selectFrom('campaigns').select('next_at').where('next_at', '>', now).orderBy('next_at').limit(1),
)

/** When work is next due after a given time. */
export async function nextDueAfter(db: Queries, now: number): Promise<number | undefined> {
  return (await selectNext(db, { now })).rows[0]?.next_at ?? undefined
}

/** To the letter as in the partial index. */
const IS_UNDER_WAY = sql<boolean>`status in ('sending', 'paused')`

/** Campaigns that are sent or paused, but for sandboxes', in the order of their numbers. */
export async function listUnderWay(db: Queries, after: number, limit: number): Promise<Campaign[]> {
  const rows = await db
    .selectFrom('campaigns')
    .selectAll()
    .where(IS_UNDER_WAY)
    .where('is_sandbox', '=', 0)
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(limit)
    .execute()
  return rows.map(campaignFromRow)
}

/** Columns other than counts that the runner and status changes write. */
export type CampaignChange = Partial<
  Pick<
    Campaign,
    | 'status'
    | 'error'
    | 'requestedAt'
    | 'scheduledAt'
    | 'startedAt'
    | 'finishedAt'
    | 'nextAt'
    | 'who'
    | 'fixedBefore'
    | 'fixedThrough'
    | 'fixedAt'
    | 'contentId'
    | 'contentAt'
    | 'updatedAt'
    | 'waitingSince'
    | 'waitingAnnounced'
  >
>

const CHANGING = {
  status: 'status',
  error: 'error',
  requestedAt: 'requested_at',
  scheduledAt: 'scheduled_at',
  startedAt: 'started_at',
  finishedAt: 'finished_at',
  nextAt: 'next_at',
  who: 'who',
  fixedBefore: 'fixed_before',
  fixedThrough: 'fixed_through',
  fixedAt: 'fixed_at',
  contentId: 'content_id',
  contentAt: 'content_at',
  updatedAt: 'updated_at',
  waitingSince: 'waiting_since',
  waitingAnnounced: 'waiting_announced',
} as const satisfies Record<keyof CampaignChange, string>

/** @param counted added to the counts */
export async function changeCampaign(
  db: Queries,
  seq: number,
  change: CampaignChange,
  counted: Counted = {},
): Promise<void> {
  const set: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(change))
    set[CHANGING[name as keyof CampaignChange]] = name === 'who' ? JSON.stringify(value) : value
  for (const [name, by] of Object.entries(counted)) {
    const column = COUNTS[name as CountName]
    if (by !== 0) set[column] = sql`${sql.ref(column)} + ${by}`
  }
  if (Object.keys(set).length > 0) await db.updateTable('campaigns').set(set).where('seq', '=', seq).execute()
}

export async function noteSettled(db: Queries, seqs: readonly number[]): Promise<void> {
  if (seqs.length === 0) return
  await db
    .updateTable('campaigns')
    .set({ next_at: 0 })
    .where('seq', 'in', seqs)
    .where('status', '=', 'sending')
    .where('pending', '=', 0)
    .where('queued', '=', 0)
    .execute()
}

export async function findCampaignSeqs(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('campaigns').select(['id', 'seq']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, seq }) => [id, seq]))
}

export function mailingFromRow(row: MailingRow): Mailing {
  return {
    name: row.name,
    subject: row.subject,
    templateId: row.template_id,
    listId: row.list_id,
    segmentId: row.segment_id,
    fromEmail: row.from_email,
    fromName: row.from_name,
    replyTo: row.reply_to,
    preheader: row.preheader,
    trackOpens: row.track_opens === null ? null : row.track_opens === 1,
    trackClicks: row.track_clicks === null ? null : row.track_clicks === 1,
    ratePerHour: row.rate_per_hour,
    sendWindow: row.send_window === null ? null : (JSON.parse(row.send_window) as SendWindow),
  }
}

export function statsFromRow(row: Record<StatColumn, number>): Stats {
  return {
    sends: row.sends,
    deliveries: row.deliveries,
    opens: row.opens,
    uniqueOpens: row.unique_opens,
    clicks: row.clicks,
    uniqueClicks: row.unique_clicks,
    bounces: row.bounces,
    complaints: row.complaints,
    unsubscribes: row.unsubscribes,
  }
}

export function campaignFromRow(row: Selectable<CampaignRow>): Campaign {
  return {
    seq: row.seq,
    id: row.id,
    workspaceId: row.workspace_id,
    isSandbox: row.is_sandbox === 1,
    ...mailingFromRow(row),
    resendOf: row.resend_of,
    resendTo: row.resend_to,
    sendTime: row.send_time,
    abTest: row.ab_test === null ? null : (JSON.parse(row.ab_test) as AbTest),
    audience: row.audience === null ? null : (JSON.parse(row.audience) as Audience),
    isArchived: row.is_archived === 1,
    isIndexed: row.is_indexed === 1,
    status: row.status,
    error: row.error,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    requestedAt: row.requested_at,
    scheduledAt: row.scheduled_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    nextAt: row.next_at,
    who: row.who === null ? null : (JSON.parse(row.who) as SentTo),
    fixedBefore: row.fixed_before,
    fixedThrough: row.fixed_through,
    fixedAt: row.fixed_at,
    recipientsPrunedAt: row.recipients_pruned_at,
    contentId: row.content_id,
    contentAt: row.content_at,
    waitingSince: row.waiting_since,
    waitingAnnounced: row.waiting_announced,
    recipients: row.recipients,
    pending: row.pending,
    queued: row.queued,
    done: row.done,
    skipped: row.skipped,
    cancelled: row.cancelled,
    unsubscribed: row.unsubscribed,
    bounced: row.bounced,
    suppressed: row.suppressed,
    ...statsFromRow(row),
  }
}

/** The JSON that may name it as well, and its field there. */
const AMONG = {
  list_id: ['audience', 'listId'],
  segment_id: ['audience', 'segmentId'],
  template_id: ['ab_test', 'templateId'],
} as const

/** Scheduled, sending and paused campaigns that use this list, segment or template, alone or among others. */
export async function findUnfinishedUsing(
  db: Queries,
  workspaceId: string,
  column: 'list_id' | 'segment_id' | 'template_id',
  id: string,
): Promise<{ readonly id: string; readonly name: string; readonly status: CampaignStatus }[]> {
  return db
    .selectFrom('campaigns')
    .select(['id', 'name', 'status'])
    .where('workspace_id', '=', workspaceId)
    .where('status', 'in', ['scheduled', 'sending', 'paused'])
    .where(e => {
      const [among, name] = AMONG[column]
      return e.or([e(column, '=', id), e(among, 'like', `%"${name}":"${id}"%`)])
    })
    .orderBy('seq')
    .execute()
}
