/** Sender domains, suppressions, bounces and reports about domains. */
import type { ColumnTypes } from './column-types.js'

export const deliverabilityTables = ({ serial }: ColumnTypes): string[] => [
  `create table domains (
    id text primary key,
    -- A workspace's or sandbox's id, or 'system' for the appliance's shared sending domain.
    owner text not null,
    is_sandbox integer default 0 not null,
    domain text not null,
    verification_token text not null,
    is_vouched integer not null,
    verified_at bigint,
    checked_at bigint,
    -- Null for a domain that is not checked: vouched or removed.
    next_check_at bigint,
    -- Of a verified domain: since when, and how many times in a row, its records were wrong.
    failing_since bigint,
    failed_checks integer default 0 not null,
    -- When somebody last added, verified or lost it. The longer ago, the rarer the checks.
    watched_since bigint default 0 not null,
    findings text,
    created_at bigint not null,
    -- A removed domain keeps its keys while its mail is still queued.
    removed_at bigint
  )`,
  'create unique index domains_by_owner on domains (owner, domain) where removed_at is null',
  'create index domains_to_check on domains (next_check_at) where next_check_at is not null',
  `create table dkim_keys (
    id text primary key,
    domain_id text not null references domains (id) on delete cascade,
    selector text not null unique,
    algorithm text not null,
    private_key text not null,
    public_key text not null,
    state text not null,
    created_at bigint not null,
    -- Of a retiring key: when its selector may be reused.
    retire_at bigint,
    -- Of a standby key whose selector had another key: when it replaced that one.
    replaced_at bigint
  )`,
  'create index dkim_keys_by_domain on dkim_keys (domain_id)',
  'create index dkim_keys_retiring on dkim_keys (retire_at) where retire_at is not null',
  `create table suppressions (
    seq ${serial},
    workspace_id text not null,
    email text not null,
    reason text not null,
    scope text not null,
    source_message_id text,
    created_at bigint not null,
    constraint suppressions_by_email unique (workspace_id, email)
  )`,
  // Fields last: with them first, SQLite would use this index for the check at acceptance.
  'create index suppressions_by_workspace on suppressions (workspace_id, seq, reason, scope)',
  `create table bounces (
    id text primary key,
    workspace_id text not null,
    -- One bounce per message, however many reports arrive.
    message_id text not null unique,
    email text not null,
    contact_id text,
    campaign_id text,
    type text not null,
    subtype text not null,
    cause text not null,
    scope text not null,
    smtp_status text not null,
    diagnostic_code text not null,
    isp_name text,
    remote_mta text,
    is_sandbox integer not null,
    created_at bigint not null
  )`,
  'create index bounces_by_campaign on bounces (workspace_id, campaign_id, created_at, id, type, subtype) where campaign_id is not null',
  // In the order of the list: otherwise SQLite prefers bounces_by_workspace.
  'create index bounces_by_email on bounces (workspace_id, email, created_at, id)',
  'create index bounces_by_workspace on bounces (workspace_id, created_at, id, type, subtype)',
  // Bounces based only on a DNS answer about the whole domain, until it is known whether to believe it.
  `create table domain_denials (
    seq ${serial},
    domain text not null,
    denied_at bigint not null,
    workspace_id text not null,
    email text not null,
    -- One denial per message.
    message_id text not null unique,
    -- Whether our own resolver denied the domain; otherwise another server did.
    is_ours integer not null,
    -- counts or discredited; null until judged.
    verdict text
  )`,
  'create index domain_denials_by_domain on domain_denials (domain, denied_at)',
  'create index domain_denials_by_time on domain_denials (denied_at, domain)',
  'create index domain_denials_unjudged on domain_denials (denied_at) where verdict is null',
  `create table domain_reports (
    id text primary key,
    kind text not null,
    domain text not null,
    org_name text not null,
    report_id text not null,
    begin_at bigint not null,
    end_at bigint not null,
    received_at bigint not null,
    -- JSON: policy and totals.
    summary text not null,
    -- JSON: one entry per record.
    records text not null,
    constraint domain_reports_once unique (domain, kind, org_name, report_id)
  )`,
  'create index domain_reports_by_time on domain_reports (domain, begin_at)',
  'create index domain_reports_received on domain_reports (received_at)',
]
