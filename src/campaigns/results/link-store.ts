/**
 * SQL of campaign links: total and unique clicks for each.
 *
 * Incremented by the consumer; reports never count clicks. URLs that differ by recipient are separate links, so a campaign counts only
 * `MAX_LINKS` separately and all others together.
 */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { pageWithTotal } from '../../db/listing.js'
import type { Listing, Page } from '../../http/pagination.js'

/** Links of a campaign counted separately. */
export const MAX_LINKS = 1_000
const OTHERS = { link: 0, digest: '' } as const

interface LinkRow {
  campaign: number
  link: number
  digest: string
  url: string | null
  clicks: number
  unique_clicks: number
}

declare module '../../db/tables.js' {
  interface Tables {
    campaign_links: LinkRow
    campaign_clicks: { campaign: number; link: number; contact: number }
  }
}

export interface LinkClick {
  readonly campaign: number
  readonly contact: number
  readonly url: string
}

/** Runs in the transaction that updates the campaign's counts. */
export async function countClicks(db: Queries, clicks: readonly LinkClick[]): Promise<void> {
  const byCampaign = new Map<number, LinkClick[]>()
  for (const one of clicks) {
    const own = byCampaign.get(one.campaign)
    if (own) own.push(one)
    else byCampaign.set(one.campaign, [one])
  }
  for (const [campaign, own] of byCampaign) await countOwn(db, campaign, own)
}

async function countOwn(db: Queries, campaign: number, clicks: readonly LinkClick[]): Promise<void> {
  const links = await ensureLinks(db, campaign, new Set(clicks.map(({ url }) => url)))
  const contacts = new Map<number, number[]>()
  for (const { contact, url } of clicks) {
    const link = links.get(url) ?? OTHERS.link
    contacts.set(link, [...(contacts.get(link) ?? []), contact])
  }
  for (const [link, all] of contacts) {
    const fresh = await db
      .insertInto('campaign_clicks')
      .values([...new Set(all)].map(contact => ({ campaign, link, contact })))
      .onConflict(conflict => conflict.doNothing())
      .returning('contact')
      .execute()
    await db
      .updateTable('campaign_links')
      .set(e => ({
        clicks: e('clicks', '+', all.length),
        unique_clicks: e('unique_clicks', '+', fresh.length),
      }))
      .where('campaign', '=', campaign)
      .where('link', '=', link)
      .execute()
  }
}

/** @returns the number of each link; links beyond the limit have none */
export async function ensureLinks(
  db: Queries,
  campaign: number,
  urls: ReadonlySet<string>,
): Promise<ReadonlyMap<string, number>> {
  const digests = new Map([...urls].map(url => [digestOf(url), url]))
  const known = await db
    .selectFrom('campaign_links')
    .select(['link', 'digest'])
    .where('campaign', '=', campaign)
    .where('digest', 'in', [...digests.keys()])
    .execute()
  const found = new Map<string, number>()
  for (const { link, digest } of known) {
    found.set(digests.get(digest) ?? '', link)
    digests.delete(digest)
  }
  if (digests.size === 0) return found
  const { last } = await db
    .selectFrom('campaign_links')
    .select(e => e.fn.max<number | null>('link').as('last'))
    .where('campaign', '=', campaign)
    .executeTakeFirstOrThrow()
  const rows = [...digests].map(([digest, url], at) => newLink(campaign, (last ?? 0) + 1 + at, digest, url))
  const fitting = rows.filter(({ link }) => link <= MAX_LINKS)
  for (const { link, url } of fitting) found.set(url ?? '', link)
  const added =
    fitting.length < rows.length ? [...fitting, newLink(campaign, OTHERS.link, OTHERS.digest, null)] : fitting
  await db
    .insertInto('campaign_links')
    .values(added)
    .onConflict(conflict => conflict.doNothing())
    .execute()
  return found
}

function newLink(campaign: number, link: number, digest: string, url: string | null): LinkRow {
  return { campaign, link, digest, url, clicks: 0, unique_clicks: 0 }
}

function digestOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url')
}

export interface ClickedLink {
  /** Null: all links beyond the limit. */
  readonly url: string | null
  readonly clicks: number
  readonly uniqueClicks: number
}

export async function listLinks(db: Queries, campaign: number, page: Page): Promise<Listing<ClickedLink>> {
  const ofCampaign = db.selectFrom('campaign_links').where('campaign', '=', campaign)
  const most = ofCampaign
    .selectAll()
    .orderBy('clicks', 'desc')
    .orderBy('link')
    .limit(page.limit)
    .offset(page.offset)
  return pageWithTotal(ofCampaign, most, ({ url, clicks, unique_clicks: uniqueClicks }) => ({
    url,
    clicks,
    uniqueClicks,
  }))
}

/** Deletes a campaign's records of who clicked. @returns how many rows, at most `limit` */
export async function deleteClicks(db: Queries, campaign: number, limit: number): Promise<number> {
  const result = await sql`
    delete from campaign_clicks where campaign = ${campaign} and (link, contact) in (
      select link, contact from campaign_clicks where campaign = ${campaign} limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}
