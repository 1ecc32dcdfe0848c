/**
 * The click map: a campaign's mail as it was sent, with the clicks of each link drawn over it.
 *
 * The HTML is rendered without a recipient, as in the archive, by the render queue. A badge is added to each link; it takes no room, so the
 * mail keeps its layout. It has inline styles only: mail is shown without scripts. Links whose URL differs per recipient have no badge.
 * The source is the content of the newest messages, else the archived page; the HTML is null if neither is kept. Of an A/B test, each
 * variant has a map of its own; the map of all clicks shows the winner, or the first variant before there is one.
 */
import type { Database } from '../../db/database.js'
import { followedUrl, withParameters, type UrlParameters } from '../../content/tracking/followed-url.js'
import { TAG } from '../../mail/html/names.js'
import { MarkupPlace, readMarkup } from '../../mail/html/read-markup.js'
import type { Merging } from '../../content/rendering/merging.js'
import { renderKey, type RenderQueue } from '../../content/rendering/render-queue.js'
import type { MailRequest } from '../../content/rendering/render-request.js'
import { given } from '../../core/given.js'
import { findContents } from '../../messages/content-store.js'
import { findTest } from '../model/variant-store.js'
import { findPage } from '../archive/page-store.js'
import type { Campaign } from '../model/campaign.js'
import { listLinks, listVariantLinks, MAX_LINKS, type ClickedLink } from './result-store.js'

export interface MappedLink extends ClickedLink {
  /** Number of its badge, from 1 in the order of the mail; null if it has none. */
  readonly number: number | null
  /** Of all clicks, 0 to 1. */
  readonly share: number
}

export interface ClickMap {
  readonly html: string | null
  /** Links with badges in their order, then others, most clicked first. */
  readonly links: readonly MappedLink[]
}

export interface ClickMapParts {
  readonly database: Database
  readonly renderQueue: RenderQueue
}

/**
 * @param variant of an A/B test: its mail, with the clicks of those in the sample who got it
 * @throws AppError unavailable if too many renderings wait
 */
export async function clickMapOf(
  parts: ClickMapParts,
  campaign: Campaign,
  variant: number | undefined,
): Promise<ClickMap> {
  const { slowReader } = parts.database
  const all = { limit: MAX_LINKS + 1, offset: 0 }
  const clicked =
    variant === undefined
      ? (await listLinks(slowReader, campaign.seq, all)).items
      : await listVariantLinks(slowReader, campaign.seq, variant)
  const sent = await findSent(parts.database, campaign, variant)
  const html = sent && (await render(parts.renderQueue, campaign, sent))
  const links = html === undefined ? [] : linksIn(html, sent?.merging?.tracking?.clicks ?? {})
  return drawn(html, links, clicked)
}

interface SentMail {
  readonly id: string
  readonly subject: string
  readonly html: string
  readonly merging?: Merging
  readonly date: number
}

async function findSent(
  { reader }: Database,
  campaign: Campaign,
  variant: number | undefined,
): Promise<SentMail | undefined> {
  const { id, workspaceId } = campaign
  const test = campaign.abTest ? await findTest(reader, campaign.seq) : undefined
  const winner = test?.winner ?? null
  const ofVariant = test?.variants[variant ?? winner ?? 0]?.contentId ?? null
  const contentId = variant === undefined ? (campaign.contentId ?? ofVariant) : ofVariant
  const [content] = contentId === null ? [] : await findContents(reader, [contentId])
  if (content?.html !== undefined) {
    const { subject, html, merging, createdAt } = content
    return { id: content.id, subject, html, date: createdAt, ...given({ merging }) }
  }
  // The archive shows the winner.
  if (variant !== undefined && variant !== winner) return undefined
  const page = await findPage(reader, workspaceId, id)
  if (!page) return undefined
  const { subject, html, merging } = page.letter
  return { id, subject, html, date: page.publishedAt, ...given({ merging }) }
}

