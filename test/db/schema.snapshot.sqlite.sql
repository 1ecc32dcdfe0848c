CREATE TRIGGER contact_search_delete after delete on contacts begin
    insert into contact_search (contact_search, rowid, search_text) values ('delete', old.seq, old.search_text);
  end;

CREATE TRIGGER contact_search_insert after insert on contacts begin
    insert into contact_search (rowid, search_text) values (new.seq, new.search_text);
  end;

CREATE TRIGGER contact_search_update after update of search_text on contacts when old.search_text <> new.search_text begin
    insert into contact_search (contact_search, rowid, search_text) values ('delete', old.seq, old.search_text);
    insert into contact_search (rowid, search_text) values (new.seq, new.search_text);
  end;

CREATE TABLE account_mails (
    id text primary key,
    kind text not null,
    recipient text not null,
    operator_id text,
    invitation_id text,
    state text not null,
    -- The last answer of the recipient's server.
    reason text,
    attempts integer not null,
    -- Null: not to be tried again.
    next_attempt_at bigint,
    expires_at bigint not null,
    created_at bigint not null,
    finished_at bigint
  );

CREATE TABLE acme_accounts (
    -- URL of the server's directory.
    directory text primary key,
    -- PEM, sealed if secrets.key is set; null before the first order.
    account_key text,
    account_url text,
    -- JSON: moments of the attempts of the last day.
    attempts text not null,
    -- In a row.
    failures integer not null,
    next_attempt_at bigint not null,
    -- Why the last attempt failed.
    fault text,
    -- JSON: when the CA suggests to renew, and which certificate.
    suggested text,
    -- An operator asked for a certificate that is not due.
    is_wanted integer not null
  );

CREATE TABLE acme_certificates (
    directory text primary key,
    -- Grows whenever a certificate is stored.
    version integer not null,
    -- PEM, leaf first.
    chain text not null,
    -- PEM, sealed if secrets.key is set.
    private_key text not null,
    obtained_at bigint not null
  );

CREATE TABLE acme_challenges (
    token text primary key,
    -- http or dns.
    kind text not null,
    content text not null,
    expires_at bigint not null
  );

CREATE TABLE activities (
    seq integer primary key autoincrement,
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
  );

CREATE TABLE api_keys (
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
  );

CREATE TABLE attempts (
    seq integer primary key autoincrement,
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
  );

CREATE TABLE attributes (
      id text primary key,
      workspace_id text not null,
      -- As in contacts; case counts.
      name text not null,
      name_folded text not null,
      label text,
      -- text, number, date, boolean or list.
      type text not null,
      -- Who declared it, as in activity: type and id.
      created_by text not null,
      created_by_id text,
      created_at bigint not null,
      updated_at bigint not null
    );

CREATE TABLE audiences (
    seq integer primary key autoincrement,
    -- A workspace or a sandbox.
    workspace_id text not null unique,
    -- Lower half of the newest contact's seq.
    last_contact bigint not null,
    -- Counts of contacts that are not deleted.
    contacts integer not null,
    unsubscribed integer not null,
    bounced integer not null,
    unsubscribed_bounced integer not null
  );

CREATE TABLE automation_entries (
    automation bigint not null,
    contact_id text not null,
    hour bigint not null,
    entries integer not null,
    constraint automation_entries_pk primary key (automation, contact_id)
  ) without rowid;

CREATE TABLE automation_mails (
    step bigint primary key,
    content_id text not null,
    fingerprint text not null,
    stored_at bigint not null
  );

CREATE TABLE automation_members (
    automation bigint not null,
    contact bigint not null,
    constraint automation_members_pk primary key (automation, contact)
  ) without rowid;

CREATE TABLE automation_run_steps (
    seq integer primary key autoincrement,
    run bigint not null,
    at bigint not null,
    step_id text not null,
    step_type text not null,
    -- waiting, completed, skipped, retrying or failed.
    outcome text not null,
    -- JSON.
    detail text
  );

CREATE TABLE automation_runs (
    seq integer primary key autoincrement,
    id text not null unique,
    automation bigint not null,
    workspace_id text not null,
    is_sandbox integer not null,
    contact_id text not null,
    contact_email text not null,
    -- active, completed, failed or cancelled.
    status text not null,
    -- The next step, or the one it waits in.
    step bigint,
    -- What it waits for: time, an event, an HTTP response; null before the step has begun.
    wait text,
    wait_event text,
    -- The message the event must be about.
    wait_message text,
    -- When the next step is due; null when ended or while its automation is paused, which keeps it in parked_due_at.
    due_at bigint,
    parked_due_at bigint,
    steps_done integer not null,
    -- Consecutive failures of the step, and how many of them were HTTP error responses.
    failures integer not null,
    refusals integer default 0 not null,
    last_message_id text,
    trigger_type text not null,
    -- JSON.
    trigger_data text not null,
    -- Of the automation when the run started.
    flow_version integer default 1 not null,
    exit_reason text,
    error text,
    started_at bigint not null,
    ended_at bigint
  );

