/**
 * SQL for listing a campaign's recipients with their contact and delivery times.
 *
 * For `Database.slowReader`: indexed, but a page may lie deep.
 */
import { sql } from 'kysely'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { RecipientStatus, LeftOutReason } from '../model/recipient-store.js'
import { createHash } from 'node:crypto'
import { countRows } from '../../db/listing.js'

export interface ShownRecipient {
  /** Null if the contact was erased. */
  readonly contactId: string | null
  readonly email: string | null
  readonly status: RecipientStatus
  readonly reason: LeftOutReason | null
  readonly messageId: string | null
  /** In the sample of an A/B test. */
  readonly variant: number | null
  readonly handedAt: number | null
  readonly deliveredAt: number | null
  readonly openedAt: number | null
  readonly clickedAt: number | null
  readonly bouncedAt: number | null
  readonly complainedAt: number | null
}

/** In order of contact creation. @param all total number of recipients */
export async function listRecipients(
  db: Queries,
  campaign: number,
  all: number,
  status: RecipientStatus | undefined,
  { limit, offset, after }: Page,
): Promise<Listing<ShownRecipient>> {
  const isMeant = status === undefined ? sql`1 = 1` : sql`status = ${status}`
  const total = after?.total ?? (status === undefined ? all : await countWith(db, campaign, status))
  if (!after && offset >= total) return { items: [], total, end: undefined }
  const isBehind = after ? sql`contact > ${after.position('number')[0]}` : sql`1 = 1`
  const { rows } = await sql<ShownRecipient & { contact: number }>`
    select page.contact as contact, contacts.id as "contactId", coalesce(messages.recipient, contacts.email) as email,
      page.status as status, page.reason as reason, page.message_id as "messageId", page.variant as variant,
      messages.created_at as "handedAt", messages.delivered_at as "deliveredAt", messages.opened_at as "openedAt",
      messages.clicked_at as "clickedAt", messages.bounced_at as "bouncedAt", messages.complained_at as "complainedAt"
    from (select contact, status, reason, message_id, variant from campaign_recipients
      where campaign = ${campaign} and ${isMeant} and ${isBehind} order by contact limit ${limit + 1} offset ${offset}) as page
    left join contacts on contacts.seq = page.contact
    left join messages on messages.id = page.message_id
    order by page.contact`.execute(db)
  const items = rows.slice(0, limit)
  return { items, total, end: items.slice(-1).map(({ contact }) => contact), hasMore: rows.length > limit }
}

async function countWith(db: Queries, campaign: number, status: RecipientStatus): Promise<number> {
  const { total } = await db
    .selectFrom('campaign_recipients')
    .select(e => e.fn.countAll<number>().as('total'))
    .where('campaign', '=', campaign)
    .where('status', '=', status)
    .executeTakeFirstOrThrow()
  return total
}

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

interface VariantLinkRow {
  campaign: number
  variant: number
  link: number
  clicks: number
  unique_clicks: number
}

declare module '../../db/tables.js' {
  interface Tables {
    campaign_links: LinkRow
    campaign_variant_links: VariantLinkRow
    campaign_clicks: { campaign: number; link: number; contact: number }
  }
}

export interface LinkClick {
  readonly campaign: number
  readonly contact: number
  /** In the sample of an A/B test. */
  readonly variant: number | null
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
  const byLink = new Map<number, LinkClick[]>()
  for (const one of clicks) {
    const link = links.get(one.url) ?? OTHERS.link
    const all = byLink.get(link)
    if (all) all.push(one)
    else byLink.set(link, [one])
  }
  const ofVariants: VariantLinkRow[] = []
  for (const [link, all] of byLink) {
    const contacts = new Set(all.map(({ contact }) => contact))
    const fresh = await db
      .insertInto('campaign_clicks')
      .values([...contacts].map(contact => ({ campaign, link, contact })))
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
    ofVariants.push(...countByVariant(all, new Set(fresh.map(({ contact }) => contact)), link))
  }
  await addToVariants(db, ofVariants)
}

