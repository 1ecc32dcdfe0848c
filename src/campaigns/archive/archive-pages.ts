/**
 * `/archive/<workspace>`: campaigns that their workspace publishes, newest first; one page each; and the same as RSS.
 *
 * A page shows the mail as nobody in particular would get it: merge tags of contacts have their fallback, links lead directly to their
 * targets, and there is neither a pixel nor a link that acts for a recipient. The HTML is the workspace's but comes from our origin, so
 * its policy sandboxes it, as that of `/v/` does. Caches may keep everything for some minutes.
 * Standards: RSS 2.0.11; CSP Level 3 §6.3.2 (`sandbox`), RFC 9111 §5.2 (Cache-Control).
 * Unknown workspaces and unpublished campaigns get a page with status 404.
 */
import type { BrandSettings } from '../../content/rendering/merging.js'
import { renderKey, type RenderQueue } from '../../content/rendering/render-queue.js'
import type { MailRequest } from '../../content/rendering/render-request.js'
import { escapeHtml } from '../../core/escape-html.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { noticePage } from '../../http/public/document.js'
import { html } from '../../http/public/html.js'
import type { PublicAnswer, PublicRequest, PublicRoute, Sender } from '../../http/public/public-route.js'
import { MAIL_POLICY } from '../../tracking/view-page.js'
import { addressKey } from '../../world/net/ip-address.js'
import { findPage, listPages, type PageHead } from './page-store.js'

export interface ArchiveParts extends Pick<Services, 'database' | 'publicUrl'> {
  readonly renderQueue: RenderQueue
  /** @returns undefined if the workspace was removed */
  readonly findPublicSender: (
    db: Queries,
    workspaceId: string,
  ) => Promise<{ readonly sender: Sender } | undefined>
  readonly findBrand: (db: Queries, workspaceId: string) => Promise<BrandSettings | undefined>
}

/** Campaigns on one page, and in the feed. */
const PAGE_SIZE = 50
const CACHE_SECONDS = 300

/** @param publicUrl without a trailing slash */
export function archiveUrl(publicUrl: string, workspaceId: string): string {
  return `${publicUrl}/archive/${workspaceId}`
}

export function archivePages(parts: ArchiveParts): PublicRoute[] {
  return [
    {
      method: 'GET',
      path: '/archive/:workspace',
      isLimited: true,
      handle: request => listPage(parts, request),
    },
    {
      method: 'GET',
      path: '/archive/:workspace/feed.xml',
      isLimited: true,
      handle: request => feedPage(parts, request),
    },
    {
      method: 'GET',
      path: '/archive/:workspace/:campaign',
      isLimited: true,
      handle: request => mailPage(parts, request),
    },
  ]
}

interface Owner {
  readonly id: string
  readonly sender: Sender
  readonly brand: BrandSettings
}

/** @throws AppError not_found */
async function ownerOf({ database, ...parts }: ArchiveParts, { params }: PublicRequest): Promise<Owner> {
  const id = (params['workspace'] ?? '').toLowerCase()
  const found = isUuid(id) ? await parts.findPublicSender(database.reader, id) : undefined
  const brand = found && (await parts.findBrand(database.reader, id))
  if (!found || !brand) throw new AppError('not_found', 'there is no such archive')
  return { id, sender: found.sender, brand }
}

async function listPage(parts: ArchiveParts, request: PublicRequest): Promise<PublicAnswer> {
  const { texts, language, query } = request
  const { id, sender, brand } = await ownerOf(parts, request)
  const before = readBefore(query.get('before'))
  const pages = await listPages(parts.database.reader, id, before, PAGE_SIZE + 1)
  const shown = pages.slice(0, PAGE_SIZE)
  const url = archiveUrl(parts.publicUrl, id)
  const day = dayIn(language, brand.timezone)
  const item = (page: PageHead) =>
    html`<li>
      <a href="${url}/${page.campaignId}" dir="auto">${page.subject || texts.view.title}</a>
      <time class="soft" datetime="${new Date(page.publishedAt).toISOString()}"
        >${day(page.publishedAt)}</time
      >
    </li>`
  const last = pages.length > PAGE_SIZE ? shown.at(-1) : undefined
  const content = html`${
      shown.length === 0
        ? html`<p>${texts.archive.empty}</p>`
        : html`<ul class="archive">
            ${shown.map(item)}
          </ul>`
    }
    ${last && html`<p><a href="${url}?before=${last.seq}" rel="next">${texts.archive.older}</a></p>`}
    ${before !== undefined && html`<p><a href="${url}">${texts.archive.newest}</a></p>`}
    <p><a href="${url}/feed.xml">${texts.archive.feed}</a></p>`
  return {
    page: { title: texts.archive.title, content, sender, feedUrl: `${url}/feed.xml` },
    publicity: { cacheSeconds: CACHE_SECONDS, isIndexable: shown.some(({ isIndexed }) => isIndexed) },
  }
}

