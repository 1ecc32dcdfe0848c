/**
 * Who follows a link of List-Unsubscribe or to the preferences: what its token says, and whose mail it is about.
 *
 * Called by the pages beside it. The token is all the proof there is; it never expires and needs no row of its message.
 * Fails: with undefined for what we did not make, and for a workspace that was removed.
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
  /** The event log has grown. */
  readonly onEvents: () => void
}

export interface Follower extends PublicSender {
  readonly subscriber: Subscriber
}

export async function findFollower(
  { database, linkKeys }: Pick<SubscriptionParts, 'database' | 'linkKeys'>,
  purpose: 'unsubscribe' | 'preferences',
  token: string,
): Promise<Follower | undefined> {
  const subscriber = readSubscriberToken(linkKeys, purpose, token)
  const found = subscriber && (await findPublicSender(database.reader, subscriber.workspaceId))
  return subscriber && found && { subscriber, ...found }
}

export function badLink({ badLink }: PageTexts): PublicAnswer {
  return { page: noticePage(badLink), status: 404 }
}

/** What is said at the top once something was done; screen readers say it as well. */
export function doneNote(text: string) {
  return html`<p class="good" role="status">${text}</p>`
}