/** @returns undefined if it cannot be rendered without a recipient */
async function render(
  queue: RenderQueue,
  { workspaceId }: Campaign,
  { id, subject, html, merging, date }: SentMail,
): Promise<string | undefined> {
  const mail: MailRequest = {
    kind: 'mail',
    source: { subject, html },
    ...(merging && {
      merging: { brand: merging.brand, hasFooter: merging.hasFooter, ...given({ data: merging.data }) },
    }),
    own: {},
    recipient: '',
    date,
    links: { unsubscribeUrl: '#', preferencesUrl: '#', viewUrl: '#' },
    isHtmlEnough: true,
  }
  const key = renderKey('click map', id)
  const result = await queue.render({ key, workspaceId, load: () => Promise.resolve(mail) })
  return result.kind === 'mail' ? result.html : undefined
}

interface Link {
  /** As clicks report it. */
  readonly url: string
  /** Index after its start tag. */
  readonly at: number
}

/** @param parameters that tracking adds to URLs */
export function linksIn(html: string, parameters: UrlParameters): Link[] {
  const links: Link[] = []
  let begins = 0
  let url: string | undefined
  readMarkup(new MarkupPlace(), html, {
    hrefBegins: at => (begins = at),
    hrefEnds(at) {
      url = followedUrl(html.slice(begins, at))
    },
    startTag({ tag }, at) {
      // An `area` has no content to draw over.
      if (url !== undefined && tag === TAG.a) links.push({ url: withParameters(url, parameters), at })
      url = undefined
    },
  })
  return links
}

/** Links to the same URL share a number. */
export function drawn(
  html: string | undefined,
  links: readonly Link[],
  clicked: readonly ClickedLink[],
): ClickMap {
  const all = clicked.reduce((sum, { clicks }) => sum + clicks, 0)
  const share = (clicks: number) => (all === 0 ? 0 : Math.round((10_000 * clicks) / all) / 10_000)
  const byUrl = new Map(clicked.map(link => [link.url, link]))
  const numbers = new Map<string, number>()
  for (const { url } of links)
    if (numbers.size < MAX_LINKS && !numbers.has(url)) numbers.set(url, numbers.size + 1)
  const clicksOf = (url: string) => byUrl.get(url) ?? { url, clicks: 0, uniqueClicks: 0 }
  const most = Math.max(1, ...[...numbers.keys()].map(url => clicksOf(url).clicks))
  const numbered = [...numbers].map(([url, number]) => {
    const link = clicksOf(url)
    return { ...link, number, share: share(link.clicks) }
  })
  const others = clicked
    .filter(({ url }) => url === null || !numbers.has(url))
    .map(link => ({ ...link, number: null, share: share(link.clicks) }))
  let written = ''
  let from = 0
  for (const { url, at } of links) {
    const number = numbers.get(url)
    if (html === undefined || number === undefined) continue
    const { clicks } = clicksOf(url)
    written += html.slice(from, at) + badge(number, share(clicks), clicks / most)
    from = at
  }
  return { html: html === undefined ? null : written + html.slice(from), links: [...numbered, ...others] }
}

/** Grey without clicks, then from pale to deep; white on it has a contrast of at least 4.5. */
const COLOURS = ['#5f6368', '#9a5b00', '#b3470a', '#b3261e', '#8c0d26'] as const

/** @param heat its clicks in relation to the most clicked link */
function badge(number: number, share: number, heat: number): string {
  const colour = COLOURS[Math.ceil(heat * (COLOURS.length - 1))] ?? COLOURS[0]
  const percent = `${Math.round(share * 1_000) / 10}%`
  return (
    '<span style="all:initial;position:relative;display:inline-block;width:0;height:0;overflow:visible;vertical-align:top">' +
    '<span style="all:initial;position:absolute;left:-6px;top:-15px;z-index:2147483000;padding:0 6px;border-radius:9px;' +
    `background:${colour};color:#fff;font:600 11px/18px system-ui,sans-serif;white-space:nowrap;box-shadow:0 0 0 2px #fff">` +
    `${number} · ${percent}</span></span>`
  )
}