CREATE TABLE automation_step_counts (
    step bigint not null,
    path text not null,
    runs integer not null,
    constraint automation_step_counts_pk primary key (step, path)
  ) without rowid;

CREATE TABLE automation_steps (
    seq integer primary key autoincrement,
    id text not null unique,
    automation bigint not null,
    position integer not null,
    step_type text not null,
    -- JSON.
    config text not null,
    -- Of a deleted step: the step where its runs continue.
    successor bigint,
    unsettled_at bigint,
    deleted_at bigint
  );

CREATE TABLE automations (
    seq integer primary key autoincrement,
    id text not null unique,
    workspace_id text not null,
    is_sandbox integer not null,
    name text not null,
    -- draft, active or paused.
    status text not null,
    trigger_type text not null,
    -- JSON.
    trigger_config text not null,
    runs_active integer not null,
    runs_completed integer not null,
    runs_failed integer not null,
    runs_cancelled integer not null,
    activated_at bigint,
    -- Counts edits of the trigger and steps.
    version integer default 1 not null,
    -- JSON: position of a trigger that scans the audience.
    scan text,
    -- When its runs last had to be paused, resumed or cancelled, until all were.
    unsettled_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  );

CREATE TABLE bounces (
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
  );

CREATE TABLE campaign_checks (
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
  );

CREATE TABLE campaign_clicks (
    campaign bigint not null,
    link integer not null,
    contact bigint not null,
    constraint campaign_clicks_pk primary key (campaign, link, contact)
  ) without rowid;

CREATE TABLE campaign_data (
    campaign bigint primary key,
    -- JSON.
    data text not null
  );

CREATE TABLE campaign_holds (
    campaign_id text primary key,
    workspace_id text not null,
    -- Null once released.
    held_at bigint,
    -- Total of earlier holds: mail does not expire while held.
    held_ms bigint not null
  );

CREATE TABLE campaign_letters (
    campaign bigint primary key,
    -- JSON.
    letter text not null
  );

CREATE TABLE campaign_links (
    campaign bigint not null,
    link integer not null,
    -- Of the URL; empty for all links beyond the number counted separately.
    digest text not null,
    url text,
    clicks integer not null,
    unique_clicks integer not null,
    constraint campaign_links_pk primary key (campaign, link)
  );

CREATE TABLE campaign_pages (
    campaign bigint primary key,
    workspace_id text not null,
    published_at bigint not null,
    -- As shown to nobody in particular.
    subject text not null,
    -- JSON.
    letter text not null
  );

CREATE TABLE campaign_providers (
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
  ) without rowid;

CREATE TABLE campaign_recipients (
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
  ) without rowid;

CREATE TABLE campaign_tests (
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
  );

CREATE TABLE campaign_times (
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
  ) without rowid;

CREATE TABLE campaign_variant_links (
    campaign bigint not null,
    variant integer not null,
    link integer not null,
    clicks integer not null,
    unique_clicks integer not null,
    constraint campaign_variant_links_pk primary key (campaign, variant, link)
  ) without rowid;

CREATE TABLE campaign_variants (
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
  );

CREATE TABLE campaigns (
    seq integer primary key autoincrement,
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
  , waiting_since bigint, waiting_announced text, preheader text, audience text);

CREATE TABLE captured_mails (
    seq integer primary key autoincrement,
    message_id text not null,
    captured_at bigint not null,
    envelope_sender text not null,
    recipient text not null,
    subject text not null,
    size integer not null,
    raw blob not null
  );

CREATE TABLE contact_attributes (
    contact integer not null,
    -- Binary JSON: for each attribute an array of text, number, time (ms since epoch UTC), items, numbers among the items.
    compared blob not null,
    constraint contact_attributes_pk primary key (contact)
  );

CREATE TABLE contact_hours (
    contact bigint not null,
    -- 0 to 23, UTC.
    hour integer not null,
    visits integer not null,
    constraint contact_hours_pk primary key (contact, hour)
  ) without rowid;

CREATE TABLE contact_import_erasures (
    import bigint not null,
    email_hash text not null,
    constraint contact_import_erasures_pk primary key (import, email_hash)
  );

CREATE TABLE contact_import_parts (
    import bigint not null,
    part integer not null,
    octets blob not null,
    constraint contact_import_parts_pk primary key (import, part)
  );

CREATE TABLE contact_import_rejections (
    import bigint not null,
    -- Line of the file, from 1.
    line integer not null,
    reason text not null,
    -- JSON.
    cells text not null,
    constraint contact_import_rejections_pk primary key (import, line)
  ) without rowid;

CREATE TABLE contact_imports (
    seq integer primary key autoincrement,
    id text not null unique,
    workspace_id text not null,
    is_sandbox integer not null,
    -- receiving, queued, processing, completed, failed or cancelled.
    status text not null,
    file_name text,
    charset text not null,
    -- JSON: list, tags, column mapping.
    options text not null,
    octets bigint not null,
    octets_read bigint not null,
    -- Rows processed, without the header.
    rows_done integer not null,
    created integer not null,
    updated integer not null,
    unchanged integer not null,
    rejected integer not null,
    error text,
    created_at bigint not null,
    started_at bigint,
    finished_at bigint
  );

