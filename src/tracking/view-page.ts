/**
 * `/v/<token>`: shows a message in the browser, rendered again for its recipient until the content expires. Linked by `{{view_url}}`.
 *
 * Renders in another thread (`render-queue.ts`), so pages do not hold up the API. The HTML is the workspace's but comes from our origin,
 * so its policy sandboxes it without scripts, forms or an origin. Links lead directly to their targets and there is no pixel: the link
 * to this page was already counted as a click. Messages without HTML are shown as text.
 * Standards: CSP Level 3 §6.3.2 (`sandbox`), RFC 9110 §9.2.1 (safe methods).
 * Invalid tokens, messages no longer kept and those of removed workspaces get a page with status 404.
 */
import { findPublicSender } from '../accounts/workspace-store.js'
import type { MailSource } from '../content/rendering/mail-plan.js'
import { renderKey, type RenderQueue } from '../content/rendering/render-queue.js'
import type { RecipientValues } from '../content/rendering/merging.js'
import type { RenderRequest } from '../content/rendering/render-request.js'
import { AppError } from '../core/errors.js'
import { given } from '../core/given.js'
import type { Services } from '../db/services.js'
import { noticePage } from '../http/public/document.js'
import { html } from '../http/public/html.js'
import type { PublicAnswer, PublicRoute } from '../http/public/public-route.js'
import type { LinkKeys } from '../mail/links/link-keys.js'
import { LINK_PATHS, linksOf, readView } from '../mail/links/links.js'
import { findContents, hasStoredBody } from '../messages/content-store.js'
import { findAnyMessage, type Message } from '../messages/message-store.js'
import { findMergeValues } from '../queue/claiming/job-loader.js'
import { addressKey } from '../world/net/ip-address.js'
import { resource } from '../resource/resource.js'

export interface ViewParts extends Pick<Services, 'database' | 'publicUrl'> {
  readonly linkKeys: LinkKeys
  readonly renderQueue: RenderQueue
}

/** Of mail shown from our origin: allows images, styles and fonts; links open in a new tab. */
export const MAIL_POLICY =
  "default-src 'none'; img-src https: http: data:; style-src 'unsafe-inline' https:; font-src https:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  'sandbox allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation'

export function viewPage(parts: ViewParts): PublicRoute {
  const { database, linkKeys } = parts
  return {
    method: 'GET',
    path: `${LINK_PATHS.view}:token`,
    isLimited: true,
    async handle({ params, texts, visitor }) {
      const messageId = readView(linkKeys, params['token'] ?? '')
      if (messageId === undefined) return { page: noticePage(texts.badLink), status: 404 }
      const message = await findAnyMessage(database.reader, messageId)
      const found = message && (await findPublicSender(database.reader, message.workspaceId))
      const isKept = found && (await hasStoredBody(database.reader, message.contentId))
      const mail = isKept ? await renderMessage(parts, message, addressKey(visitor.address)) : undefined
      if (mail?.html !== undefined) return documentOf(mail.html)
      if (mail?.text === undefined || !found)
        return { page: noticePage(texts.view.gone, found?.sender), status: 404 }
      const written = html`<p class="written" dir="auto">${mail.text}</p>`
      return { page: { title: mail.subject || texts.view.title, content: written, sender: found.sender } }
    },
  }
}

/** Contacts are read at each request, so a reloaded page shows later changes. */
async function renderMessage(
  parts: ViewParts,
  message: Message,
  network: string,
): Promise<MailSource | undefined> {
  const { database, renderQueue } = parts
  const { id, workspaceId } = message
  const own = (await findMergeValues(database.reader, [id])).get(id) ?? {}
  const result = await renderQueue.render({
    key: renderKey('view', id, own),
    workspaceId,
    network,
    load: () => requestOf(parts, message, own),
  })
  return result.kind === 'mail' ? result : undefined
}

async function requestOf(
  { database, linkKeys, publicUrl }: ViewParts,
  { id, contentId, workspaceId, recipient }: Message,
  own: RecipientValues,
): Promise<RenderRequest> {
  const [content] = await findContents(database.reader, [contentId])
  if (!content) throw new AppError('not_found', 'the message is no longer stored')
  const { subject, html, text, merging, createdAt, scheduledAt = createdAt } = content
  const links = linksOf(linkKeys, publicUrl, { messageId: id, workspaceId, recipient })
  const { unsubscribeUrl, preferencesUrl, viewUrl } = links
  return {
    kind: 'mail',
    source: { subject, ...given({ html, text }) },
    ...(merging && {
      merging: { brand: merging.brand, hasFooter: merging.hasFooter, ...given({ data: merging.data }) },
    }),
    own,
    recipient,
    date: scheduledAt,
    links: { unsubscribeUrl, preferencesUrl, viewUrl },
    isHtmlEnough: true,
  }
}

function documentOf(text: string): PublicAnswer {
  return {
    octets: Buffer.from(text),
    mediaType: 'text/html; charset=utf-8',
    contentSecurityPolicy: MAIL_POLICY,
  }
}

export const mailViews = resource({
  open: (parts: ViewParts) => ({ pages: [viewPage(parts)] }),
})
