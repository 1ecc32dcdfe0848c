/**
 * The tables with a workspace's rows, and how the rows are found, in order of deletion: rows found through other rows go first.
 *
 * Used by `purge-store.ts`. A test checks that every table of the schema is in one of these lists. Pure.
 */
import type { Tables } from '../../db/tables.js'

type Name = keyof Tables

/** Tables with a workspace column. */
export interface OwnTable {
  readonly table: Name
  /** Primary key. */
  readonly key: readonly string[]
  /** Column with the id of the workspace or its sandbox; default `workspace_id`. */
  readonly owner?: string
}

/** Rows that belong to a row of another table, through an indexed column. */
export interface ChildTable {
  readonly table: Name
  readonly key: readonly string[]
  readonly column: string
  readonly parent: Name
  readonly parentKey: string
}

/** Found through rows that are deleted later. There are few of these. */
export const CHILDREN: readonly ChildTable[] = [
  {
    table: 'contact_import_parts',
    key: ['import', 'part'],
    column: 'import',
    parent: 'contact_imports',
    parentKey: 'seq',
  },
  {
    table: 'contact_import_rejections',
    key: ['import', 'line'],
    column: 'import',
    parent: 'contact_imports',
    parentKey: 'seq',
  },
  {
    table: 'contact_import_erasures',
    key: ['import', 'email_hash'],
    column: 'import',
    parent: 'contact_imports',
    parentKey: 'seq',
  },
  {
    table: 'media_parts',
    key: ['media', 'width', 'part'],
    column: 'media',
    parent: 'media',
    parentKey: 'seq',
  },
  { table: 'media_files', key: ['media', 'width'], column: 'media', parent: 'media', parentKey: 'seq' },
  { table: 'campaign_checks', key: ['campaign'], column: 'campaign', parent: 'campaigns', parentKey: 'seq' },
  { table: 'campaign_letters', key: ['campaign'], column: 'campaign', parent: 'campaigns', parentKey: 'seq' },
  {
    table: 'campaign_recipients',
    key: ['campaign', 'contact'],
    column: 'campaign',
    parent: 'campaigns',
    parentKey: 'seq',
  },
  {
    table: 'campaign_links',
    key: ['campaign', 'link'],
    column: 'campaign',
    parent: 'campaigns',
    parentKey: 'seq',
  },
  {
    table: 'campaign_variant_links',
    key: ['campaign', 'variant', 'link'],
    column: 'campaign',
    parent: 'campaigns',
    parentKey: 'seq',
  },
  {
    table: 'campaign_clicks',
    key: ['campaign', 'link', 'contact'],
    column: 'campaign',
    parent: 'campaigns',
    parentKey: 'seq',
  },
  {
    table: 'campaign_times',
    key: ['campaign', 'starts_at'],
    column: 'campaign',
    parent: 'campaigns',
    parentKey: 'seq',
  },
  {
    table: 'campaign_providers',
    key: ['campaign', 'provider'],
    column: 'campaign',
    parent: 'campaigns',
    parentKey: 'seq',
  },
  { table: 'campaign_pages', key: ['campaign'], column: 'campaign', parent: 'campaigns', parentKey: 'seq' },
  { table: 'campaign_tests', key: ['campaign'], column: 'campaign', parent: 'campaigns', parentKey: 'seq' },
  {
    table: 'campaign_variants',
    key: ['campaign', 'variant'],
    column: 'campaign',
    parent: 'campaigns',
    parentKey: 'seq',
  },
  { table: 'campaign_data', key: ['campaign'], column: 'campaign', parent: 'campaigns', parentKey: 'seq' },
  { table: 'feed_items', key: ['feed', 'item'], column: 'feed', parent: 'feeds', parentKey: 'seq' },
  { table: 'feed_runs', key: ['seq'], column: 'feed', parent: 'feeds', parentKey: 'seq' },
  {
    table: 'automation_members',
    key: ['automation', 'contact'],
    column: 'automation',
    parent: 'automations',
    parentKey: 'seq',
  },
  {
    table: 'automation_entries',
    key: ['automation', 'contact_id'],
    column: 'automation',
    parent: 'automations',
    parentKey: 'seq',
  },
]