/** @param clicks of one link @param fresh who had not clicked it before */
function countByVariant(
  clicks: readonly LinkClick[],
  fresh: ReadonlySet<number>,
  link: number,
): VariantLinkRow[] {
  const counts = new Map<number, VariantLinkRow>()
  const left = new Set(fresh)
  for (const { campaign, contact, variant } of clicks) {
    if (variant === null) continue
    const own = counts.get(variant) ?? { campaign, variant, link, clicks: 0, unique_clicks: 0 }
    counts.set(variant, own)
    own.clicks += 1
    if (left.delete(contact)) own.unique_clicks += 1
  }
  return [...counts.values()]
}

/** @param counts each variant and link at most once */
async function addToVariants(db: Queries, counts: readonly VariantLinkRow[]): Promise<void> {
  if (counts.length === 0) return
  await db
    .insertInto('campaign_variant_links')
    .values(counts)
    .onConflict(conflict =>
      conflict.columns(['campaign', 'variant', 'link']).doUpdateSet(e => ({
        clicks: e('campaign_variant_links.clicks', '+', e.ref('excluded.clicks')),
        unique_clicks: e('campaign_variant_links.unique_clicks', '+', e.ref('excluded.unique_clicks')),
      })),
    )
    .execute()
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
    found.set(must(digests.get(digest), 'the URL of a digest'), link)
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
  const { limit, offset, after, isUncounted } = page
  const [clicks, link] = after?.position('number', 'number') ?? []
  const most = await ofCampaign
    .selectAll()
    .$if(after !== undefined, query =>
      query.where(e =>
        e.or([
          e('clicks', '<', Number(clicks)),
          e.and([e('clicks', '=', Number(clicks)), e('link', '>', Number(link))]),
        ]),
      ),
    )
    .orderBy('clicks', 'desc')
    .orderBy('link')
    .limit(limit + 1)
    .offset(offset)
    .execute()
  const shown = most.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: shown.map(({ url, clicks, unique_clicks: uniqueClicks }) => ({ url, clicks, uniqueClicks })),
    total: after?.total ?? (isUncounted ? most.length : await countRows(ofCampaign)),
    end: last && [last.clicks, last.link],
    hasMore: most.length > limit,
  }
}

/** Links that the sample of an A/B test clicked in one variant, most clicked first: at most `MAX_LINKS` and one for all others. */
export async function listVariantLinks(
  db: Queries,
  campaign: number,
  variant: number,
): Promise<ClickedLink[]> {
  return db
    .selectFrom('campaign_variant_links as counts')
    .innerJoin('campaign_links as links', join =>
      join.onRef('links.campaign', '=', 'counts.campaign').onRef('links.link', '=', 'counts.link'),
    )
    .select(['links.url', 'counts.clicks', 'counts.unique_clicks as uniqueClicks'])
    .where('counts.campaign', '=', campaign)
    .where('counts.variant', '=', variant)
    .orderBy('counts.clicks', 'desc')
    .orderBy('counts.link')
    .execute()
}

/** Deletes a campaign's records of who clicked. @returns how many rows, at most `limit` */
export async function deleteClicks(db: Queries, campaign: number, limit: number): Promise<number> {
  const result = await sql`
    delete from campaign_clicks where campaign = ${campaign} and (link, contact) in (
      select link, contact from campaign_clicks where campaign = ${campaign} limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** @returns how many rows were deleted, at most `limit`; 0 if nothing is old */
export async function forgetRecipients(db: Queries, before: number, limit: number): Promise<number> {
  const oldest = await db
    .selectFrom('campaigns')
    .select('seq')
    .where('finished_at', '<', before)
    .where('recipients_pruned_at', 'is', null)
    .orderBy('finished_at')
    .limit(1)
    .executeTakeFirst()
  if (!oldest) return 0
  const { seq } = oldest
  const clicks = await deleteClicks(db, seq, limit)
  if (clicks > 0) return clicks
  const result = await sql`
    delete from campaign_recipients where campaign = ${seq} and contact in (
      select contact from campaign_recipients where campaign = ${seq} order by contact limit ${limit})`.execute(
    db,
  )
  const recipients = Number(result.numAffectedRows ?? 0n)
  if (recipients > 0) return recipients
  await db.updateTable('campaigns').set({ recipients_pruned_at: before }).where('seq', '=', seq).execute()
  return 1
}
