/** Messages, their contents and the queue. */
import type { ColumnTypes } from './column-types.js'

export const messagesTables = ({ serial, octets, keepsPages }: ColumnTypes): string[] => [
  // What all recipients of one submission share. Short columns come first: reading one after a long text reads the text too.
  `create table message_contents (
    id text primary key,
    workspace_id text not null,
    created_at bigint not null,
    from_address text not null,
    from_name text,
    reply_to text,
    subject text not null,
    signing_domain_id text,
    track_opens integer not null,
    track_clicks integer not null,
    is_marketing integer default 0 not null,
    campaign_id text,
    automation_id text,
    template_id text,
    tags text,
    -- The API key or submission credential, and the client's address.
    key_id text,
    peer text,
    -- Receives failure notices: the submitted envelope sender; empty for the null sender.
    submitter text,
    dsn_ret text,
    dsn_envid text,
    -- When it is to be sent; the content's id is then the id of the request.
    scheduled_at bigint,
    batch_id text,
    -- From 0.
    batch_index integer,
    -- When retention deleted body and attachments.
    pruned_at bigint,
    -- Size of relayed mail, all parts; null for composed mail.
    raw_size integer,
    -- JSON {to, cc}: header recipients; null if each recipient only sees itself.
    addressees text,
    -- JSON: custom header fields.
    headers text,
    -- JSON: name, type and size of each; the octets are in message_parts.
    attachments text,
    -- JSON: template and shared values; null for mail without merge fields.
    merging text,
    html text,
    text text,
    -- First part of relayed mail; the rest is in message_parts.
    raw ${octets}
  )`,
  'create index message_contents_by_batch on message_contents (batch_id, batch_index) where batch_id is not null',
  'create index message_contents_whole on message_contents (created_at) where pruned_at is null',
  `create table message_parts (
    content_id text not null,
    part integer not null,
    octets ${octets} not null,
    constraint message_parts_pk primary key (content_id, part)
  )`,
  // Contents stored before their messages, in transactions of their own: those not accepted yet.
  `create table contents_ahead (
    content_id text not null primary key
  )`,
  `create table messages (
    id text primary key,
    workspace_id text not null,
    content_id text not null references message_contents (id),
    recipient text not null,
    -- bucketOf() the lower-case recipient, so that messages_by_recipient grows at 256 places and not at a random page per message.
    recipient_bucket integer,
    status text not null,
    reason text,
    is_sandbox integer not null,
    created_at bigint not null,
    sent_at bigint,
    delivered_at bigint,
    opened_at bigint,
    clicked_at bigint,
    bounced_at bigint,
    complained_at bigint,
    bounce_type text,
    dsn_notify text,
    dsn_orcpt text,
    campaign_id text,
    contact_id text,
    -- JSON: values of this recipient.
    merge_data text
  )`,
  'create index messages_by_campaign on messages (campaign_id, id) where campaign_id is not null',
  'create index messages_by_content on messages (content_id, id)',
  // Ends with the recipient, so that others in the same bucket are skipped within the index.
  'create index messages_by_recipient on messages (workspace_id, recipient_bucket, id, lower(recipient))',
  // Most messages are sent or delivered: finding some of those needs no index, and it would cost every message.
  "create index messages_by_status on messages (workspace_id, status, id) where status not in ('sent', 'delivered')",
  'create index messages_by_workspace on messages (workspace_id, id)',
  'create index messages_opened on messages (workspace_id, lower(recipient), opened_at) where opened_at is not null',
  `create table queue (
    message_id text primary key references messages (id) on delete cascade,
    workspace_id text not null,
    -- The recipient's domain as A-labels.
    destination text not null,
    -- 0 for single mail, 1 for bulk.
    priority integer not null,
    -- Destination, priority, workspace, size class and campaign in one text.
    lane text not null,
    attempts integer not null,
    next_attempt_at bigint not null,
    expires_at bigint not null,
    is_held integer not null,
    was_handed_over integer not null,
    enqueued_at bigint not null,
    -- Copied from the message, as are recipient and dsn_notify, so that a claim reads one table.
    content_id text default '' not null,
    recipient text default '' not null,
    dsn_notify text,
    -- The process that claimed it, and how many processes in a row died with it claimed.
    claimed_by text,
    crashes integer default 0 not null,
    -- Deleted while an attempt was under way: no further attempt is made.
    is_withdrawn integer default 0 not null
  )${keepsPages}`,
  // The condition is always true. Without it, PostgreSQL may read this whole index to find a message id: while the statistics say
  // that the queue is empty, that looks as cheap as the primary key.
  'create index queue_by_destination on queue (destination, message_id) where destination is not null',
  'create index queue_claimed on queue (claimed_by) where claimed_by is not null',
  // Claimed messages leave it, so that a search for the next due time does not pass delivered ones.
  'create index queue_due on queue (lane, next_attempt_at, message_id) where is_held = 0 and claimed_by is null',
  'create index queue_held on queue (message_id) where is_held = 1',
  // Partial: a message leaves the first when it is claimed and enters the second only if it is deferred.
  'create index queue_untried on queue (workspace_id, message_id) where attempts = 0',
  'create index queue_deferred on queue (workspace_id, message_id) where attempts > 0 and claimed_by is null',
  // Results of all mail ever accepted; mail without a result is in the queue.
  `create table mail_totals (
    workspace_id text not null,
    -- Sums are spread over rows, so that nodes that share the database do not wait for each other's.
    part integer not null,
    accepted bigint not null,
    delivered bigint not null,
    bounced bigint not null,
    failed bigint not null,
    cancelled bigint not null,
    suppressed bigint not null,
    constraint mail_totals_pk primary key (workspace_id, part)
  )`,
  `create table attempts (
    seq ${serial},
    message_id text not null references messages (id) on delete cascade,
    number integer not null,
    started_at bigint not null,
    finished_at bigint not null,
    kind text not null,
    summary text not null,
    reply_code integer,
    status text,
    classification text,
    tried text not null
  )`,
  'create index attempts_by_message on attempts (message_id)',
  // Stops all lanes of a paused campaign.
  `create table campaign_holds (
    campaign_id text primary key,
    workspace_id text not null,
    -- Null once released.
    held_at bigint,
    -- Total of earlier holds: mail does not expire while held.
    held_ms bigint not null
  )`,
  `create table email_batches (
    id text primary key,
    workspace_id text not null,
    -- Batches of one key are released one after the other.
    key_id text not null,
    is_sandbox integer not null,
    total integer not null,
    sent integer not null,
    skipped integer not null,
    failed integer not null,
    -- JSON: rejected messages and the reasons.
    errors text not null,
    created_at bigint not null,
    -- When its last message is due.
    released_at bigint not null
  )`,
  'create index email_batches_by_key on email_batches (key_id, released_at)',
  // Scheduled sandbox mail, which never enters the queue.
  `create table sandbox_schedule (
    message_id text primary key references messages (id) on delete cascade,
    due_at bigint not null
  )`,
  'create index sandbox_schedule_due on sandbox_schedule (due_at)',
  `create table captured_mails (
    seq ${serial},
    message_id text not null,
    captured_at bigint not null,
    envelope_sender text not null,
    recipient text not null,
    subject text not null,
    size integer not null,
    raw ${octets} not null
  )`,
]
