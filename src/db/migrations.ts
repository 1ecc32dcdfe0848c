/** Every schema change, in order. Append only; never edit or reorder a released one. */
import type { Kysely } from 'kysely'
import type { Dialect } from './database.js'
import { up as initial } from './migrations/0001-initial.js'
import { up as relayedMail } from './migrations/0002-relayed-mail.js'
import { up as returnedMail } from './migrations/0003-returned-mail.js'
import { up as emailApi } from './migrations/0004-email-api.js'
import { up as analytics } from './migrations/0005-analytics.js'
import { up as queueReports } from './migrations/0006-queue-reports.js'
import { up as retention } from './migrations/0007-retention.js'
import { up as listIndexes } from './migrations/0008-list-indexes.js'
import { up as recipientBuckets } from './migrations/0009-recipient-buckets.js'
import { up as writeTrials } from './migrations/0010-write-trials.js'
import { up as claims } from './migrations/0011-claims.js'
import { up as whatMailIs } from './migrations/0012-what-mail-is.js'
import { up as inboundLanes } from './migrations/0013-inbound-lanes.js'
import { up as sandboxes } from './migrations/0014-sandboxes.js'
import { up as audience } from './migrations/0015-audience.js'
import { up as templates } from './migrations/0016-templates.js'
import { up as brandColor } from './migrations/0017-brand-color.js'
import { up as mergedMail } from './migrations/0018-merged-mail.js'
import { up as contentsAhead } from './migrations/0019-contents-ahead.js'
import { up as forms } from './migrations/0020-forms.js'
import { up as attributePlaces } from './migrations/0021-attribute-places.js'
import { up as tracking } from './migrations/0022-tracking.js'
import { up as contactImports } from './migrations/0023-contact-imports.js'
import { up as campaigns } from './migrations/0024-campaigns.js'
import { up as automations } from './migrations/0025-automations.js'
import { up as automationRuns } from './migrations/0026-automation-runs.js'
import { up as webhooks } from './migrations/0027-webhooks.js'
import { up as submitters } from './migrations/0028-submitters.js'
import { up as jobs } from './migrations/0029-jobs.js'
import { up as runsByWorkspace } from './migrations/0030-runs-by-workspace.js'
import { up as searchMerges } from './migrations/0031-search-merges.js'
import { up as campaignHolds } from './migrations/0032-campaign-holds.js'
import { up as answeredRequests } from './migrations/0033-answered-requests.js'
import { up as attributeTraits } from './migrations/0034-attribute-traits.js'
import { up as suspendedContacts } from './migrations/0035-suspended-contacts.js'
import { up as contactOrders } from './migrations/0036-contact-orders.js'
import { up as reports } from './migrations/0037-reports.js'
import { up as uniqueNames } from './migrations/0038-unique-names-and-import-erasures.js'

export type MigrateUp = (db: Kysely<unknown>, dialect: Dialect) => Promise<void>

export const MIGRATIONS: Readonly<Record<string, MigrateUp>> = {
  '0001-initial': initial,
  '0002-relayed-mail': relayedMail,
  '0003-returned-mail': returnedMail,
  '0004-email-api': emailApi,
  '0005-analytics': analytics,
  '0006-queue-reports': queueReports,
  '0007-retention': retention,
  '0008-list-indexes': listIndexes,
  '0009-recipient-buckets': recipientBuckets,
  '0010-write-trials': writeTrials,
  '0011-claims': claims,
  '0012-what-mail-is': whatMailIs,
  '0013-inbound-lanes': inboundLanes,
  '0014-sandboxes': sandboxes,
  '0015-audience': audience,
  '0016-templates': templates,
  '0017-brand-color': brandColor,
  '0018-merged-mail': mergedMail,
  '0019-contents-ahead': contentsAhead,
  '0020-forms': forms,
  '0021-attribute-places': attributePlaces,
  '0022-tracking': tracking,
  '0023-contact-imports': contactImports,
  '0024-campaigns': campaigns,
  '0025-automations': automations,
  '0026-automation-runs': automationRuns,
  '0027-webhooks': webhooks,
  '0028-submitters': submitters,
  '0029-jobs': jobs,
  '0030-runs-by-workspace': runsByWorkspace,
  '0031-search-merges': searchMerges,
  '0032-campaign-holds': campaignHolds,
  '0033-answered-requests': answeredRequests,
  '0034-attribute-traits': attributeTraits,
  '0035-suspended-contacts': suspendedContacts,
  '0036-contact-orders': contactOrders,
  '0037-reports': reports,
  '0038-unique-names-and-import-erasures': uniqueNames,
}
