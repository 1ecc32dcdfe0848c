/** SQL of passes over a workspace's contacts after a domain suppression changed: one row per pass in progress. */
import type { Queries } from '../../db/database.js'
import { flag, type Flag } from '../../db/tables.js'
import type { SeqRange } from '../audience-store.js'

interface SuppressionSweepRow {
  workspace_id: string
  is_sandbox: Flag
  position: number
}

declare module '../../db/tables.js' {
  interface Tables {
    suppression_sweeps: SuppressionSweepRow
  }
}

export interface SuppressionSweep {
  /** A sandbox has an id separate from its workspace's. */
  readonly workspaceId: string
  readonly isSandbox: boolean
  /** Number of the next contact. */
  readonly position: number
}

/** Replaces the workspace's pass, if any. */
export async function putSuppressionSweep(
  db: Queries,
  { workspaceId, isSandbox, position }: SuppressionSweep,
): Promise<void> {
  await db
    .insertInto('suppression_sweeps')
    .values({ workspace_id: workspaceId, is_sandbox: flag(isSandbox), position })
    .onConflict(conflict => conflict.column('workspace_id').doUpdateSet({ position }))
    .execute()
}

export async function deleteSuppressionSweep(db: Queries, workspaceId: string): Promise<void> {
  await db.deleteFrom('suppression_sweeps').where('workspace_id', '=', workspaceId).execute()
}

export async function nextSuppressionSweep(db: Queries): Promise<SuppressionSweep | undefined> {
  const row = await db
    .selectFrom('suppression_sweeps')
    .selectAll()
    .orderBy('workspace_id')
    .limit(1)
    .executeTakeFirst()
  return row && { workspaceId: row.workspace_id, isSandbox: row.is_sandbox === 1, position: row.position }
}

export interface SubscriptionRow {
  readonly seq: number
  readonly email: string
  readonly subscribed: Flag
  readonly is_suspended: Flag
}

/** Live contacts, oldest first. */
export async function subscriptionsAfter(
  db: Queries,
  { first, last }: SeqRange,
  limit: number,
): Promise<SubscriptionRow[]> {
  return db
    .selectFrom('contacts')
    .select(['seq', 'email', 'subscribed', 'is_suspended'])
    .where('seq', '>=', first)
    .where('seq', '<=', last)
    .where('deleted_at', 'is', null)
    .orderBy('seq')
    .limit(limit)
    .execute()
}