CREATE VIRTUAL TABLE contact_search using fts5(
    search_text, content = 'contacts', content_rowid = 'seq', tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0
  );

CREATE TABLE 'contact_search_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'contact_search_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'contact_search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE contact_sweeps (
    id text primary key,
    workspace_id text not null,
    is_sandbox integer not null,
    -- delete or restore.
    kind text not null,
    -- Deleting moves it up, restoring down.
    position bigint not null,
    end_position bigint not null,
    changed integer not null,
    skipped integer not null,
    begun_at bigint not null,
    finished_at bigint
  );

CREATE TABLE contact_tags (
    tag bigint not null,
    contact bigint not null,
    added_at bigint not null,
    constraint contact_tags_pk primary key (tag, contact)
  ) without rowid;

CREATE TABLE contacts (
    seq integer not null,
    audience integer not null,
    subscribed integer not null,
    -- Unsubscribed by a suppression; removing it subscribes the contact again.
    is_suspended integer default 0 not null,
    is_bounced integer not null,
    bounced_at bigint,
    -- permanent, transient or undetermined.
    bounce_type text,
    last_opened_at bigint,
    last_clicked_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    email text not null,
    -- What conditions compare, with case and accents folded.
    first_folded text,
    last_folded text,
    id text not null,
    first_name text,
    last_name text,
    -- Address and names, folded.
    search_text text not null,
    -- JSON, as submitted.
    attributes text not null,
    constraint contacts_by_seq primary key (seq)
  );

CREATE TABLE contents_ahead (
    content_id text not null primary key
  );

CREATE TABLE conversions (
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
  );

CREATE TABLE daily_counters (
    workspace_id text not null,
    -- Midnight UTC.
    day bigint not null,
    name text not null,
    count bigint not null,
    constraint daily_counters_pk primary key (workspace_id, day, name)
  );

CREATE TABLE daily_group_counters (
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
  );

CREATE TABLE dkim_keys (
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
  );

CREATE TABLE domain_denials (
    seq integer primary key autoincrement,
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
  );

CREATE TABLE domain_reports (
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
    records text not null, authenticated_as text,
    constraint domain_reports_once unique (domain, kind, org_name, report_id)
  );

CREATE TABLE domains (
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
  );

CREATE TABLE drained_nodes (
    name text primary key,
    drained_at bigint not null
  );

CREATE TABLE email_batches (
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
  );

CREATE TABLE event_cursors (
    consumer text primary key,
    seq bigint not null
  );

CREATE TABLE events (
    seq integer primary key autoincrement,
    kind text not null,
    workspace_id text not null,
    message_id text,
    is_sandbox integer not null,
    occurred_at bigint not null,
    payload text not null
  );

CREATE TABLE feed_items (
    feed bigint not null,
    -- Digest of its id.
    item text not null,
    seen_at bigint not null,
    constraint feed_items_pk primary key (feed, item)
  ) without rowid;

CREATE TABLE feed_runs (
    seq integer primary key autoincrement,
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
  );

CREATE TABLE feeds (
    seq integer primary key autoincrement,
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
  , newest_sent_at bigint, ids_only_until bigint, preheader text);

CREATE TABLE form_counts (
    form_id text not null,
    -- Midnight UTC, ms since epoch.
    day bigint not null,
    workspace_id text not null,
    -- Accepted submissions, and those that took effect, at once or when they were confirmed.
    submitted integer not null,
    completed integer not null,
    constraint form_counts_pk primary key (form_id, day)
  ) without rowid;

CREATE TABLE forms (
    id text primary key,
    workspace_id text not null,
    name text not null,
    title text,
    description text,
    list_ids text not null,
    fields text not null,
    redirect_url text,
    double_opt_in integer not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  );

CREATE TABLE inbound_mails (
    seq integer primary key autoincrement,
    -- Names its rows in inbound_parts. The body is kept apart, so that storing the result does not rewrite it.
    body_id text not null unique,
    received_at bigint not null,
    session text not null,
    peer_address text not null,
    helo_name text not null,
    envelope_sender text not null,
    -- JSON: address, purpose and, if the address was signed, message of each.
    recipients text not null,
    -- Whether every recipient was an address signed by us.
    is_signed integer default 0 not null,
    size integer not null,
    -- How many times parsing it killed the thread.
    tries integer not null,
    processed_at bigint,
    -- A word or two, for lists.
    result text,
    -- JSON: the result for each recipient.
    findings text
  );

CREATE TABLE inbound_parts (
    body_id text not null,
    -- From 0.
    part integer not null,
    octets blob not null,
    constraint inbound_parts_pk primary key (body_id, part)
  );

CREATE TABLE job_requests (
    id text primary key,
    name text not null,
    requested_at bigint not null,
    answer text
  );

