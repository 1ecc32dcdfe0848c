/** The calling key as a resource, with retention of stored responses. */
import { deletesOldest } from '../resource/retention.js'
import { resource } from '../resource/resource.js'
import { deleteExpiredAnswers } from './idempotency-store.js'
import { keyRoute } from './key-route.js'

export const accounts = resource({
  chapters: { Workspace: 'The calling API key and the activity log.' },
  open: () => ({
    routes: [keyRoute()],
    // Each row has its own expiry time.
    retention: [deletesOldest({ what: 'answers of repeated requests', keep: 0 }, deleteExpiredAnswers)],
  }),
})
