/**
 * Resolves the token of an unsubscribe or preferences link to its recipient and sender.
 *
 * The token is the only authentication; it never expires and needs no message row. Invalid tokens and removed workspaces give undefined.
 */
import { findPublicSender, type PublicSender } from '../../accounts/public-sender.js'
import type { Database } from '../../db/database.js'
import type { PublicAnswer } from '../../http/public/public-route.js'
import { noticePage } from '../../http/public/document.js'
import { html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { LinkKeys } from '../../mail/links/link-keys.js'
import { readSubscriberToken } from '../../mail/links/subscriber-link.js'
import type { Subscriber } from '../../mail/unsubscribe-token.js'
import type { NewId } from '../../core/ids.js'
import type { Clock } from '../../world/time/clock.js'

export interface SubscriptionParts {
  readonly database: Database
  readonly clock: Clock
  readonly newId: NewId
  readonly linkKeys: LinkKeys
  /** Call after appending events. */
  readonly onEvents: () => void
}

export interface LinkHolder extends PublicSender {
  readonly subscriber: Subscriber
}

export async function findLinkHolder(
  { database, linkKeys }: Pick<SubscriptionParts, 'database' | 'linkKeys'>,
  purpose: 'unsubscribe' | 'preferences',
  token: string,
): Promise<LinkHolder | undefined> {
  const subscriber = readSubscriberToken(linkKeys, purpose, token)
  const found = subscriber && (await findPublicSender(database.reader, subscriber.workspaceId))
  return subscriber && found && { subscriber, ...found }
}

export function badLink({ badLink }: PageTexts): PublicAnswer {
  return { page: noticePage(badLink), status: 404 }
}

/** Confirmation at the top of the page; `role="status"` makes screen readers announce it. */
export function doneNote(text: string) {
  return html`<p class="good" role="status">${text}</p>`
}