CREATE TABLE jobs (
    name text primary key,
    schedule text not null,
    is_running integer not null,
    started_at bigint,
    ended_at bigint,
    -- Of the last finished run, by the monotonic clock.
    duration_ms bigint,
    next_run_at bigint,
    last_error text,
    failed_at bigint
  );

CREATE TABLE kept_answers (
    -- Digest of workspace, kind of key, method, path and Idempotency-Key.
    id text primary key,
    body_hash text not null,
    status integer not null,
    value text not null,
    created_at bigint not null
  , etag text);

CREATE TABLE leases (
    name text primary key,
    node_id text not null references nodes (id) on delete cascade,
    taken_at bigint not null
  );

CREATE TABLE limit_uses (
    -- Digest of the kind of limit and of what it limits, e.g. a key or an address.
    name text primary key,
    -- By node: how much it may have used within the window, and until when that counts.
    held blob not null,
    until bigint not null
  );

CREATE TABLE list_members (
    list bigint not null,
    contact bigint not null,
    added_at bigint not null,
    constraint list_members_pk primary key (list, contact)
  ) without rowid;

CREATE TABLE lists (
    seq integer primary key autoincrement,
    id text not null unique,
    workspace_id text not null,
    name text not null,
    description text,
    -- static or dynamic.
    type text not null,
    -- JSON, of a dynamic list.
    conditions text,
    is_public integer not null,
    double_opt_in integer not null,
    -- Contacts that are not deleted.
    member_count integer not null,
    created_at bigint not null,
    updated_at bigint not null,
    -- Restorable for a while; then members are removed in steps, and the row goes with the last one.
    deleted_at bigint
  );

CREATE TABLE login_failures (
    seq integer primary key autoincrement,
    node_id text not null,
    -- failed, succeeded or forgiven: the latter two clear what is before them.
    kind text not null,
    address text not null,
    account_hash text,
    account text,
    at bigint not null
  );

CREATE TABLE mail_totals (
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
  );

CREATE TABLE media (
    seq integer primary key autoincrement,
    id text not null unique,
    workspace_id text not null,
    file_name text not null,
    alt_text text,
    -- Folded file name and alt text, for search.
    name_folded text not null,
    -- png, jpeg, gif or webp.
    kind text not null,
    is_animated integer not null,
    width integer not null,
    height integer not null,
    octets bigint not null,
    -- SHA-256 of the file, hexadecimal.
    hash text not null,
    -- Octets of all its files.
    stored_octets bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  );

CREATE TABLE media_files (
    media bigint not null,
    width integer not null,
    height integer not null,
    octets bigint not null,
    hash text not null,
    constraint media_files_pk primary key (media, width)
  );

CREATE TABLE media_parts (
    media bigint not null,
    width integer not null,
    part integer not null,
    octets blob not null,
    constraint media_parts_pk primary key (media, width, part)
  );

CREATE TABLE message_contents (
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
    raw blob
  );

CREATE TABLE message_parts (
    content_id text not null,
    part integer not null,
    octets blob not null,
    constraint message_parts_pk primary key (content_id, part)
  );

CREATE TABLE messages (
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
  );

CREATE TABLE nodes (
    id text primary key,
    name text not null,
    -- Separated by commas.
    roles text not null,
    is_stopping integer not null,
    started_at bigint not null,
    -- Others remove it if it is not renewed until then.
    alive_until bigint not null
  );

CREATE TABLE operator_challenges (
    -- Of OpenID Connect: SHA-256 of the state.
    challenge text primary key,
    kind text not null,
    operator_id text,
    -- SHA-256 of the cookie of the browser that began.
    browser_hash text,
    -- PKCE verifier, nonce and return path of OpenID Connect.
    sealed text,
    expires_at bigint not null
  );

CREATE TABLE operator_identities (
    issuer text not null,
    subject text not null,
    operator_id text not null,
    constraint operator_identities_pk primary key (issuer, subject)
  ) without rowid;

CREATE TABLE operator_invitations (
    id text primary key,
    email text not null,
    name text not null,
    workspace_id text not null,
    role text not null,
    -- Operator.
    invited_by text not null,
    -- Of the latest mail.
    token_hash text,
    created_at bigint not null,
    expires_at bigint not null,
    constraint operator_invitations_once unique (workspace_id, email)
  );

CREATE TABLE operator_links (
    token_hash text primary key,
    operator_id text not null,
    kind text not null,
    expires_at bigint not null
  , is_mailed integer default 0 not null);

CREATE TABLE operator_passkeys (
    -- Credential id, base64url.
    id text primary key,
    operator_id text not null,
    name text not null,
    -- COSE key, base64url.
    public_key text not null,
    counter bigint not null,
    transports text not null,
    created_at bigint not null,
    last_used_at bigint
  );

CREATE TABLE operator_recovery_codes (
    operator_id text not null,
    -- SHA-256.
    code_hash text not null,
    constraint operator_recovery_codes_pk primary key (operator_id, code_hash)
  ) without rowid;

