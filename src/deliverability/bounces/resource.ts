import { retentionRule } from '../../resource/retention.js'
import { resource } from '../../resource/resource.js'
import { bounceConsumer } from './bounce-consumer.js'
import { bounceRoutes } from './bounce-routes.js'
import { deleteBouncesBefore } from './bounce-store.js'
import { deleteDenialsBefore } from './domain-denial-store.js'
import { parseBounceRoute } from './parse-route.js'
import { DENIALS_KEPT_MS, confirmDenials, type DenialParts } from './confirm-denials.js'

export const bounces = resource({
  chapters: { Bounces: 'Rejected and returned mail, and the reasons.' },
  kept: {
    bounces: { default: '365d', description: 'Bounce records. Suppressions stay until they are removed.' },
  },
  open: (parts: DenialParts) => ({
    routes: [...bounceRoutes(parts.database.reader, parts.database.slowReader), parseBounceRoute()],
    lease: 'inbound',
    consumers: [bounceConsumer(parts.suppressedContacts, parts.log)],
    jobs: [
      { name: 'confirm-denials', schedule: '*/5 * * * *', run: stopping => confirmDenials(parts, stopping) },
    ],
    retention: [
      retentionRule({ what: 'bounces', keep: ['bounces'] }, deleteBouncesBefore),
      retentionRule({ what: 'denied domains', keep: DENIALS_KEPT_MS }, deleteDenialsBefore),
    ],
  }),
})
