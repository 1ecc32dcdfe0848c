/** What somebody may do about the mail that comes to them, without a login: unsubscribe, and choose. */
import { resource } from '../../resource/resource.js'
import { preferencesPages } from './preferences-pages.js'
import type { SubscriptionParts } from './subscriber.js'
import { unsubscribePages } from './unsubscribe-pages.js'

export const subscriptions = resource({
  open: (parts: SubscriptionParts) => ({ pages: [...unsubscribePages(parts), ...preferencesPages(parts)] }),
})