CREATE TABLE operator_roles (
    operator_id text not null,
    -- Or * for all workspaces and the appliance.
    workspace_id text not null,
    role text not null,
    -- operator: by hand; oidc: by the groups of an OpenID provider, which each sign-in reads.
    given_by text not null,
    constraint operator_roles_pk primary key (operator_id, workspace_id)
  ) without rowid;

CREATE TABLE operator_sessions (
    id text primary key,
    token_hash text not null unique,
    operator_id text not null,
    method text not null,
    -- 1 until the second factor is given.
    is_pending integer not null,
    confirmed_at bigint not null,
    seen_at bigint not null,
    created_at bigint not null,
    peer text not null,
    user_agent text not null
  , passkey_id text);

CREATE TABLE operator_tokens (
    id text primary key,
    token_hash text not null unique,
    operator_id text not null,
    name text not null,
    hint text not null,
    -- Limits the token to the permissions of this role.
    role text,
    created_at bigint not null,
    last_used_at bigint,
    expires_at bigint
  );

CREATE TABLE operators (
    id text primary key,
    -- In lower case.
    email text not null unique,
    name text not null,
    -- PHC string of scrypt.
    password_hash text,
    -- Sealed.
    totp_secret text,
    -- Time step of the last accepted code.
    totp_step bigint not null,
    created_at bigint not null,
    last_sign_in_at bigint
  , proved_at bigint);

CREATE TABLE opt_ins (
    id text primary key,
    form_id text not null,
    workspace_id text not null,
    email text not null,
    -- JSON: values by form field.
    fields text not null,
    created_at bigint not null,
    confirmed_at bigint
  );

CREATE TABLE product_views (
    seq integer primary key autoincrement,
    id text not null unique,
    workspace_id text not null,
    contact_id text not null,
    product_id text not null,
    -- JSON: name, URLs, price and custom fields.
    product text not null,
    is_sandbox integer not null,
    viewed_at bigint not null
  );

CREATE TABLE published_names (
        -- Hostname of the node.
        node text not null,
        -- hostname, reports, return_path, dkim_zone or public_url.
        purpose text not null,
        name text not null,
        -- Start of the last run that used it.
        used_at bigint not null,
        primary key (node, purpose, name)
      );

CREATE TABLE quarter_counters (
      workspace_id text not null,
      -- all, campaign, tag or domain.
      dimension text not null,
      starts_at bigint not null,
      -- As in daily_group_counters; '' for all.
      value text not null,
      accepted bigint default 0 not null,
      campaign_sends bigint default 0 not null,
      api_sends bigint default 0 not null,
      delivered bigint default 0 not null,
      opens bigint default 0 not null,
      clicks bigint default 0 not null,
      bounces bigint default 0 not null,
      complaints bigint default 0 not null,
      constraint quarter_counters_pk primary key (workspace_id, dimension, starts_at, value)
    );

CREATE TABLE queue (
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
  , held_by_appliance integer default 0 not null);

CREATE TABLE recent_counters (
    -- '*' for all mail together.
    workspace_id text not null,
    -- minute, hour or day.
    span text not null,
    starts_at bigint not null,
    name text not null,
    count bigint not null,
    constraint recent_counters_pk primary key (workspace_id, span, starts_at, name)
  );

CREATE TABLE restore_holds (
    id integer primary key,
    since bigint not null
  );

CREATE TABLE sandbox_schedule (
    message_id text primary key references messages (id) on delete cascade,
    due_at bigint not null
  );

CREATE TABLE sandboxes (
    -- The workspace_id or owner of the sandbox's rows.
    id text primary key,
    workspace_id text not null unique
  );

CREATE TABLE saved_blocks (
    id text primary key,
    workspace_id text not null,
    name text not null,
    name_folded text not null,
    json_structure text not null,
    created_at bigint not null,
    updated_at bigint not null
  );

CREATE TABLE "schema_migrations" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);

CREATE TABLE "schema_migrations_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null);

CREATE TABLE secrets (
    name text not null,
    version integer not null,
    value text not null,
    created_at bigint not null,
    constraint secrets_pk primary key (name, version)
  );

CREATE TABLE segments (
    seq integer primary key autoincrement,
    id text not null unique,
    workspace_id text not null,
    name text not null,
    name_folded text not null,
    conditions text not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  );

CREATE TABLE sending_usage (
    workspace_id text not null,
    window_kind text not null,
    window_start bigint not null,
    accepted integer not null,
    constraint sending_usage_windows_pk primary key (workspace_id, window_kind, window_start)
  );

CREATE TABLE set_aside_events (
    consumer text not null,
    seq bigint not null,
    -- JSON: the whole event, since the log is pruned.
    event text not null,
    error text not null,
    set_aside_at bigint not null,
    -- An operator requested a retry.
    is_retry_wanted integer not null,
    constraint set_aside_events_pk primary key (consumer, seq)
  );

CREATE TABLE site_uses (
    node_id text not null references nodes (id) on delete cascade,
    site text not null,
    backoff_until bigint,
    constraint site_uses_pk primary key (node_id, site)
  );

