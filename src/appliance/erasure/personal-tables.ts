/**
 * Which tables hold data about a person, and what erasing and exporting do with each.
 *
 * Read by `export-person.ts` (sections of the export) and by a test that holds it to the schema: a new table must be listed here, as
 * personal or impersonal. Whatever is personal must be erased by `erase.ts`. Pure.
 */
import type { Tables } from '../../db/tables.js'

/** Sections of an export, beside the contact itself. */
export const SECTIONS = [
  'lists',
  'tags',
  'suppressions',
  'messages',
  'bounces',
  'domain_denials',
  'conversions',
  'product_views',
  'form_submissions',
  'automation_runs',
  'campaigns',
  'events',
  'activity',
  'import_rejections',
  'visit_hours',
] as const
export type Section = (typeof SECTIONS)[number]

interface PersonalTable {
  /** Where it stands in an export; `contact` is the contact itself. */
  readonly section?: Section | 'contact'
  /** Why an export leaves it out. */
  readonly leftOut?: string
}

export const PERSONAL: Readonly<Partial<Record<keyof Tables, PersonalTable>>> = {
  contacts: { section: 'contact' },
  contact_attributes: { leftOut: 'folded copies of the attributes in contacts' },
  contact_hours: { section: 'visit_hours' },
  list_members: { section: 'lists' },
  contact_tags: { section: 'tags' },
  suppressions: { section: 'suppressions' },
  messages: { section: 'messages' },
  message_contents: { section: 'messages' },
  attempts: { section: 'messages' },
  bounces: { section: 'bounces' },
  domain_denials: { section: 'domain_denials' },
  conversions: { section: 'conversions' },
  product_views: { section: 'product_views' },
  opt_ins: { section: 'form_submissions' },
  automation_runs: { section: 'automation_runs' },
  automation_run_steps: { section: 'automation_runs' },
  campaign_recipients: { section: 'campaigns' },
  campaign_clicks: { section: 'campaigns' },
  events: { section: 'events' },
  activities: { section: 'activity' },
  contact_import_rejections: { section: 'import_rejections' },
  automation_entries: { leftOut: 'an hourly count of the runs that are exported' },
  automation_members: { leftOut: 'whether a segment trigger has seen the contact, for its runs' },
  message_parts: { leftOut: 'text and attachments of messages, which others may have received as well' },
  contents_ahead: { leftOut: 'texts of a send that has not been accepted yet' },
  captured_mails: { leftOut: 'copies of messages in the test inbox' },
  queue: { leftOut: 'where a message is on its way; its status is exported' },
  sandbox_schedule: { leftOut: 'when a sandbox message is due; its status is exported' },
  contact_import_erasures: { leftOut: 'hashes of addresses that an import drops' },
  email_batches: { leftOut: 'refused recipients of a batch, kept with its errors' },
  contact_import_parts: { leftOut: 'a file that is being imported, deleted once it is' },
  webhook_payloads: { leftOut: 'copies of events' },
  webhook_deliveries: { leftOut: 'which copies of events were delivered' },
  webhook_attempts: { leftOut: 'how receivers answered' },
  set_aside_events: { leftOut: 'refers to events' },
  kept_answers: { leftOut: 'copies of answers, kept for an hour' },
  inbound_mails: { leftOut: 'mail to the operator; what it says of a message is in bounces and events' },
  inbound_parts: { leftOut: 'content of mail to the operator' },
}

/** Settings, definitions, counts and the appliance's own state. */
export const IMPERSONAL: readonly (keyof Tables | 'schema_migrations' | 'schema_migrations_lock')[] = [
  'acme_accounts',
  'acme_certificates',
  'acme_challenges',
  'api_keys',
  'audiences',
  'automation_mails',
  'automation_steps',
  'automations',
  // Names contacts by id only.
  'campaign_checks',
  'campaign_data',
  'campaign_holds',
  'campaign_letters',
  'campaign_links',
  'campaign_pages',
  'campaign_providers',
  'campaign_times',
  'campaigns',
  'contact_imports',
  'contact_sweeps',
  'daily_counters',
  'daily_group_counters',
  'dkim_keys',
  'domain_reports',
  'domains',
  'event_cursors',
  'feed_items',
  'feed_runs',
  'feeds',
  'form_counts',
  'forms',
  'jobs',
  'job_requests',
  'leases',
  'limit_uses',
  'lists',
  // Of operators and API keys, for as long as they are locked out.
  'login_failures',
  'mail_totals',
  // Pictures of mailings, whose metadata is removed before they are stored.
  'media',
  'media_files',
  'media_parts',
  'nodes',
  'drained_nodes',
  // Accounts of the people who run the appliance, removed with `operator remove`.
  'operators',
  'operator_challenges',
  'operator_identities',
  'operator_links',
  'operator_passkeys',
  'operator_recovery_codes',
  'operator_roles',
  'operator_sessions',
  'operator_tokens',
  'recent_counters',
  'restore_holds',
  'sandboxes',
  'schema_migrations',
  'schema_migrations_lock',
  'secrets',
  'segments',
  'sending_usage',
  'site_uses',
  'split_destinations',
  'suppression_sweeps',
  'tags',
  'template_versions',
  'templates',
  'visits',
  'webhook_subscriptions',
  'workspaces',
  'write_trials',
]