/** Tables with an index on the workspace. */
export const INDEXED: readonly OwnTable[] = [
  { table: 'campaigns', key: ['seq'] },
  { table: 'feeds', key: ['seq'] },
  { table: 'contact_imports', key: ['seq'] },
  { table: 'attributes', key: ['id'] },
  { table: 'segments', key: ['seq'] },
  { table: 'audiences', key: ['seq'] },
  { table: 'templates', key: ['id'] },
  { table: 'saved_blocks', key: ['id'] },
  { table: 'media', key: ['seq'] },
  { table: 'forms', key: ['id'] },
  { table: 'form_counts', key: ['form_id', 'day'] },
  { table: 'opt_ins', key: ['id'] },
  { table: 'suppressions', key: ['seq'] },
  { table: 'bounces', key: ['id'] },
  { table: 'conversions', key: ['id'] },
  { table: 'product_views', key: ['seq'] },
  { table: 'activities', key: ['seq'] },
  { table: 'daily_counters', key: ['workspace_id', 'day', 'name'] },
  { table: 'recent_counters', key: ['workspace_id', 'span', 'starts_at', 'name'] },
  { table: 'daily_group_counters', key: ['workspace_id', 'dimension', 'day', 'value'] },
  { table: 'quarter_counters', key: ['workspace_id', 'dimension', 'starts_at', 'value'] },
  { table: 'sending_usage', key: ['workspace_id', 'window_kind', 'window_start'] },
  { table: 'mail_totals', key: ['workspace_id', 'part'] },
  { table: 'webhook_subscriptions', key: ['id'] },
  { table: 'api_keys', key: ['id'] },
  { table: 'operator_roles', key: ['operator_id', 'workspace_id'] },
  { table: 'operator_invitations', key: ['id'] },
]

/** Tables without one, scanned by primary key. */
export const SCANNED: readonly OwnTable[] = [
  { table: 'automations', key: ['seq'] },
  { table: 'lists', key: ['seq'] },
  { table: 'tags', key: ['seq'] },
  { table: 'contact_sweeps', key: ['id'] },
  { table: 'campaign_holds', key: ['campaign_id'] },
  { table: 'suppression_sweeps', key: ['workspace_id'] },
  { table: 'email_batches', key: ['id'] },
  { table: 'domain_denials', key: ['seq'] },
  { table: 'domains', key: ['id'], owner: 'owner' },
]

/** Deleted with rows above, or with messages, contents, contacts, runs, deliveries and events (`purge-store.ts`). */
export const CASCADED: readonly Name[] = [
  'messages',
  'message_contents',
  'message_parts',
  'contents_ahead',
  'queue',
  'attempts',
  'sandbox_schedule',
  'captured_mails',
  'contacts',
  'contact_attributes',
  'contact_hours',
  'list_members',
  'contact_tags',
  'automation_runs',
  'automation_run_steps',
  'automation_steps',
  'automation_mails',
  'automation_step_counts',
  'webhook_deliveries',
  'webhook_attempts',
  'webhook_payloads',
  'events',
  'set_aside_events',
  'template_versions',
  'dkim_keys',
  'sandboxes',
  'workspaces',
]

/** Tables of the appliance itself, or with mail sent to it; they have their own retention. */
export const APPLIANCE_TABLES: readonly string[] = [
  'secrets',
  'account_mails',
  'acme_accounts',
  'acme_certificates',
  'acme_challenges',
  'event_cursors',
  'inbound_mails',
  'inbound_parts',
  'domain_reports',
  'kept_answers',
  'write_trials',
  'visits',
  'jobs',
  'job_requests',
  'leases',
  'limit_uses',
  'login_failures',
  'nodes',
  'drained_nodes',
  'published_names',
  'restore_holds',
  'site_uses',
  'split_destinations',
  'operators',
  'operator_challenges',
  'operator_identities',
  'operator_links',
  'operator_passkeys',
  'operator_recovery_codes',
  'operator_sessions',
  'operator_tokens',
]
