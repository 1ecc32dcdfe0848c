/** Campaigns, one row per recipient, and their results. */
import type { ColumnTypes } from './column-types.js'

export const campaignsTables = ({ serial, withoutRowid }: ColumnTypes): string[] => [
  `create table campaigns (
    seq ${serial},
    id text not null unique,
    workspace_id text not null,
    is_sandbox integer not null,
    name text not null,
    subject text not null,
    template_id text not null,
    list_id text,
    segment_id text,
    resend_of text,
    resend_to text,
    from_email text,
    from_name text,
    reply_to text,
    track_opens integer,
    track_clicks integer,
    rate_per_hour integer,
    -- JSON.
    send_window text,
    -- at_once or usual_hour.
    send_time text default 'at_once' not null,
    -- JSON.
    ab_test text,
    -- Whether it is in the public archive, and search engines may list it there.
    is_archived integer default 0 not null,
    is_indexed integer default 0 not null,
    -- draft, scheduled, sending, paused, completed, cancelled or failed.
    status text not null,
    error text,
    created_at bigint not null,
    updated_at bigint not null,
    requested_at bigint,
    scheduled_at bigint,
    started_at bigint,
    finished_at bigint,
    -- When the campaign runner has work for it; null: never.
    next_at bigint,
    -- JSON: the audience when it was sent.
    who text,
    -- Contact numbers: below fixed_before recipients have rows; contacts above fixed_through were created too late.
    fixed_before bigint,
    fixed_through bigint,
    fixed_at bigint,
    -- The content of the messages being created, and when it was stored.
    content_id text,
    content_at bigint,
    recipients_pruned_at bigint,
    -- Recipients; the next five add up to them. Then those left out when it was sent.
    recipients integer default 0 not null,
    pending integer default 0 not null,
    queued integer default 0 not null,
    done integer default 0 not null,
    skipped integer default 0 not null,
    cancelled integer default 0 not null,
    unsubscribed integer default 0 not null,
    bounced integer default 0 not null,
    suppressed integer default 0 not null,
    -- Results.
    sends integer default 0 not null,
    deliveries integer default 0 not null,
    opens integer default 0 not null,
    unique_opens integer default 0 not null,
    clicks integer default 0 not null,
    unique_clicks integer default 0 not null,
    bounces integer default 0 not null,
    complaints integer default 0 not null,
    unsubscribes integer default 0 not null
  )`,
  'create index campaigns_by_workspace on campaigns (workspace_id, seq, status)',
  'create index campaigns_due on campaigns (next_at, seq) where next_at is not null',
  'create index campaigns_finished on campaigns (finished_at, seq) where finished_at is not null and recipients_pruned_at is null',
  // Content and sender, kept while messages are still to be created.
  `create table campaign_letters (
    campaign bigint primary key,
    -- JSON.
    letter text not null
  )`,
  // What the public archive shows of a campaign: kept as long as the campaign.
  `create table campaign_pages (
    campaign bigint primary key,
    workspace_id text not null,
    published_at bigint not null,
    -- As shown to nobody in particular.
    subject text not null,
    -- JSON.
    letter text not null
  )`,
  'create index campaign_pages_by_workspace on campaign_pages (workspace_id, campaign)',
  // The newest check before sending.
  `create table campaign_checks (
    campaign bigint primary key,
    id text not null,
    -- running, completed or failed.
    status text not null,
    checked integer not null,
    total integer not null,
    -- JSON; refers to contacts by id.
    findings text,
    largest integer,
    -- JSON: what rspamd said.
    spam text,
    started_at bigint not null,
    finished_at bigint
  )`,
  "create index campaign_checks_running on campaign_checks (started_at) where status = 'running'",
  'create index campaign_checks_finished on campaign_checks (finished_at) where finished_at is not null',
  `create table campaign_recipients (
    campaign bigint not null,
    contact bigint not null,
    -- pending, sent, delivered, opened, clicked, bounced, failed, skipped or cancelled.
    status text not null,
    -- Why it was skipped.
    reason text,
    message_id text,
    has_opened integer default 0 not null,
    has_clicked integer default 0 not null,
    -- When its mail is due; null: at once.
    due_at bigint,
    -- Of the A/B test, for recipients in its sample; null for all others.
    variant integer,
    constraint campaign_recipients_pk primary key (campaign, contact)
  )${withoutRowid}`,
  'create index campaign_recipients_by_message on campaign_recipients (message_id) where message_id is not null',
  "create index campaign_recipients_due on campaign_recipients (campaign, due_at, contact) where due_at is not null and status = 'pending'",
  'create index campaign_recipients_by_status on campaign_recipients (campaign, status, contact)',
  "create index campaign_recipients_to_test on campaign_recipients (campaign, variant, contact) where status = 'pending' and variant is not null",
  // The A/B test of a campaign that was sent.
  `create table campaign_tests (
    campaign bigint primary key,
    -- How many recipients have been drawn or left to the rest, and up to which contact number.
    drawn integer not null,
    drawn_through bigint not null,
    drawn_at bigint,
    -- When the whole sample was queued, and when the winner is decided; null: by hand.
    sampled_at bigint,
    decide_at bigint,
    -- While the campaign is paused, the time to the decision stands still.
    paused_at bigint,
    winner integer,
    decided_at bigint,
    -- rule or person.
    decided_by text
  )`,
  `create table campaign_variants (
    campaign bigint not null,
    variant integer not null,
    -- JSON; until the campaign is over.
    letter text,
    content_id text,
    content_at bigint,
    -- Of the sample alone.
    recipients integer default 0 not null,
    pending integer default 0 not null,
    sends integer default 0 not null,
    deliveries integer default 0 not null,
    opens integer default 0 not null,
    unique_opens integer default 0 not null,
    clicks integer default 0 not null,
    unique_clicks integer default 0 not null,
    bounces integer default 0 not null,
    complaints integer default 0 not null,
    unsubscribes integer default 0 not null,
    constraint campaign_variants_pk primary key (campaign, variant)
  )`,
  `create table campaign_links (
    campaign bigint not null,
    link integer not null,
    -- Of the URL; empty for all links beyond the number counted separately.
    digest text not null,
    url text,
    clicks integer not null,
    unique_clicks integer not null,
    constraint campaign_links_pk primary key (campaign, link)
  )`,
  'create unique index campaign_links_by_url on campaign_links (campaign, digest)',
  // Clicks of those in the sample of an A/B test who got this variant.
  `create table campaign_variant_links (
    campaign bigint not null,
    variant integer not null,
    link integer not null,
    clicks integer not null,
    unique_clicks integer not null,
    constraint campaign_variant_links_pk primary key (campaign, variant, link)
  )${withoutRowid}`,
  // Visits by hour (UTC) in the first days after the start, then by day.
  `create table campaign_times (
    campaign bigint not null,
    starts_at bigint not null,
    opens integer not null,
    unique_opens integer not null,
    clicks integer not null,
    unique_clicks integer not null,
    -- Visits by machines, which count nowhere else.
    machine_opens integer not null,
    machine_clicks integer not null,
    unsubscribes integer not null,
    complaints integer not null,
    constraint campaign_times_pk primary key (campaign, starts_at)
  )${withoutRowid}`,
  `create table campaign_providers (
    campaign bigint not null,
    -- A mailbox provider's name; empty for all others.
    provider text not null,
    sends integer not null,
    deliveries integer not null,
    unique_opens integer not null,
    unique_clicks integer not null,
    bounces integer not null,
    complaints integer not null,
    unsubscribes integer not null,
    constraint campaign_providers_pk primary key (campaign, provider)
  )${withoutRowid}`,
  // Which recipient clicked which link.
  `create table campaign_clicks (
    campaign bigint not null,
    link integer not null,
    contact bigint not null,
    constraint campaign_clicks_pk primary key (campaign, link, contact)
  )${withoutRowid}`,
]
