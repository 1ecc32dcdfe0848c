/** SQL of the queue by destination and age. */
import { sql } from 'kysely'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { listHeldCampaigns } from '../claiming/campaign-hold-store.js'

export interface SummaryRow {
  readonly destination: string
  /** Held by the operator or a paused campaign. */
  readonly held: number
  /** One count per age bound, and one for older messages. */
  readonly byAge: readonly number[]
  readonly total: number
}

/** The rows that a limit leaves, and what all of them have. */
export interface Summary<Row> {
  readonly rows: readonly Row[]
  /** Destinations or sites with mail. */
  readonly found: number
  readonly total: number
  readonly held: number
}

/**
 * Destinations with most mail first. Reads every entry.
 *
 * @param db the slow reader
 * @param ageBoundsMs ascending
 * @param limit maximum number of destinations
 */
export async function summarize(
  db: Queries,
  now: number,
  ageBoundsMs: readonly number[],
  limit: number,
  workspaceId?: string,
): Promise<Summary<SummaryRow>> {
  const bounds = [...ageBoundsMs, Infinity]
  // Includes messages enqueued while this runs.
  const youngest = (index: number) => (index === 0 ? Number.MAX_SAFE_INTEGER : now - (bounds[index - 1] ?? 0))
  const hasPaused = (await listHeldCampaigns(db)).size > 0
  const held = hasPaused
    ? sql<number>`sum(case when is_held = 1 or ${isOfPausedCampaign} then 1 else 0 end)`
    : sql<number>`sum(is_held)`
  const rows = await db
    .selectFrom('queue')
    .select('destination')
    .select(e => [
      e.fn.countAll<number>().as('total'),
      held.as('held'),
      sql<number>`count(*) over ()`.as('found'),
      sql<number>`cast(sum(count(*)) over () as bigint)`.as('total_of_all'),
      sql<number>`cast(sum(${held}) over () as bigint)`.as('held_of_all'),
      ...bounds.map((bound, index) =>
        sql<number>`sum(case when enqueued_at > ${bound === Infinity ? 0 : now - bound} and enqueued_at <= ${youngest(index)} then 1 else 0 end)`.as(
          `age${index}`,
        ),
      ),
    ])
    .$if(workspaceId !== undefined, query =>
      query.where('workspace_id', '=', must(workspaceId, 'workspaceId')),
    )
    .groupBy('destination')
    .orderBy('total', 'desc')
    .orderBy('destination')
    .limit(limit)
    .execute()
  const [first] = rows
  return {
    rows: rows.map(row => ({
      destination: row.destination,
      held: row.held,
      total: row.total,
      byAge: bounds.map((_, index) => Number((row as unknown as Record<string, number>)[`age${index}`])),
    })),
    found: first?.found ?? 0,
    total: first?.total_of_all ?? 0,
    held: first?.held_of_all ?? 0,
  }
}

const isOfPausedCampaign = sql`exists (
  select 1 from message_contents
  inner join campaign_holds on campaign_holds.campaign_id = message_contents.campaign_id
  where message_contents.id = queue.content_id and campaign_holds.held_at is not null)`