/** Anything but a position counts as none. */
function readBefore(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function dayIn(language: string, timeZone: string): (at: number) => string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone })
  return at => format.format(at)
}

async function feedPage(parts: ArchiveParts, request: PublicRequest): Promise<PublicAnswer> {
  const { id, sender } = await ownerOf(parts, request)
  const pages = await listPages(parts.database.reader, id, undefined, PAGE_SIZE)
  const url = archiveUrl(parts.publicUrl, id)
  const element = (name: string, text: string, attributes = '') =>
    `<${name}${attributes}>${escapeHtml(text)}</${name}>`
  const items = pages.map(({ campaignId, subject, publishedAt }) => {
    const link = `${url}/${campaignId}`
    const told = [
      element('title', subject || sender.name),
      element('link', link),
      element('guid', link),
      element('pubDate', new Date(publishedAt).toUTCString()),
    ]
    return `<item>${told.join('')}</item>`
  })
  const self = `<atom:link href="${escapeHtml(`${url}/feed.xml`)}" rel="self" type="application/rss+xml"/>`
  const head = [
    element('title', sender.name),
    element('link', url),
    element('description', sender.name),
    self,
  ]
  const text =
    '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>' +
    `${head.join('')}${items.join('\n')}</channel></rss>\n`
  return {
    octets: Buffer.from(text),
    mediaType: 'application/rss+xml; charset=utf-8',
    publicity: { cacheSeconds: CACHE_SECONDS, isIndexable: false },
  }
}

async function mailPage(parts: ArchiveParts, request: PublicRequest): Promise<PublicAnswer> {
  const { database, renderQueue, publicUrl } = parts
  const { params, texts, visitor } = request
  const { id, sender } = await ownerOf(parts, request)
  const campaignId = (params['campaign'] ?? '').toLowerCase()
  const page = isUuid(campaignId) ? await findPage(database.reader, id, campaignId) : undefined
  const toArchive = html`<p><a href="${archiveUrl(publicUrl, id)}">${texts.archive.title}</a></p>`
  if (!page) return { page: noticePage(texts.archive.gone, sender, toArchive), status: 404 }
  const { subject, html: source, merging } = page.letter
  const mail: MailRequest = {
    kind: 'mail',
    source: { subject, html: source },
    ...(merging && {
      merging: { brand: merging.brand, hasFooter: false, ...given({ data: merging.data }) },
    }),
    own: {},
    recipient: '',
    date: page.publishedAt,
    // Nobody is unsubscribed from here.
    links: {
      unsubscribeUrl: '#',
      preferencesUrl: '#',
      viewUrl: `${archiveUrl(publicUrl, id)}/${campaignId}`,
    },
    isHtmlEnough: true,
  }
  const result = await renderQueue.render({
    key: renderKey('archive', campaignId),
    workspaceId: id,
    network: addressKey(visitor.address),
    load: () => Promise.resolve(mail),
  })
  if (result.kind !== 'mail' || result.html === undefined)
    return { page: noticePage(texts.archive.gone, sender, toArchive), status: 404 }
  return {
    octets: Buffer.from(result.html),
    mediaType: 'text/html; charset=utf-8',
    contentSecurityPolicy: MAIL_POLICY,
    publicity: { cacheSeconds: CACHE_SECONDS, isIndexable: page.isIndexed },
  }
}
