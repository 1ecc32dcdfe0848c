/** Every schema change, in order. Append only; never edit or reorder a released one. */
import type { Kysely } from 'kysely'
import type { Dialect } from './database.js'
import { up as baseline } from './migrations/0001-baseline.js'
import { up as provedAccounts } from './migrations/0002-proved-accounts.js'
import { up as authenticatedReports } from './migrations/0003-authenticated-reports.js'
import { up as pendingPayloads } from './migrations/0004-pending-payloads.js'
import { up as keptEtags } from './migrations/0005-kept-etags.js'
import { up as quarterCounters } from './migrations/0006-quarter-counters.js'
import { up as lastSent } from './migrations/0007-last-sent.js'
import { up as attributes } from './migrations/0008-attributes.js'
import { up as campaignWaits } from './migrations/0009-campaign-waits.js'
import { up as publishedNames } from './migrations/0010-published-names.js'
import { up as setupDismissed } from './migrations/0011-setup-dismissed.js'
import { up as preheaders } from './migrations/0012-preheaders.js'
import { up as campaignAudiences } from './migrations/0013-campaign-audiences.js'

export type MigrateUp = (db: Kysely<unknown>, dialect: Dialect) => Promise<void>

/** By name. */
export type Migrations = Readonly<Record<string, MigrateUp>>

/** The first migration: a database without it was created before the first release. */
export const BASELINE = '0001-baseline'

export const MIGRATIONS: Migrations = {
  [BASELINE]: baseline,
  '0002-proved-accounts': provedAccounts,
  '0003-authenticated-reports': authenticatedReports,
  '0004-pending-payloads': pendingPayloads,
  '0005-kept-etags': keptEtags,
  '0006-quarter-counters': quarterCounters,
  '0007-last-sent': lastSent,
  '0008-attributes': attributes,
  '0009-campaign-waits': campaignWaits,
  '0010-published-names': publishedNames,
  '0011-setup-dismissed': setupDismissed,
  '0012-preheaders': preheaders,
  '0013-campaign-audiences': campaignAudiences,
}
