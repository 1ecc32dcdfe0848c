/**
 * `/u/<token>`: GET is a page with a button, POST unsubscribes.
 *
 * Scanners follow the links of every mail, so GET and HEAD change nothing. Mailbox providers POST `List-Unsubscribe=One-Click`
 * without anybody seeing the answer, in whatever coding; what our own page sends says that it does. Twice is as once.
 * Standards: RFC 8058, RFC 9110 §9.2.1 (safe methods).
 * Fails: a token that is none of ours is a page with 404; as the database does.
 */
import { findSuppression } from '../../deliverability/suppressions/suppression-store.js'
import { html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { PublicAnswer, PublicRoute } from '../../http/public/public-route.js'
import { normalizedAddress } from '../../mail/address.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import { makeSubscriberToken } from '../../mail/links/subscriber-link.js'
import { unsubscribeRecipient } from '../../messages/unsubscribe.js'
import { badLink, doneNote, findFollower, type Follower, type SubscriptionParts } from './subscriber.js'

const PATH = `${LINK_PATHS.unsubscribe}:token`
/** In what our own page sends. */
const BY_PAGE = 'by_page'

export function unsubscribePages(parts: SubscriptionParts): PublicRoute[] {
  const { database, clock, onEvents } = parts
  return [
    {
      method: 'GET',
      path: PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const follower = await findFollower(parts, 'unsubscribe', params['token'] ?? '')
        if (!follower) return badLink(texts)
        const { workspaceId, recipient } = follower.subscriber
        const known = await findSuppression(database.reader, workspaceId, normalizedAddress(recipient))
        return known?.reason === 'unsubscribe'
          ? donePage(parts, follower, texts)
          : askingPage(follower, texts)
      },
    },
    {
      method: 'POST',
      path: PATH,
      // A mailbox provider asks for thousands of people from one address.
      isLimited: false,
      takesAnyBody: true,
      async handle({ params, texts, form }) {
        const follower = await findFollower(parts, 'unsubscribe', params['token'] ?? '')
        if (!follower) return badLink(texts)
        const source = form.get(BY_PAGE) === undefined ? 'one_click' : 'preferences'
        await database.write(tx => {
          tx.onCommit(onEvents)
          return unsubscribeRecipient(tx, { ...follower.subscriber, source, at: clock.now() })
        })
        return donePage(parts, follower, texts)
      },
    },
  ]
}

function askingPage({ subscriber, sender }: Follower, { unsubscribe }: PageTexts): PublicAnswer {
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
  { subscriber, sender }: Follower,
  { unsubscribe }: PageTexts,
): PublicAnswer {
  // Relative, since a proxy may serve all of this below a path of its own.
  const preferences = `..${LINK_PATHS.preferences}${makeSubscriberToken(linkKeys, 'preferences', subscriber)}`
  const content = html`${doneNote(unsubscribe.done(subscriber.recipient, sender.name))}
    <p class="soft">${unsubscribe.stillComes}</p>
    <p>${unsubscribe.mistake} <a href="${preferences}">${unsubscribe.toPreferences}</a></p>`
  return { page: { title: unsubscribe.doneTitle, content, sender } }
}
