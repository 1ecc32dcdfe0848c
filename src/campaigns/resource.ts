import { optionalParsed, table } from '../config/schema/fields.js'
import { parseWebUrl } from '../config/schema/values.js'
import { retentionRule } from '../resource/retention.js'
import type { CampaignParts } from './model/campaign-parts.js'
import type { ReferenceParts } from '../resource/references.js'
import { resource } from '../resource/resource.js'
import { abTestRoutes } from './rest/ab-test-routes.js'
import { archivePages, type ArchiveParts } from './archive/archive-pages.js'
import { archiveRoutes } from './rest/archive-routes.js'
import { campaignAdminRoutes } from './rest/campaign-admin-routes.js'
import { CampaignRunner } from './expansion/campaign-runner.js'
import { deleteOldChecks } from './preflight/check-store.js'
import type { PreflightParts } from './preflight/preflight-parts.js'
import { preflightRoutes } from './rest/preflight-routes.js'
import { PreflightRunner } from './preflight/preflight-runner.js'
import { campaignReferences } from './model/campaigns.js'
import { campaignRoutes } from './rest/campaign-routes.js'
import { campaignConsumer } from './results/campaign-consumer.js'
import { reportRoutes, type ReportParts } from './rest/report-routes.js'
import type { RevenueParts } from './rest/revenue.js'
import { resultRoutes } from './rest/result-routes.js'
import { forgetRecipients } from './results/result-store.js'
import { announceWaits } from './sending/announce-waits.js'
import { sendRoutes } from './rest/send-routes.js'

const CHECK_MS = 30 * 86_400_000

const SECTION = table(
  {
    rspamd_url: optionalParsed(parseWebUrl, 'an http or https URL', {
      default: '',
      example: 'http://127.0.0.1:11333',
      description:
        'The normal worker of an rspamd, which the check of a campaign asks for a spam score; it may be in a private network. The mail of one ' +
        'recipient is sent to it. Empty: only own checks.',
    }),
  },
  { description: 'Campaigns.' },
)

export const campaigns = resource({
  section: { name: 'campaigns', schema: SECTION },
  chapters: { Campaigns: 'Emails to all contacts of a list or segment, and their results.' },
  references: campaignReferences,
  kept: {
    campaign_recipients: {
      default: '400d',
      description:
        'Recipients of finished campaigns, counted from their end. Campaigns and their counts are kept.',
    },
  },
  open: (
    parts: CampaignParts & PreflightParts & ReferenceParts & ArchiveParts & ReportParts & RevenueParts,
    settings,
  ) => {
    const runner = new CampaignRunner(parts)
    const checks = new PreflightRunner(parts, settings.rspamdUrl)
    const wake = () => runner.wake()
    return {
      routes: [
        ...campaignRoutes(parts),
        ...preflightRoutes(parts, () => checks.wake()),
        ...sendRoutes(parts, wake),
        ...resultRoutes(parts),
        ...reportRoutes(parts),
        ...archiveRoutes(parts),
        ...abTestRoutes(parts, wake),
        ...campaignAdminRoutes(parts),
      ],
      pages: archivePages(parts),
      lease: 'campaigns',
      consumers: [campaignConsumer(wake)],
      jobs: [
        {
          // Runs until shutdown; resumes unfinished campaigns at once.
          name: 'send-campaigns',
          schedule: '* * * * *',
          isRunAtStart: true,
          isHeldAfterRestore: true,
          run: stopping => runner.run(stopping),
        },
        {
          name: 'announce-waiting-campaigns',
          schedule: '* * * * *',
          run: stopping => announceWaits(parts, stopping),
        },
        {
          name: 'check-campaigns',
          schedule: '* * * * *',
          isRunAtStart: true,
          run: stopping => checks.run(stopping),
        },
      ],
      retention: [
        retentionRule(
          { what: 'recipients of old campaigns', keep: ['campaign_recipients'] },
          forgetRecipients,
        ),
        retentionRule({ what: 'campaign checks', keep: CHECK_MS }, deleteOldChecks),
      ],
    }
  },
})