CREATE TABLE split_destinations (
    destination text primary key,
    parts integer not null,
    begins_at bigint not null,
    ends_at bigint not null
  );

CREATE TABLE suppression_sweeps (
    workspace_id text primary key,
    is_sandbox integer not null,
    position bigint not null
  );

CREATE TABLE suppressions (
    seq integer primary key autoincrement,
    workspace_id text not null,
    email text not null,
    reason text not null,
    scope text not null,
    source_message_id text,
    created_at bigint not null,
    constraint suppressions_by_email unique (workspace_id, email)
  );

CREATE TABLE tags (
    seq integer primary key autoincrement,
    id text not null unique,
    workspace_id text not null,
    name text not null,
    name_folded text not null,
    color text,
    description text,
    contact_count integer not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  );

CREATE TABLE template_versions (
    template_id text not null references templates (id) on delete cascade,
    version integer not null,
    name text not null,
    description text,
    html text not null,
    json_structure text,
    created_at bigint not null,
    constraint template_versions_pk primary key (template_id, version)
  );

CREATE TABLE templates (
    id text primary key,
    workspace_id text not null,
    name text not null,
    name_folded text not null,
    description text,
    version integer not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  );

CREATE TABLE visits (
    seq integer primary key autoincrement,
    kind text not null,
    message_id text not null,
    at bigint not null,
    address text not null,
    user_agent text not null,
    is_head integer not null,
    url text
  );

CREATE TABLE webhook_attempts (
    delivery_id text not null,
    number integer not null,
    started_at bigint not null,
    duration_ms integer not null,
    -- 0 if there was no response.
    status_code integer not null,
    error text,
    -- The beginning of the response body.
    response text, user_agent text,
    constraint webhook_attempts_pk primary key (delivery_id, number)
  ) without rowid;

CREATE TABLE webhook_deliveries (
    id text primary key,
    subscription_id text not null,
    payload bigint not null,
    -- pending, succeeded or failed.
    status text not null,
    attempts integer not null,
    -- Attempts before the last redelivery, which restarts the schedule.
    attempts_before integer not null,
    next_attempt_at bigint,
    created_at bigint not null,
    finished_at bigint
  ) without rowid;

CREATE TABLE webhook_payloads (
    -- One body per event, shared by all deliveries.
    seq integer primary key autoincrement,
    event text not null,
    body text not null,
    created_at bigint not null
  );

CREATE TABLE webhook_subscriptions (
    id text primary key,
    workspace_id text not null,
    is_sandbox integer not null,
    event text not null,
    target_url text not null,
    -- Both secrets are encrypted; the former one is valid until former_until.
    secret text not null,
    former_secret text,
    former_until bigint,
    created_at bigint not null,
    -- Null while the last attempt succeeded or none was made.
    failing_since bigint,
    disabled_at bigint,
    -- failing or gone.
    disabled_reason text,
    deleted_at bigint
  );

CREATE TABLE workspaces (
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
  , removed_by text, setup_dismissed_at bigint);

CREATE TABLE write_trials (
    id integer primary key,
    tried_at bigint not null
  );

CREATE INDEX account_mails_by_time on account_mails (created_at);

CREATE INDEX account_mails_due on account_mails (next_attempt_at) where next_attempt_at is not null;

CREATE INDEX activities_by_action on activities (workspace_id, action, seq);

CREATE INDEX activities_by_workspace on activities (workspace_id, seq);

CREATE INDEX api_keys_by_workspace on api_keys (workspace_id);

CREATE INDEX attempts_by_message on attempts (message_id);

CREATE UNIQUE INDEX attributes_by_name on attributes (workspace_id, name);

CREATE INDEX attributes_in_order on attributes (workspace_id, name_folded, id);

CREATE INDEX automation_run_steps_by_run on automation_run_steps (run, seq);

CREATE INDEX automation_runs_by_automation on automation_runs (automation, seq);

CREATE INDEX automation_runs_by_contact on automation_runs (contact_id, seq);

CREATE INDEX automation_runs_by_status on automation_runs (automation, status, seq);

CREATE INDEX automation_runs_due on automation_runs (due_at, seq) where due_at is not null;

CREATE INDEX automation_runs_due_of on automation_runs (workspace_id, due_at, seq) where due_at is not null;

CREATE INDEX automation_runs_ended on automation_runs (ended_at) where ended_at is not null;

CREATE INDEX automation_runs_in_step on automation_runs (step) where ended_at is null;

CREATE INDEX automation_runs_parked on automation_runs (automation, seq) where parked_due_at is not null;

CREATE INDEX automation_runs_unfinished on automation_runs (automation, seq) where ended_at is null;

CREATE INDEX automation_runs_waiting on automation_runs (contact_id, wait_event) where ended_at is null;

CREATE INDEX automation_steps_by_automation on automation_steps (automation, position);

CREATE INDEX automation_steps_unsettled on automation_steps (unsettled_at) where unsettled_at is not null;

CREATE INDEX automations_by_trigger on automations (trigger_type) where deleted_at is null;

