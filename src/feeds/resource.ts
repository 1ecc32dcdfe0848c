/** Feeds as a resource: routes, the job that runs them, and their history. */
import { retentionRule } from '../resource/retention.js'
import { resource } from '../resource/resource.js'
import type { FeedParts } from './feed.js'
import { feedRoutes } from './feed-routes.js'
import { runDueFeeds } from './feed-runner.js'
import { deleteRunsBefore } from './feed-store.js'
import { feedReferences } from './feeds.js'

const KEPT_RUNS_MS = 400 * 24 * 3_600_000

export const feeds = resource({
  chapters: { Feeds: 'New items of an RSS, Atom or JSON feed, sent as a campaign on a schedule.' },
  references: feedReferences,
  open: (parts: FeedParts) => ({
    routes: feedRoutes(parts),
    lease: 'campaigns',
    jobs: [
      {
        name: 'send-feeds',
        schedule: '* * * * *',
        isRunAtStart: true,
        isHeldAfterRestore: true,
        run: stopping => runDueFeeds(parts, stopping),
      },
    ],
    retention: [retentionRule({ what: 'feed runs', keep: KEPT_RUNS_MS }, deleteRunsBefore)],
  }),
})
