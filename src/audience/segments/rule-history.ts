/**
 * Rules about what contacts did elsewhere: campaigns they received and what they bought.
 *
 * Their rows belong to folders above, whose SQL the composition root provides (`appliance/appliance.ts`); the audience knows the words of
 * the rules and asks. Provided once, before anything is compiled.
 * Fails: Error where nothing was provided: a fault of the program.
 */
import type { RawBuilder } from 'kysely'
import type { Dialect, Queries } from '../../db/database.js'
import type { SeqRange } from '../audience-store.js'

export type CampaignField = 'campaign_received' | 'campaign_opened' | 'campaign_clicked'

/** Each is a condition or a value of the row of `contacts` that a statement looks at. */
export interface CampaignHistory {
  /** @param ids campaigns; undefined: any @param range of a statement on all its contacts; undefined: of one on few contacts */
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
  /** 0 where there are none. */
  count(workspaceId: string): RawBuilder<number>
  /** Sum of the values; 0 where there are none. */
  total(workspaceId: string): RawBuilder<number>
  /** Ms since epoch UTC; null where there are none. */
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