CREATE INDEX automations_by_workspace on automations (workspace_id, seq) where deleted_at is null;

CREATE INDEX automations_unsettled on automations (unsettled_at) where unsettled_at is not null;

CREATE INDEX bounces_by_campaign on bounces (workspace_id, campaign_id, created_at, id, type, subtype) where campaign_id is not null;

CREATE INDEX bounces_by_email on bounces (workspace_id, email, created_at, id);

CREATE INDEX bounces_by_workspace on bounces (workspace_id, created_at, id, type, subtype);

CREATE INDEX campaign_checks_finished on campaign_checks (finished_at) where finished_at is not null;

CREATE INDEX campaign_checks_running on campaign_checks (started_at) where status = 'running';

CREATE UNIQUE INDEX campaign_links_by_url on campaign_links (campaign, digest);

CREATE INDEX campaign_pages_by_workspace on campaign_pages (workspace_id, campaign);

CREATE INDEX campaign_recipients_by_message on campaign_recipients (message_id) where message_id is not null;

CREATE INDEX campaign_recipients_by_status on campaign_recipients (campaign, status, contact);

CREATE INDEX campaign_recipients_due on campaign_recipients (campaign, due_at, contact) where due_at is not null and status = 'pending';

CREATE INDEX campaign_recipients_to_test on campaign_recipients (campaign, variant, contact) where status = 'pending' and variant is not null;

CREATE INDEX campaigns_by_workspace on campaigns (workspace_id, seq, status);

CREATE INDEX campaigns_due on campaigns (next_at, seq) where next_at is not null;

CREATE INDEX campaigns_finished on campaigns (finished_at, seq) where finished_at is not null and recipients_pruned_at is null;

CREATE INDEX campaigns_under_way on campaigns (seq) where status in ('sending', 'paused');

CREATE INDEX contact_imports_by_workspace on contact_imports (workspace_id, seq);

CREATE INDEX contact_imports_finished on contact_imports (finished_at, seq) where finished_at is not null;

CREATE INDEX contact_imports_unfinished on contact_imports (seq) where finished_at is null;

CREATE INDEX contact_sweeps_unfinished on contact_sweeps (begun_at) where finished_at is null;

CREATE INDEX contact_tags_by_contact on contact_tags (contact, tag);

CREATE INDEX contacts_bounced on contacts (seq, subscribed) where deleted_at is null and is_bounced = 1;

CREATE INDEX contacts_by_created on contacts (audience, created_at, seq) where deleted_at is null;

CREATE UNIQUE INDEX contacts_by_email on contacts (audience, email) where deleted_at is null;

CREATE UNIQUE INDEX contacts_by_id on contacts (id);

CREATE INDEX contacts_by_updated on contacts (audience, updated_at, seq) where deleted_at is null;

CREATE INDEX contacts_deleted on contacts (deleted_at, seq) where deleted_at is not null;

CREATE INDEX contacts_live on contacts (seq, subscribed, is_bounced) where deleted_at is null;

CREATE INDEX contacts_unsubscribed on contacts (seq, is_bounced) where deleted_at is null and subscribed = 0;

CREATE INDEX conversions_by_campaign on conversions (campaign_id, currency, campaign_variant, value) where campaign_id is not null;

CREATE INDEX conversions_by_contact on conversions (workspace_id, contact_id, id);

CREATE INDEX conversions_by_workspace on conversions (workspace_id, id);

CREATE INDEX daily_counters_by_day on daily_counters (day);

CREATE INDEX daily_group_counters_by_day on daily_group_counters (day);

CREATE INDEX dkim_keys_by_domain on dkim_keys (domain_id);

CREATE INDEX dkim_keys_retiring on dkim_keys (retire_at) where retire_at is not null;

CREATE INDEX domain_denials_by_domain on domain_denials (domain, denied_at);

CREATE INDEX domain_denials_by_time on domain_denials (denied_at, domain);

CREATE INDEX domain_denials_unjudged on domain_denials (denied_at) where verdict is null;

CREATE INDEX domain_reports_by_reporter on domain_reports (domain, kind, received_at, authenticated_as);

CREATE INDEX domain_reports_by_time on domain_reports (domain, begin_at);

CREATE INDEX domain_reports_received on domain_reports (received_at);

CREATE UNIQUE INDEX domains_by_owner on domains (owner, domain) where removed_at is null;

CREATE INDEX domains_to_check on domains (next_check_at) where next_check_at is not null;

CREATE INDEX email_batches_by_key on email_batches (key_id, released_at);

CREATE INDEX feed_items_by_time on feed_items (feed, seen_at);

CREATE INDEX feed_runs_by_feed on feed_runs (feed, seq);

CREATE UNIQUE INDEX feed_runs_by_time on feed_runs (feed, due_at);

CREATE INDEX feeds_by_workspace on feeds (workspace_id, seq);

CREATE INDEX feeds_due on feeds (next_at, seq) where next_at is not null;

CREATE INDEX form_counts_by_workspace on form_counts (workspace_id);

CREATE INDEX forms_by_workspace on forms (workspace_id, id);

