/**
 * SQL of campaign holds: while a campaign is held, none of its mail is delivered.
 *
 * Pausing or cancelling a campaign adds the hold in the same transaction. It is independent of the operator's hold on
 * single rows (`queue.is_held`). `CampaignHolds` caches the open holds; it is reloaded when one changes or another
 * process has written.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import type { Lane } from '../lane.js'

interface CampaignHoldRow {
  campaign_id: string
  workspace_id: string
  /** Ms since epoch UTC; null if released. */
  held_at: number | null
  /** Total duration of earlier holds, ms. */
  held_ms: number
}

declare module '../../db/tables.js' {
  interface Tables {
    campaign_holds: CampaignHoldRow
  }
}

export interface HeldCampaign {
  readonly id: string
  readonly workspaceId: string
}

/** Holding a held campaign changes nothing. */
export async function holdCampaign(
  db: Queries,
  { id, workspaceId }: HeldCampaign,
  now: number,
): Promise<void> {
  await db
    .insertInto('campaign_holds')
    .values({ campaign_id: id, workspace_id: workspaceId, held_at: now, held_ms: 0 })
    .onConflict(conflict =>
      conflict
        .column('campaign_id')
        .doUpdateSet({ held_at: sql`coalesce(campaign_holds.held_at, excluded.held_at)` }),
    )
    .execute()
}

/** Keeps the duration of the hold: the campaign's mail expires that much later. */
export async function releaseCampaign(db: Queries, id: string, now: number): Promise<void> {
  const lasted = sql<number>`case when held_at < ${now} then ${now} - held_at else 0 end`
  await db
    .updateTable('campaign_holds')
    .set(row => ({ held_at: null, held_ms: row('held_ms', '+', lasted) }))
    .where('campaign_id', '=', id)
    .where('held_at', 'is not', null)
    .execute()
}

export async function deleteHold(db: Queries, id: string): Promise<void> {
  await db.deleteFrom('campaign_holds').where('campaign_id', '=', id).execute()
}

export async function listHeldCampaigns(db: Queries): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('campaign_holds')
    .select('campaign_id')
    .where('held_at', 'is not', null)
    .execute()
  return new Set(rows.map(row => row.campaign_id))
}

/** Total time each campaign was held until now, ms; campaigns that never were are missing. */
export async function findHeldMs(
  db: Queries,
  campaignIds: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>()
  for (const list of inLists(campaignIds)) {
    const rows = await db
      .selectFrom('campaign_holds')
      .select(['campaign_id', 'held_at', 'held_ms'])
      .where('campaign_id', 'in', list)
      .execute()
    for (const row of rows)
      found.set(row.campaign_id, row.held_ms + (row.held_at === null ? 0 : Math.max(0, now - row.held_at)))
  }
  return found
}

export interface HoldChanges {
  readonly hasHeld: boolean
  readonly hasReleased: boolean
}

export class CampaignHolds {
  private readonly db: Queries
  private held: ReadonlySet<string> = new Set()
  private looking: Promise<unknown> = Promise.resolve()

  constructor(db: Queries) {
    this.db = db
  }

  isHeld({ campaignId }: Pick<Lane, 'campaignId'>): boolean {
    return campaignId !== undefined && this.held.has(campaignId)
  }

  /** Reloads are serialized, so the last one started wins. */
  reload(): Promise<HoldChanges> {
    const look = this.looking.then(() => this.read())
    this.looking = look.catch(() => undefined)
    return look
  }

  private async read(): Promise<HoldChanges> {
    const { held: before } = this
    const held = await listHeldCampaigns(this.db)
    this.held = held
    return {
      hasHeld: [...held].some(id => !before.has(id)),
      hasReleased: [...before].some(id => !held.has(id)),
    }
  }
}
