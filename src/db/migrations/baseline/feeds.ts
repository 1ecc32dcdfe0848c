/** Feeds whose new items are sent as campaigns, and what the campaigns were made of. */
import type { ColumnTypes } from './column-types.js'

export const feedsTables = ({ serial, withoutRowid }: ColumnTypes): string[] => [
  `create table feeds (
    seq ${serial},
    id text not null unique,
    workspace_id text not null,
    is_sandbox integer not null,
    name text not null,
    url text not null,
    subject text not null,
    template_id text not null,
    list_id text,
    segment_id text,
    from_email text,
    from_name text,
    reply_to text,
    track_opens integer,
    track_clicks integer,
    rate_per_hour integer,
    -- JSON.
    send_window text,
    -- JSON.
    schedule text not null,
    timezone text,
    max_items integer not null,
    is_enabled integer not null,
    created_at bigint not null,
    updated_at bigint not null,
    -- Grows with every run and change.
    turn integer default 0 not null,
    -- The scheduled time of the next run, and when the feed is read for it.
    due_at bigint,
    next_at bigint,
    -- Attempts in a row that failed.
    failures integer default 0 not null,
    last_error text,
    etag text,
    last_modified text
  )`,
  'create index feeds_by_workspace on feeds (workspace_id, seq)',
  'create index feeds_due on feeds (next_at, seq) where next_at is not null',
  `create table feed_runs (
    seq ${serial},
    id text not null unique,
    feed bigint not null,
    due_at bigint not null,
    is_manual integer not null,
    -- sent, nothing_new, retrying or failed.
    status text not null,
    reason text,
    attempts integer not null,
    new_items integer not null,
    sent_items integer not null,
    campaign_id text,
    started_at bigint not null,
    ended_at bigint not null
  )`,
  // A scheduled time is run once.
  'create unique index feed_runs_by_time on feed_runs (feed, due_at)',
  'create index feed_runs_by_feed on feed_runs (feed, seq)',
  // Items that were sent, or were there before the feed was created.
  `create table feed_items (
    feed bigint not null,
    -- Digest of its id.
    item text not null,
    seen_at bigint not null,
    constraint feed_items_pk primary key (feed, item)
  )${withoutRowid}`,
  'create index feed_items_by_time on feed_items (feed, seen_at)',
  // Values of the merge tags of a campaign, the same for all recipients.
  `create table campaign_data (
    campaign bigint primary key,
    -- JSON.
    data text not null
  )`,
]
