/**
 * Topics that a statement changes, by the tables it writes: those whose rows wake workers, drop caches or refresh screens at other nodes.
 *
 * On PostgreSQL each commit announces them (`postgres/foreign-changes.ts`), so that no store can forget to, and workers need no frequent
 * polling. Mail and events are left out: `QueueManager.noteEnqueued` and the signal `appended` announce them if another node has to act.
 */
import type { Topic } from './changes.js'
import type { Tables } from './tables.js'

const TOPIC_OF_TABLE: ReadonlyMap<string, Topic> = new Map<keyof Tables, Topic>([
  ['account_mails', 'account_mail'],
  ['api_keys', 'keys'],
  ['automation_runs', 'automations'],
  ['automation_steps', 'automations'],
  ['automations', 'automations'],
  ['campaign_checks', 'campaigns'],
  ['campaign_holds', 'queue'],
  ['campaign_tests', 'campaigns'],
  ['campaigns', 'campaigns'],
  ['contact_imports', 'imports'],
  ['dkim_keys', 'domains'],
  ['domains', 'domains'],
  ['inbound_mails', 'inbound'],
  ['job_requests', 'job_requests'],
  ['restore_holds', 'queue'],
  ['sandbox_schedule', 'sandboxes'],
  ['visits', 'visits'],
  ['webhook_deliveries', 'webhooks'],
  ['webhook_subscriptions', 'webhooks'],
  ['workspaces', 'workspaces'],
])

/** The table of an insert, update or delete, anywhere in a statement: parts of a `with` may write as well. */
const WRITTEN = /\b(?:insert\s+into|update|delete\s+from)\s+"?([a-z_]+)/gi

const MAX_KNOWN = 1_000
const known = new Map<string, readonly Topic[]>()

/** @param sql as sent, with placeholders in place of values */
export function topicsOfStatement(sql: string): readonly Topic[] {
  const found = known.get(sql)
  if (found) return found
  const topics = new Set<Topic>()
  for (const [, table = ''] of sql.matchAll(WRITTEN)) {
    const topic = TOPIC_OF_TABLE.get(table.toLowerCase())
    if (topic) topics.add(topic)
  }
  // Statements are few; a store that builds many different ones must not fill the memory.
  if (known.size >= MAX_KNOWN) known.clear()
  const list = [...topics]
  known.set(sql, list)
  return list
}
