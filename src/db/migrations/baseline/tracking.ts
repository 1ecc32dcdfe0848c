/** Opens, clicks, conversions and the counters statistics are made of. */
import type { ColumnTypes } from './column-types.js'

export const trackingTables = ({ serial }: ColumnTypes): string[] => [
  // Opens and clicks that were answered and not yet counted.
  `create table visits (
    seq ${serial},
    kind text not null,
    message_id text not null,
    at bigint not null,
    address text not null,
    user_agent text not null,
    is_head integer not null,
    url text
  )`,
  `create table daily_counters (
    workspace_id text not null,
    -- Midnight UTC.
    day bigint not null,
    name text not null,
    count bigint not null,
    constraint daily_counters_pk primary key (workspace_id, day, name)
  )`,
  'create index daily_counters_by_day on daily_counters (day)',
  `create table daily_group_counters (
    workspace_id text not null,
    -- campaign, tag, domain or client.
    dimension text not null,
    day bigint not null,
    -- A campaign's id, a tag, a domain or a mail client; '' for everything beyond the daily limit of values.
    value text not null,
    accepted bigint default 0 not null,
    campaign_sends bigint default 0 not null,
    api_sends bigint default 0 not null,
    delivered bigint default 0 not null,
    opens bigint default 0 not null,
    clicks bigint default 0 not null,
    bounces bigint default 0 not null,
    complaints bigint default 0 not null,
    constraint daily_group_counters_pk primary key (workspace_id, dimension, day, value)
  )`,
  'create index daily_group_counters_by_day on daily_group_counters (day)',
  // Of the last minutes, hours and days.
  `create table recent_counters (
    -- '*' for all mail together.
    workspace_id text not null,
    -- minute, hour or day.
    span text not null,
    starts_at bigint not null,
    name text not null,
    count bigint not null,
    constraint recent_counters_pk primary key (workspace_id, span, starts_at, name)
  )`,
  'create index recent_counters_by_start on recent_counters (span, starts_at)',
  `create table conversions (
    id text primary key,
    workspace_id text not null,
    -- No foreign key: a conversion outlives its contact.
    contact_id text not null,
    value double precision not null,
    currency text not null,
    metadata text not null,
    -- The message it is attributed to.
    message_id text,
    campaign_id text,
    -- Of the campaign's A/B test, if the message was in its sample.
    campaign_variant integer,
    is_sandbox integer not null,
    created_at bigint not null
  )`,
  'create index conversions_by_campaign on conversions (campaign_id, currency, campaign_variant, value) where campaign_id is not null',
  'create index conversions_by_contact on conversions (workspace_id, contact_id, id)',
  'create index conversions_by_workspace on conversions (workspace_id, id)',
  `create table product_views (
    seq ${serial},
    id text not null unique,
    workspace_id text not null,
    contact_id text not null,
    product_id text not null,
    -- JSON: name, URLs, price and custom fields.
    product text not null,
    is_sandbox integer not null,
    viewed_at bigint not null
  )`,
  'create index product_views_by_contact on product_views (workspace_id, contact_id, viewed_at)',
]