CREATE INDEX inbound_mails_processed on inbound_mails (is_signed, processed_at, size) where processed_at is not null;

CREATE INDEX inbound_mails_waiting on inbound_mails (is_signed, seq, size) where processed_at is null;

CREATE INDEX kept_answers_by_age on kept_answers (created_at);

CREATE INDEX leases_by_node on leases (node_id);

CREATE INDEX list_members_by_contact on list_members (contact, list);

CREATE INDEX lists_by_workspace on lists (workspace_id, seq) where deleted_at is null;

CREATE INDEX lists_deleted on lists (deleted_at, seq) where deleted_at is not null;

CREATE INDEX login_failures_by_time on login_failures (at);

CREATE UNIQUE INDEX media_by_hash on media (workspace_id, hash);

CREATE INDEX media_by_workspace on media (workspace_id, seq);

CREATE INDEX media_deleted on media (deleted_at) where deleted_at is not null;

CREATE INDEX media_files_by_hash on media_files (hash);

CREATE INDEX message_contents_by_batch on message_contents (batch_id, batch_index) where batch_id is not null;

CREATE INDEX message_contents_whole on message_contents (created_at) where pruned_at is null;

CREATE INDEX messages_by_campaign on messages (campaign_id, id) where campaign_id is not null;

CREATE INDEX messages_by_content on messages (content_id, id);

CREATE INDEX messages_by_recipient on messages (workspace_id, recipient_bucket, id, lower(recipient));

CREATE INDEX messages_by_status on messages (workspace_id, status, id) where status not in ('sent', 'delivered');

CREATE INDEX messages_by_workspace on messages (workspace_id, id);

CREATE INDEX messages_opened on messages (workspace_id, lower(recipient), opened_at) where opened_at is not null;

CREATE INDEX operator_challenges_by_expiry on operator_challenges (expires_at);

CREATE INDEX operator_identities_by_operator on operator_identities (operator_id);

CREATE INDEX operator_invitations_by_expiry on operator_invitations (expires_at);

CREATE UNIQUE INDEX operator_invitations_by_token on operator_invitations (token_hash) where token_hash is not null;

CREATE INDEX operator_links_by_expiry on operator_links (expires_at);

CREATE INDEX operator_links_by_operator on operator_links (operator_id);

CREATE INDEX operator_passkeys_by_operator on operator_passkeys (operator_id);

CREATE INDEX operator_roles_by_workspace on operator_roles (workspace_id);

CREATE INDEX operator_sessions_by_operator on operator_sessions (operator_id);

CREATE INDEX operator_sessions_by_seen on operator_sessions (seen_at);

CREATE INDEX operator_tokens_by_operator on operator_tokens (operator_id);

CREATE INDEX opt_ins_by_email on opt_ins (workspace_id, email, created_at);

CREATE INDEX product_views_by_contact on product_views (workspace_id, contact_id, viewed_at);

CREATE INDEX quarter_counters_by_start on quarter_counters (starts_at);

CREATE INDEX queue_by_destination on queue (destination, message_id) where destination is not null;

CREATE INDEX queue_claimed on queue (claimed_by) where claimed_by is not null;

CREATE INDEX queue_deferred on queue (workspace_id, message_id) where attempts > 0 and claimed_by is null;

CREATE INDEX queue_due on queue (lane, next_attempt_at, message_id) where is_held = 0 and claimed_by is null;

CREATE INDEX queue_held on queue (message_id) where is_held = 1;

CREATE INDEX queue_untried on queue (workspace_id, message_id) where attempts = 0;

CREATE INDEX recent_counters_by_start on recent_counters (span, starts_at);

CREATE INDEX sandbox_schedule_due on sandbox_schedule (due_at);

CREATE INDEX saved_blocks_by_workspace on saved_blocks (workspace_id, id);

CREATE INDEX segments_by_workspace on segments (workspace_id, seq);

CREATE INDEX segments_deleted on segments (deleted_at, seq) where deleted_at is not null;

CREATE INDEX suppressions_by_workspace on suppressions (workspace_id, seq, reason, scope);

CREATE UNIQUE INDEX tags_by_name on tags (workspace_id, name_folded) where deleted_at is null;

CREATE INDEX tags_by_workspace on tags (workspace_id, seq) where deleted_at is null;

CREATE INDEX tags_deleted on tags (deleted_at, seq) where deleted_at is not null;

CREATE INDEX templates_by_workspace on templates (workspace_id, id);

CREATE INDEX webhook_deliveries_by_subscription on webhook_deliveries (subscription_id, id);

CREATE INDEX webhook_deliveries_due on webhook_deliveries (subscription_id, next_attempt_at) where next_attempt_at is not null;

CREATE INDEX webhook_deliveries_pending on webhook_deliveries (payload) where next_attempt_at is not null;

CREATE INDEX webhook_subscriptions_by_workspace on webhook_subscriptions (workspace_id, id);

CREATE UNIQUE INDEX workspaces_by_name on workspaces (lower(name)) where deleted_at is null;
