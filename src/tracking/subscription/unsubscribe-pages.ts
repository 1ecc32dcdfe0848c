/**
 * `/u/<token>`: GET shows a page with a button, POST unsubscribes.
 *
 * Scanners follow every link in a message, so GET and HEAD change nothing. Mailbox providers POST `List-Unsubscribe=One-Click` in any
 * encoding, and nobody sees the response; our own page marks its form. Idempotent. Invalid tokens get a page with status 404.
 * Standards: RFC 8058, RFC 9110 §9.2.1 (safe methods).
 */
import { findSuppression } from '../../deliverability/suppressions/suppression-store.js'
import { html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { PublicAnswer, PublicRoute } from '../../http/public/public-route.js'
import { normalizedAddress } from '../../mail/address.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import { makeSubscriberToken } from '../../mail/links/subscriber-link.js'
import { unsubscribeRecipient } from '../../messages/unsubscribe.js'
import { badLink, doneNote, findLinkHolder, type LinkHolder, type SubscriptionParts } from './subscriber.js'

const PATH = `${LINK_PATHS.unsubscribe}:token`
/** Form field that marks our own page. */
const BY_PAGE = 'by_page'

export function unsubscribePages(parts: SubscriptionParts): PublicRoute[] {
  const { database, clock, onEvents } = parts
  return [
    {
      method: 'GET',
      path: PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const holder = await findLinkHolder(parts, 'unsubscribe', params['token'] ?? '')
        if (!holder) return badLink(texts)
        const { workspaceId, recipient } = holder.subscriber
        const known = await findSuppression(database.reader, workspaceId, normalizedAddress(recipient))
        return known?.reason === 'unsubscribe'
          ? donePage(parts, holder, texts)
          : confirmationPage(holder, texts)
      },
    },
    {
      method: 'POST',
      path: PATH,
      // A mailbox provider sends the requests of thousands of recipients from one address.
      isLimited: false,
      takesAnyBody: true,
      async handle({ params, texts, form }) {
        const holder = await findLinkHolder(parts, 'unsubscribe', params['token'] ?? '')
        if (!holder) return badLink(texts)
        const source = form.get(BY_PAGE) === undefined ? 'one_click' : 'preferences'
        await database.write(tx => {
          tx.onCommit(onEvents)
          return unsubscribeRecipient(tx, { ...holder.subscriber, source, at: clock.now() })
        })
        return donePage(parts, holder, texts)
      },
    },
  ]
}

function confirmationPage({ subscriber, sender }: LinkHolder, { unsubscribe }: PageTexts): PublicAnswer {
  const content = html`<p>${unsubscribe.question(subscriber.recipient, sender.name)}</p>
    <p class="soft">${unsubscribe.stillComes}</p>
    <form method="post">
      <input type="hidden" name="${BY_PAGE}" value="1" />
      <button>${unsubscribe.button}</button>
    </form>`
  return { page: { title: unsubscribe.title, content, sender } }
}

function donePage(
  { linkKeys }: SubscriptionParts,
  { subscriber, sender }: LinkHolder,
  { unsubscribe }: PageTexts,
): PublicAnswer {
  // Relative: a proxy may serve these pages below a path.
  const preferences = `..${LINK_PATHS.preferences}${makeSubscriberToken(linkKeys, 'preferences', subscriber)}`
  const content = html`${doneNote(unsubscribe.done(subscriber.recipient, sender.name))}
    <p class="soft">${unsubscribe.stillComes}</p>
    <p>${unsubscribe.mistake} <a href="${preferences}">${unsubscribe.toPreferences}</a></p>`
  return { page: { title: unsubscribe.doneTitle, content, sender } }
}
