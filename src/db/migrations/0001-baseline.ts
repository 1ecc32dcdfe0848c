/**
 * The schema of the first release: one file per concern in `baseline/`.
 *
 * Conventions are those of `tables.ts`: times in ms since epoch UTC, flags 0/1, JSON as text, UUIDs as text.
 */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'
import { accountsTables } from './baseline/accounts.js'
import { automationsTables } from './baseline/automations.js'
import { campaignsTables } from './baseline/campaigns.js'
import { COLUMN_TYPES } from './baseline/column-types.js'
import { contactSearch, contactsTables } from './baseline/contacts.js'
import { contentTables } from './baseline/content.js'
import { deliverabilityTables } from './baseline/deliverability.js'
import { eventsTables } from './baseline/events.js'
import { feedsTables } from './baseline/feeds.js'
import { importsTables } from './baseline/imports.js'
import { inboundTables } from './baseline/inbound.js'
import { listsTables } from './baseline/lists.js'
import { mediaTables } from './baseline/media.js'
import { messagesTables } from './baseline/messages.js'
import { operatorsTables } from './baseline/operators.js'
import { systemTables } from './baseline/system.js'
import { trackingTables } from './baseline/tracking.js'
import { webhooksTables } from './baseline/webhooks.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const types = COLUMN_TYPES[dialect]
  for (const statement of [
    ...accountsTables(types),
    ...operatorsTables(types),
    ...contactsTables(types),
    ...contactSearch(dialect),
    ...listsTables(types),
    ...importsTables(types),
    ...messagesTables(types),
    ...eventsTables(types),
    ...contentTables(),
    ...mediaTables(types),
    ...campaignsTables(types),
    ...feedsTables(types),
    ...automationsTables(types),
    ...webhooksTables(types),
    ...trackingTables(types),
    ...deliverabilityTables(types),
    ...inboundTables(types),
    ...systemTables(types),
  ])
    await sql.raw(statement).execute(db)
}
