/**
 * Rules on what contacts did elsewhere: campaigns received, and purchases.
 *
 * That data belongs to higher layers; the composition root (`appliance/appliance.ts`) provides their SQL once, before anything is compiled.
 * Fails: Error if it was not provided, which is a bug.
 */
import type { RawBuilder } from 'kysely'
import type { Dialect, Queries } from '../../db/database.js'
import type { SeqRange } from '../audience-store.js'

export type CampaignField = 'campaign_received' | 'campaign_opened' | 'campaign_clicked'

/** Each returns a condition or value for the current row of `contacts`. */
export interface CampaignHistory {
  /** @param ids campaigns; undefined: any @param range scanned by the statement; undefined if it reads few contacts */
  isAmong(
    field: CampaignField,
    workspaceId: string,
    ids: readonly string[] | undefined,
    range: SeqRange | undefined,
  ): RawBuilder<boolean>
  /** @returns those that exist */
  findKnown(db: Queries, workspaceId: string, ids: readonly string[]): Promise<readonly string[]>
}

export interface PurchaseHistory {
  /** 0 if there are none. */
  count(workspaceId: string): RawBuilder<number>
  /** Sum of values; 0 if there are none. */
  total(workspaceId: string): RawBuilder<number>
  /** Ms since epoch UTC; null if there are none. */
  lastAt(workspaceId: string): RawBuilder<number | null>
  /** @param products undefined: any */
  hasBought(
    dialect: Dialect,
    workspaceId: string,
    products: readonly string[] | undefined,
  ): RawBuilder<boolean>
}

export interface History {
  readonly campaigns: CampaignHistory
  readonly purchases: PurchaseHistory
}

let provided: Partial<History> = {}

export function provideHistory(history: Partial<History>): void {
  provided = { ...provided, ...history }
}

export function historyOf<K extends keyof History>(kind: K): History[K] {
  const found = provided[kind]
  if (!found) throw new Error(`no ${kind} were provided for rules`)
  return found
}
