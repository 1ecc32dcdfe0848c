/** SQL of campaign checks: the newest of each campaign, with its progress and findings. */
import type { Queries } from '../../db/database.js'
import type { CampaignFinding } from './findings.js'
import type { SpamScore } from './spam-score.js'

export const CHECK_STATUSES = ['running', 'completed', 'failed'] as const
export type CheckStatus = (typeof CHECK_STATUSES)[number]

interface CampaignCheckRow {
  campaign: number
  id: string
  status: CheckStatus
  /** Recipients rendered so far, and how many there are; an estimate at first. */
  checked: number
  total: number
  /** JSON. */
  findings: string | null
  largest: number | null
  /** JSON. */
  spam: string | null
  started_at: number
  finished_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    campaign_checks: CampaignCheckRow
  }
}

export interface CampaignCheck {
  /** The campaign's number. */
  readonly campaign: number
  readonly id: string
  readonly status: CheckStatus
  readonly checked: number
  readonly total: number
  readonly findings: readonly CampaignFinding[]
  /** Of the longest HTML, octets. */
  readonly largest: number | null
  /** Null if no rspamd was asked. */
  readonly spam: SpamScore | null
  readonly startedAt: number
  readonly finishedAt: number | null
}

/** Replaces the campaign's earlier check. */
export async function startCheck(
  db: Queries,
  { campaign, id, startedAt, total }: Pick<CampaignCheck, 'campaign' | 'id' | 'startedAt' | 'total'>,
): Promise<void> {
  const fresh = {
    id,
    status: 'running' as const,
    checked: 0,
    total,
    findings: null,
    largest: null,
    spam: null,
    started_at: startedAt,
    finished_at: null,
  }
  await db
    .insertInto('campaign_checks')
    .values({ campaign, ...fresh })
    .onConflict(conflict => conflict.column('campaign').doUpdateSet(fresh))
    .execute()
}

export async function findCheck(db: Queries, campaign: number): Promise<CampaignCheck | undefined> {
  const row = await db
    .selectFrom('campaign_checks')
    .selectAll()
    .where('campaign', '=', campaign)
    .executeTakeFirst()
  return row && fromRow(row)
}

/** The oldest of each workspace, oldest first. */
export async function listRunning(db: Queries, limit: number): Promise<CampaignCheck[]> {
  const running = await db
    .selectFrom('campaign_checks')
    .innerJoin('campaigns', 'campaigns.seq', 'campaign_checks.campaign')
    .select(['campaign_checks.campaign', 'campaigns.workspace_id'])
    .where('campaign_checks.status', '=', 'running')
    .orderBy('campaign_checks.started_at')
    .orderBy('campaign_checks.campaign')
    .execute()
  const first = new Map<string, number>()
  for (const { campaign, workspace_id: owner } of running) if (!first.has(owner)) first.set(owner, campaign)
  const chosen = [...first.values()].slice(0, limit)
  if (chosen.length === 0) return []
  const rows = await db
    .selectFrom('campaign_checks')
    .selectAll()
    .where('campaign', 'in', chosen)
    .orderBy('started_at')
    .orderBy('campaign')
    .execute()
  return rows.map(fromRow)
}

export interface CheckChange {
  readonly status?: CheckStatus
  readonly checked?: number
  readonly total?: number
  readonly findings?: readonly CampaignFinding[]
  readonly largest?: number
  readonly spam?: SpamScore | undefined
  readonly finishedAt?: number
}

/** @returns false if another check has replaced it */
export async function changeCheck(
  db: Queries,
  { campaign, id }: Pick<CampaignCheck, 'campaign' | 'id'>,
  change: CheckChange,
): Promise<boolean> {
  const { findings, finishedAt, spam, ...counts } = change
  const { numUpdatedRows } = await db
    .updateTable('campaign_checks')
    .set({
      ...counts,
      ...(findings === undefined ? {} : { findings: JSON.stringify(findings) }),
      ...(spam === undefined ? {} : { spam: JSON.stringify(spam) }),
      ...(finishedAt === undefined ? {} : { finished_at: finishedAt }),
    })
    .where('campaign', '=', campaign)
    .where('id', '=', id)
    .where('status', '=', 'running')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Retention of ended checks. */
export async function deleteOldChecks(db: Queries, before: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('campaign_checks')
    .where('campaign', 'in', of =>
      of
        .selectFrom('campaign_checks')
        .select('campaign')
        .where('finished_at', '<', before)
        .orderBy('finished_at')
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

function fromRow(row: CampaignCheckRow): CampaignCheck {
  return {
    campaign: row.campaign,
    id: row.id,
    status: row.status,
    checked: row.checked,
    total: row.total,
    findings: row.findings === null ? [] : (JSON.parse(row.findings) as CampaignFinding[]),
    largest: row.largest,
    spam: row.spam === null ? null : (JSON.parse(row.spam) as SpamScore),
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  }
}
