/** Workspaces, their sandboxes and keys, usage and the activity log. */
import type { ColumnTypes } from './column-types.js'

export const accountsTables = ({ serial }: ColumnTypes): string[] => [
  `create table workspaces (
    id text primary key,
    name text not null,
    default_from_email text,
    default_from_name text,
    company_name text,
    company_address text,
    currency text not null,
    timezone text not null,
    attribution integer not null,
    hourly_limit integer not null,
    daily_limit integer not null,
    allow_private_webhooks integer not null,
    -- All mail of the workspace is marketing.
    is_marketing integer default 0 not null,
    brand_color text,
    track_opens integer default 1 not null,
    track_clicks integer default 1 not null,
    utm_source text,
    utm_medium text,
    utm_campaign text,
    created_at bigint not null,
    deleted_at bigint
  )`,
  'create unique index workspaces_by_name on workspaces (lower(name)) where deleted_at is null',
  `create table sandboxes (
    -- The workspace_id or owner of the sandbox's rows.
    id text primary key,
    workspace_id text not null unique
  )`,
  // No foreign key: a key outlives its workspace, to answer workspace_not_found instead of unauthorized.
  `create table api_keys (
    id text primary key,
    workspace_id text not null,
    name text not null,
    key_hash text not null unique,
    key_hint text not null,
    type text not null,
    permissions text not null,
    is_sandbox integer not null,
    rate_limit integer not null,
    email_rate_limit integer not null,
    created_at bigint not null,
    revoked_at bigint,
    last_used_at bigint
  )`,
  'create index api_keys_by_workspace on api_keys (workspace_id)',
  // One row per workspace and window. Past windows stay, so that setting the clock back grants no second allowance.
  `create table sending_usage (
    workspace_id text not null,
    window_kind text not null,
    window_start bigint not null,
    accepted integer not null,
    constraint sending_usage_windows_pk primary key (workspace_id, window_kind, window_start)
  )`,
  `create table activities (
    seq ${serial},
    workspace_id text not null,
    -- ACTOR_TYPES of core/actor.ts.
    actor_type text not null,
    actor_id text,
    actor_name text,
    -- IP address the request came from.
    peer text,
    action text not null,
    subject text not null,
    details text not null,
    -- Settings before and after, by name.
    changes text default '{}' not null,
    created_at bigint not null
  )`,
  'create index activities_by_action on activities (workspace_id, action, seq)',
  'create index activities_by_workspace on activities (workspace_id, seq)',
]
