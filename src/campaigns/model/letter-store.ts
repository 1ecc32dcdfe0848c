/** SQL of what a campaign says: its letter, kept while messages are still to be created, and the values of its merge tags. */
import type { MergeData } from '../../content/rendering/merging.js'
import type { Queries } from '../../db/database.js'

declare module '../../db/tables.js' {
  interface Tables {
    campaign_letters: { campaign: number; letter: string }
    campaign_data: { campaign: number; data: string }
  }
}

export async function insertLetter(db: Queries, campaign: number, letter: object): Promise<void> {
  await db
    .insertInto('campaign_letters')
    .values({ campaign, letter: JSON.stringify(letter) })
    .execute()
}

/** @returns the letter as JSON */
export async function findLetter(db: Queries, campaign: number): Promise<string | undefined> {
  const row = await db
    .selectFrom('campaign_letters')
    .select('letter')
    .where('campaign', '=', campaign)
    .executeTakeFirst()
  return row?.letter
}

export async function deleteLetter(db: Queries, campaign: number): Promise<void> {
  await db.deleteFrom('campaign_letters').where('campaign', '=', campaign).execute()
}

/** Values of its merge tags that are the same for all recipients, such as the items of a feed. */
export async function insertCampaignData(db: Queries, campaign: number, data: MergeData): Promise<void> {
  await db
    .insertInto('campaign_data')
    .values({ campaign, data: JSON.stringify(data) })
    .execute()
}

export async function findCampaignData(db: Queries, campaign: number): Promise<MergeData | undefined> {
  const row = await db
    .selectFrom('campaign_data')
    .select('data')
    .where('campaign', '=', campaign)
    .executeTakeFirst()
  return row && (JSON.parse(row.data) as MergeData)
}
