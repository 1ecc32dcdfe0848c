/**
 * SQL of the pages of the public archive: what a campaign said, kept as long as the campaign.
 *
 * A page is stored when its campaign starts, if the campaign is to be archived then; whether it is shown follows from the campaign.
 */
import { brandTags } from '../../content/rendering/merging.js'
import { MergeError } from '../../content/merge/merge-tree.js'
import { dateTags } from '../../content/merge/merge-values.js'
import { parseTemplate } from '../../content/merge/parse-template.js'
import { renderTemplate } from '../../content/merge/render-template.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { findTest } from '../model/variant-store.js'
import type { Campaign } from '../model/campaign.js'
import { findLetter } from '../model/letter-store.js'
import type { Letter } from '../model/letter.js'

declare module '../../db/tables.js' {
  interface Tables {
    campaign_pages: {
      campaign: number
      workspace_id: string
      published_at: number
      subject: string
      letter: string
    }
  }
}

/** @param publishedAt when the campaign started @returns false if its content is not stored any more */
export async function insertPage(
  db: Queries,
  { seq, workspaceId }: Pick<Campaign, 'seq' | 'workspaceId'>,
  publishedAt: number,
): Promise<boolean> {
  const letter = await findLetter(db, seq)
  if (letter === undefined) return false
  await db
    .insertInto('campaign_pages')
    .values({
      campaign: seq,
      workspace_id: workspaceId,
      published_at: publishedAt,
      subject: subjectForNobody(JSON.parse(letter) as Letter, publishedAt),
      letter,
    })
    .onConflict(one => one.column('campaign').doNothing())
    .execute()
  return true
}

/** Stores the page of a campaign that has started; one with an undecided A/B test gets it once there is a winner. @throws AppError conflict if its content is not stored any more */
export async function requirePage(db: Queries, campaign: Campaign, now: number): Promise<void> {
  const page = await db
    .selectFrom('campaign_pages')
    .select('campaign')
    .where('campaign', '=', campaign.seq)
    .executeTakeFirst()
  const test = campaign.abTest && (await findTest(db, campaign.seq))
  const isToCome = test?.winner === null && campaign.finishedAt === null
  if (page || isToCome || (await insertPage(db, campaign, campaign.startedAt ?? now))) return
  throw new AppError(
    'conflict',
    'the content of this campaign is no longer stored; campaigns must be archived before they are completed',
  )
}

/** Empty if it cannot be rendered. */
function subjectForNobody({ subject, merging }: Letter, at: number): string {
  if (!merging) return subject
  const { brand, data } = merging
  const system = { ...brandTags(brand), ...dateTags(at, brand.timezone) }
  try {
    return renderTemplate(parseTemplate(subject, 'subject'), { system, ...given({ data }) }).trim()
  } catch (error) {
    if (error instanceof MergeError) return ''
    throw error
  }
}

/** A page as the archive lists it. */
export interface PageHead {
  /** Position in the archive. */
  readonly seq: number
  readonly campaignId: string
  readonly subject: string
  readonly publishedAt: number
  readonly isIndexed: boolean
}

function shownPages(db: Queries, workspaceId: string) {
  return db
    .selectFrom('campaign_pages')
    .innerJoin('campaigns', 'campaigns.seq', 'campaign_pages.campaign')
    .where('campaign_pages.workspace_id', '=', workspaceId)
    .where('campaigns.is_archived', '=', 1)
    .where('campaigns.status', 'in', ['sending', 'paused', 'completed'])
}

/** Newest first. @param before position of the last one listed before */
export async function listPages(
  db: Queries,
  workspaceId: string,
  before: number | undefined,
  limit: number,
): Promise<PageHead[]> {
  let pages = shownPages(db, workspaceId)
  if (before !== undefined) pages = pages.where('campaign_pages.campaign', '<', before)
  const rows = await pages
    .select(['campaigns.seq', 'campaigns.id', 'campaign_pages.subject', 'published_at', 'is_indexed'])
    .orderBy('campaign_pages.campaign', 'desc')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    seq: row.seq,
    campaignId: row.id,
    subject: row.subject,
    publishedAt: row.published_at,
    isIndexed: row.is_indexed === 1,
  }))
}

export async function findPage(
  db: Queries,
  workspaceId: string,
  campaignId: string,
): Promise<(PageHead & { readonly letter: Letter }) | undefined> {
  const row = await shownPages(db, workspaceId)
    .select(['campaigns.seq', 'campaign_pages.subject', 'published_at', 'is_indexed', 'letter'])
    .where('campaigns.id', '=', campaignId)
    .executeTakeFirst()
  return (
    row && {
      seq: row.seq,
      campaignId,
      subject: row.subject,
      publishedAt: row.published_at,
      isIndexed: row.is_indexed === 1,
      letter: JSON.parse(row.letter) as Letter,
    }
  )
}

export async function countPages(db: Queries, workspaceId: string): Promise<number> {
  const { total } = await shownPages(db, workspaceId)
    .select(e => e.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}
