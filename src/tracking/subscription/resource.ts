/** Public unsubscribe and preferences pages. */
import { resource } from '../../resource/resource.js'
import { preferencesPages } from './preferences-pages.js'
import type { SubscriptionParts } from './subscriber.js'
import { unsubscribePages } from './unsubscribe-pages.js'

export const subscriptions = resource({
  open: (parts: SubscriptionParts) => ({ pages: [...unsubscribePages(parts), ...preferencesPages(parts)] }),
})
