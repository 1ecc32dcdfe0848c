/**
 * `/v/<token>`: a mail in the browser, filled in again for whom it was sent to, for as long as its text is kept.
 *
 * Linked by `{{view_url}}`. It is the html that the workspace wrote, shown from our own origin: the policy puts it into a sandbox
 * without scripts, forms or an origin, so that it can do nothing in our name. Links lead where they were written to, and there is no
 * pixel: who looks at the page has been counted by the link that led here. Mail that has text alone is shown as such.
 * Standards: CSP Level 3 §6.3.2 (`sandbox`), RFC 9110 §9.2.1 (changes nothing).
 * Fails: a token that is none of ours and a mail that is not kept any more are pages with 404; as the database does.
 */
import { findPublicSender } from '../../accounts/public-sender.js'
import {
  planBody,
  renderMail,
  planSubject,
  valuesOf,
  type MailSource,
} from '../../content/rendering/mail-plan.js'
import type { Database } from '../../db/database.js'
import { noticePage } from '../../http/public/document.js'
import { html } from '../../http/public/html.js'
import type { PublicAnswer, PublicRoute } from '../../http/public/public-route.js'
import type { LinkKeys } from '../../mail/links/link-keys.js'
import { LINK_PATHS, linksOf, readView } from '../../mail/links/links.js'
import { findContents, type MessageContent } from '../../messages/content-store.js'
import { findAnyMessage, type Message } from '../../messages/message-store.js'
import { findOwnValues } from '../../queue/claiming/own-values.js'

export interface ViewParts {
  readonly database: Database
  readonly linkKeys: LinkKeys
  /** Without a slash at the end. */
  readonly publicUrl: string
}

/** Pictures and styles are what mail is made of; all else stays out, and links open beside it. */
const POLICY =
  "default-src 'none'; img-src https: http: data:; style-src 'unsafe-inline' https:; font-src https:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  'sandbox allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation'

export function viewPage(parts: ViewParts): PublicRoute {
  const { database, linkKeys } = parts
  return {
    method: 'GET',
    path: `${LINK_PATHS.view}:token`,
    isLimited: true,
    async handle({ params, texts }) {
      const messageId = readView(linkKeys, params['token'] ?? '')
      if (messageId === undefined) return { page: noticePage(texts.badLink), status: 404 }
      const message = await findAnyMessage(database.reader, messageId)
      const [content] = message ? await findContents(database.reader, [message.contentId]) : []
      const mail = message && content && (await fillIn(parts, message, content))
      if (mail?.html !== undefined) return asDocument(mail.html)
      const found = message && (await findPublicSender(database.reader, message.workspaceId))
      if (mail?.text === undefined || !found)
        return { page: noticePage(texts.view.gone, found?.sender), status: 404 }
      const written = html`<p class="written" dir="auto">${mail.text}</p>`
      return { page: { title: mail.subject || texts.view.title, content: written, sender: found.sender } }
    },
  }
}

async function fillIn(
  { database, linkKeys, publicUrl }: ViewParts,
  { id, workspaceId, recipient }: Message,
  { subject, html: written, text, merging, createdAt, scheduledAt = createdAt }: MessageContent,
): Promise<Partial<MailSource> & Pick<MailSource, 'subject'>> {
  const source = {
    ...(written === undefined ? {} : { html: written }),
    ...(text === undefined ? {} : { text }),
  }
  if (!merging) return { subject, ...source }
  const { tracking: _, ...untracked } = merging
  const own = (await findOwnValues(database.reader, [id])).get(id) ?? {}
  const links = linksOf(linkKeys, publicUrl, { messageId: id, workspaceId, recipient })
  const plan = { subject: planSubject(subject, untracked), body: planBody(source, untracked) }
  return renderMail(plan, valuesOf(untracked, own, recipient, scheduledAt, links))
}

function asDocument(text: string): PublicAnswer {
  return {
    octets: Buffer.from(text),
    mediaType: 'text/html; charset=utf-8',
    contentSecurityPolicy: POLICY,
  }
}
