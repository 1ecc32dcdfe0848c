/** The calling key and its workspace as a resource, with the answers that are kept for repeated requests. */
import { deletesOldest } from '../resource/retention.js'
import { resource } from '../resource/resource.js'
import { deleteExpiredAnswers } from './idempotency-store.js'
import { keyRoute } from './key-route.js'

export const accounts = resource({
  chapters: { Workspace: 'The key that asks, and the log of what was done in its workspace.' },
  open: () => ({
    routes: [keyRoute()],
    // Each says itself when it expires.
    retention: [deletesOldest({ what: 'answers of repeated requests', keep: 0 }, deleteExpiredAnswers)],
  }),
})
