create table account_mails (
  id text not null,
  kind text not null,
  recipient text not null,
  operator_id text,
  invitation_id text,
  state text not null,
  reason text,
  attempts integer not null,
  next_attempt_at bigint,
  expires_at bigint not null,
  created_at bigint not null,
  finished_at bigint
);

create table acme_accounts (
  directory text not null,
  account_key text,
  account_url text,
  attempts text not null,
  failures integer not null,
  next_attempt_at bigint not null,
  fault text,
  suggested text,
  is_wanted integer not null
);

create table acme_certificates (
  directory text not null,
  version integer not null,
  chain text not null,
  private_key text not null,
  obtained_at bigint not null
);

create table acme_challenges (
  token text not null,
  kind text not null,
  content text not null,
  expires_at bigint not null
);

create table activities (
  seq bigint not null default nextval('activities_seq_seq'::regclass),
  workspace_id text not null,
  actor_type text not null,
  actor_id text,
  actor_name text,
  peer text,
  action text not null,
  subject text not null,
  details text not null,
  changes text not null default '{}'::text,
  created_at bigint not null
);

create table api_keys (
  id text not null,
  workspace_id text not null,
  name text not null,
  key_hash text not null,
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

create table attempts (
  seq bigint not null default nextval('attempts_seq_seq'::regclass),
  message_id text not null,
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

create table attributes (
  id text not null,
  workspace_id text not null,
  name text not null,
  name_folded text not null,
  label text,
  type text not null,
  created_by text not null,
  created_by_id text,
  created_at bigint not null,
  updated_at bigint not null
);

create table audiences (
  seq bigint not null default nextval('audiences_seq_seq'::regclass),
  workspace_id text not null,
  last_contact bigint not null,
  contacts integer not null,
  unsubscribed integer not null,
  bounced integer not null,
  unsubscribed_bounced integer not null
);

create table automation_entries (
  automation bigint not null,
  contact_id text not null,
  hour bigint not null,
  entries integer not null
);

create table automation_mails (
  step bigint not null,
  content_id text not null,
  fingerprint text not null,
  stored_at bigint not null
);

create table automation_members (
  automation bigint not null,
  contact bigint not null
);

create table automation_run_steps (
  seq bigint not null default nextval('automation_run_steps_seq_seq'::regclass),
  run bigint not null,
  at bigint not null,
  step_id text not null,
  step_type text not null,
  outcome text not null,
  detail text
);

create table automation_runs (
  seq bigint not null default nextval('automation_runs_seq_seq'::regclass),
  id text not null,
  automation bigint not null,
  workspace_id text not null,
  is_sandbox integer not null,
  contact_id text not null,
  contact_email text not null,
  status text not null,
  step bigint,
  wait text,
  wait_event text,
  wait_message text,
  due_at bigint,
  parked_due_at bigint,
  steps_done integer not null,
  failures integer not null,
  refusals integer not null default 0,
  last_message_id text,
  trigger_type text not null,
  trigger_data text not null,
  flow_version integer not null default 1,
  exit_reason text,
  error text,
  started_at bigint not null,
  ended_at bigint
);

create table automation_step_counts (
  step bigint not null,
  path text not null,
  runs integer not null
);

create table automation_steps (
  seq bigint not null default nextval('automation_steps_seq_seq'::regclass),
  id text not null,
  automation bigint not null,
  position integer not null,
  step_type text not null,
  config text not null,
  successor bigint,
  unsettled_at bigint,
  deleted_at bigint
);

create table automations (
  seq bigint not null default nextval('automations_seq_seq'::regclass),
  id text not null,
  workspace_id text not null,
  is_sandbox integer not null,
  name text not null,
  status text not null,
  trigger_type text not null,
  trigger_config text not null,
  runs_active integer not null,
  runs_completed integer not null,
  runs_failed integer not null,
  runs_cancelled integer not null,
  activated_at bigint,
  version integer not null default 1,
  scan text,
  unsettled_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint
);

create table bounces (
  id text not null,
  workspace_id text not null,
  message_id text not null,
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

create table campaign_checks (
  campaign bigint not null,
  id text not null,
  status text not null,
  checked integer not null,
  total integer not null,
  findings text,
  largest integer,
  spam text,
  started_at bigint not null,
  finished_at bigint
);

create table campaign_clicks (
  campaign bigint not null,
  link integer not null,
  contact bigint not null
);

create table campaign_data (
  campaign bigint not null,
  data text not null
);

create table campaign_holds (
  campaign_id text not null,
  workspace_id text not null,
  held_at bigint,
  held_ms bigint not null
);

create table campaign_letters (
  campaign bigint not null,
  letter text not null
);

create table campaign_links (
  campaign bigint not null,
  link integer not null,
  digest text not null,
  url text,
  clicks integer not null,
  unique_clicks integer not null
);

create table campaign_pages (
  campaign bigint not null,
  workspace_id text not null,
  published_at bigint not null,
  subject text not null,
  letter text not null
);

create table campaign_providers (
  campaign bigint not null,
  provider text not null,
  sends integer not null,
  deliveries integer not null,
  unique_opens integer not null,
  unique_clicks integer not null,
  bounces integer not null,
  complaints integer not null,
  unsubscribes integer not null
);

create table campaign_recipients (
  campaign bigint not null,
  contact bigint not null,
  status text not null,
  reason text,
  message_id text,
  has_opened integer not null default 0,
  has_clicked integer not null default 0,
  due_at bigint,
  variant integer
);

create table campaign_tests (
  campaign bigint not null,
  drawn integer not null,
  drawn_through bigint not null,
  drawn_at bigint,
  sampled_at bigint,
  decide_at bigint,
  paused_at bigint,
  winner integer,
  decided_at bigint,
  decided_by text
);

create table campaign_times (
  campaign bigint not null,
  starts_at bigint not null,
  opens integer not null,
  unique_opens integer not null,
  clicks integer not null,
  unique_clicks integer not null,
  machine_opens integer not null,
  machine_clicks integer not null,
  unsubscribes integer not null,
  complaints integer not null
);

create table campaign_variant_links (
  campaign bigint not null,
  variant integer not null,
  link integer not null,
  clicks integer not null,
  unique_clicks integer not null
);

create table campaign_variants (
  campaign bigint not null,
  variant integer not null,
  letter text,
  content_id text,
  content_at bigint,
  recipients integer not null default 0,
  pending integer not null default 0,
  sends integer not null default 0,
  deliveries integer not null default 0,
  opens integer not null default 0,
  unique_opens integer not null default 0,
  clicks integer not null default 0,
  unique_clicks integer not null default 0,
  bounces integer not null default 0,
  complaints integer not null default 0,
  unsubscribes integer not null default 0
);

create table campaigns (
  seq bigint not null default nextval('campaigns_seq_seq'::regclass),
  id text not null,
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
  send_window text,
  send_time text not null default 'at_once'::text,
  ab_test text,
  is_archived integer not null default 0,
  is_indexed integer not null default 0,
  status text not null,
  error text,
  created_at bigint not null,
  updated_at bigint not null,
  requested_at bigint,
  scheduled_at bigint,
  started_at bigint,
  finished_at bigint,
  next_at bigint,
  who text,
  fixed_before bigint,
  fixed_through bigint,
  fixed_at bigint,
  content_id text,
  content_at bigint,
  recipients_pruned_at bigint,
  recipients integer not null default 0,
  pending integer not null default 0,
  queued integer not null default 0,
  done integer not null default 0,
  skipped integer not null default 0,
  cancelled integer not null default 0,
  unsubscribed integer not null default 0,
  bounced integer not null default 0,
  suppressed integer not null default 0,
  sends integer not null default 0,
  deliveries integer not null default 0,
  opens integer not null default 0,
  unique_opens integer not null default 0,
  clicks integer not null default 0,
  unique_clicks integer not null default 0,
  bounces integer not null default 0,
  complaints integer not null default 0,
  unsubscribes integer not null default 0,
  waiting_since bigint,
  waiting_announced text,
  preheader text,
  audience text
);

create table captured_mails (
  seq bigint not null default nextval('captured_mails_seq_seq'::regclass),
  message_id text not null,
  captured_at bigint not null,
  envelope_sender text not null,
  recipient text not null,
  subject text not null,
  size integer not null,
  raw bytea not null
);

create table contact_attributes (
  contact bigint not null,
  compared jsonb not null
);

create table contact_hours (
  contact bigint not null,
  hour integer not null,
  visits integer not null
);

create table contact_import_erasures (
  import bigint not null,
  email_hash text not null
);

create table contact_import_parts (
  import bigint not null,
  part integer not null,
  octets bytea not null
);

create table contact_import_rejections (
  import bigint not null,
  line integer not null,
  reason text not null,
  cells text not null
);

create table contact_imports (
  seq bigint not null default nextval('contact_imports_seq_seq'::regclass),
  id text not null,
  workspace_id text not null,
  is_sandbox integer not null,
  status text not null,
  file_name text,
  charset text not null,
  options text not null,
  octets bigint not null,
  octets_read bigint not null,
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

create table contact_sweeps (
  id text not null,
  workspace_id text not null,
  is_sandbox integer not null,
  kind text not null,
  position bigint not null,
  end_position bigint not null,
  changed integer not null,
  skipped integer not null,
  begun_at bigint not null,
  finished_at bigint
);

create table contact_tags (
  tag bigint not null,
  contact bigint not null,
  added_at bigint not null
);

create table contacts (
  seq bigint not null,
  audience integer not null,
  subscribed integer not null,
  is_suspended integer not null default 0,
  is_bounced integer not null,
  bounced_at bigint,
  bounce_type text,
  last_opened_at bigint,
  last_clicked_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint,
  email text not null,
  first_folded text,
  last_folded text,
  id text not null,
  first_name text,
  last_name text,
  search_text text not null,
  attributes text not null
);

create table contents_ahead (
  content_id text not null
);

create table conversions (
  id text not null,
  workspace_id text not null,
  contact_id text not null,
  value double precision not null,
  currency text not null,
  metadata text not null,
  message_id text,
  campaign_id text,
  campaign_variant integer,
  is_sandbox integer not null,
  created_at bigint not null
);

create table daily_counters (
  workspace_id text not null,
  day bigint not null,
  name text not null,
  count bigint not null
);

create table daily_group_counters (
  workspace_id text not null,
  dimension text not null,
  day bigint not null,
  value text not null,
  accepted bigint not null default 0,
  campaign_sends bigint not null default 0,
  api_sends bigint not null default 0,
  delivered bigint not null default 0,
  opens bigint not null default 0,
  clicks bigint not null default 0,
  bounces bigint not null default 0,
  complaints bigint not null default 0
);

create table dkim_keys (
  id text not null,
  domain_id text not null,
  selector text not null,
  algorithm text not null,
  private_key text not null,
  public_key text not null,
  state text not null,
  created_at bigint not null,
  retire_at bigint,
  replaced_at bigint
);

create table domain_denials (
  seq bigint not null default nextval('domain_denials_seq_seq'::regclass),
  domain text not null,
  denied_at bigint not null,
  workspace_id text not null,
  email text not null,
  message_id text not null,
  is_ours integer not null,
  verdict text
);

create table domain_reports (
  id text not null,
  kind text not null,
  domain text not null,
  org_name text not null,
  report_id text not null,
  begin_at bigint not null,
  end_at bigint not null,
  received_at bigint not null,
  summary text not null,
  records text not null,
  authenticated_as text
);

create table domains (
  id text not null,
  owner text not null,
  is_sandbox integer not null default 0,
  domain text not null,
  verification_token text not null,
  is_vouched integer not null,
  verified_at bigint,
  checked_at bigint,
  next_check_at bigint,
  failing_since bigint,
  failed_checks integer not null default 0,
  watched_since bigint not null default 0,
  findings text,
  created_at bigint not null,
  removed_at bigint
);

create table drained_nodes (
  name text not null,
  drained_at bigint not null
);

create table email_batches (
  id text not null,
  workspace_id text not null,
  key_id text not null,
  is_sandbox integer not null,
  total integer not null,
  sent integer not null,
  skipped integer not null,
  failed integer not null,
  errors text not null,
  created_at bigint not null,
  released_at bigint not null
);

create table event_cursors (
  consumer text not null,
  seq bigint not null
);

create table events (
  seq bigint not null default nextval('events_seq_seq'::regclass),
  kind text not null,
  workspace_id text not null,
  message_id text,
  is_sandbox integer not null,
  occurred_at bigint not null,
  payload text not null
);

create table feed_items (
  feed bigint not null,
  item text not null,
  seen_at bigint not null
);

create table feed_runs (
  seq bigint not null default nextval('feed_runs_seq_seq'::regclass),
  id text not null,
  feed bigint not null,
  due_at bigint not null,
  is_manual integer not null,
  status text not null,
  reason text,
  attempts integer not null,
  new_items integer not null,
  sent_items integer not null,
  campaign_id text,
  started_at bigint not null,
  ended_at bigint not null
);

create table feeds (
  seq bigint not null default nextval('feeds_seq_seq'::regclass),
  id text not null,
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
  send_window text,
  schedule text not null,
  timezone text,
  max_items integer not null,
  is_enabled integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  turn integer not null default 0,
  due_at bigint,
  next_at bigint,
  failures integer not null default 0,
  last_error text,
  etag text,
  last_modified text,
  newest_sent_at bigint,
  ids_only_until bigint,
  preheader text
);

create table form_counts (
  form_id text not null,
  day bigint not null,
  workspace_id text not null,
  submitted integer not null,
  completed integer not null
);

create table forms (
  id text not null,
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

create table inbound_mails (
  seq bigint not null default nextval('inbound_mails_seq_seq'::regclass),
  body_id text not null,
  received_at bigint not null,
  session text not null,
  peer_address text not null,
  helo_name text not null,
  envelope_sender text not null,
  recipients text not null,
  is_signed integer not null default 0,
  size integer not null,
  tries integer not null,
  processed_at bigint,
  result text,
  findings text
);

create table inbound_parts (
  body_id text not null,
  part integer not null,
  octets bytea not null
);

create table job_requests (
  id text not null,
  name text not null,
  requested_at bigint not null,
  answer text
);

create table jobs (
  name text not null,
  schedule text not null,
  is_running integer not null,
  started_at bigint,
  ended_at bigint,
  duration_ms bigint,
  next_run_at bigint,
  last_error text,
  failed_at bigint
);

create table kept_answers (
  id text not null,
  body_hash text not null,
  status integer not null,
  value text not null,
  created_at bigint not null,
  etag text
);

create table leases (
  name text not null,
  node_id text not null,
  taken_at bigint not null
);

create table limit_uses (
  name text not null,
  held jsonb not null,
  until bigint not null
);

create table list_members (
  list bigint not null,
  contact bigint not null,
  added_at bigint not null
);

create table lists (
  seq bigint not null default nextval('lists_seq_seq'::regclass),
  id text not null,
  workspace_id text not null,
  name text not null,
  description text,
  type text not null,
  conditions text,
  is_public integer not null,
  double_opt_in integer not null,
  member_count integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint
);

create table login_failures (
  seq bigint not null default nextval('login_failures_seq_seq'::regclass),
  node_id text not null,
  kind text not null,
  address text not null,
  account_hash text,
  account text,
  at bigint not null
);

create table mail_totals (
  workspace_id text not null,
  part integer not null,
  accepted bigint not null,
  delivered bigint not null,
  bounced bigint not null,
  failed bigint not null,
  cancelled bigint not null,
  suppressed bigint not null
);

create table media (
  seq bigint not null default nextval('media_seq_seq'::regclass),
  id text not null,
  workspace_id text not null,
  file_name text not null,
  alt_text text,
  name_folded text not null,
  kind text not null,
  is_animated integer not null,
  width integer not null,
  height integer not null,
  octets bigint not null,
  hash text not null,
  stored_octets bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint
);

create table media_files (
  media bigint not null,
  width integer not null,
  height integer not null,
  octets bigint not null,
  hash text not null
);

create table media_parts (
  media bigint not null,
  width integer not null,
  part integer not null,
  octets bytea not null
);

create table message_contents (
  id text not null,
  workspace_id text not null,
  created_at bigint not null,
  from_address text not null,
  from_name text,
  reply_to text,
  subject text not null,
  signing_domain_id text,
  track_opens integer not null,
  track_clicks integer not null,
  is_marketing integer not null default 0,
  campaign_id text,
  automation_id text,
  template_id text,
  tags text,
  key_id text,
  peer text,
  submitter text,
  dsn_ret text,
  dsn_envid text,
  scheduled_at bigint,
  batch_id text,
  batch_index integer,
  pruned_at bigint,
  raw_size integer,
  addressees text,
  headers text,
  attachments text,
  merging text,
  html text,
  text text,
  raw bytea
);

create table message_parts (
  content_id text not null,
  part integer not null,
  octets bytea not null
);

create table messages (
  id text not null,
  workspace_id text not null,
  content_id text not null,
  recipient text not null,
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
  merge_data text
);

create table nodes (
  id text not null,
  name text not null,
  roles text not null,
  is_stopping integer not null,
  started_at bigint not null,
  alive_until bigint not null
);

create table operator_challenges (
  challenge text not null,
  kind text not null,
  operator_id text,
  browser_hash text,
  sealed text,
  expires_at bigint not null
);

create table operator_identities (
  issuer text not null,
  subject text not null,
  operator_id text not null
);

create table operator_invitations (
  id text not null,
  email text not null,
  name text not null,
  workspace_id text not null,
  role text not null,
  invited_by text not null,
  token_hash text,
  created_at bigint not null,
  expires_at bigint not null
);

create table operator_links (
  token_hash text not null,
  operator_id text not null,
  kind text not null,
  expires_at bigint not null,
  is_mailed integer not null default 0
);

create table operator_passkeys (
  id text not null,
  operator_id text not null,
  name text not null,
  public_key text not null,
  counter bigint not null,
  transports text not null,
  created_at bigint not null,
  last_used_at bigint
);

create table operator_recovery_codes (
  operator_id text not null,
  code_hash text not null
);

create table operator_roles (
  operator_id text not null,
  workspace_id text not null,
  role text not null,
  given_by text not null
);

create table operator_sessions (
  id text not null,
  token_hash text not null,
  operator_id text not null,
  method text not null,
  is_pending integer not null,
  confirmed_at bigint not null,
  seen_at bigint not null,
  created_at bigint not null,
  peer text not null,
  user_agent text not null,
  passkey_id text
);

create table operator_tokens (
  id text not null,
  token_hash text not null,
  operator_id text not null,
  name text not null,
  hint text not null,
  role text,
  created_at bigint not null,
  last_used_at bigint,
  expires_at bigint
);

create table operators (
  id text not null,
  email text not null,
  name text not null,
  password_hash text,
  totp_secret text,
  totp_step bigint not null,
  created_at bigint not null,
  last_sign_in_at bigint,
  proved_at bigint
);

create table opt_ins (
  id text not null,
  form_id text not null,
  workspace_id text not null,
  email text not null,
  fields text not null,
  created_at bigint not null,
  confirmed_at bigint
);

create table product_views (
  seq bigint not null default nextval('product_views_seq_seq'::regclass),
  id text not null,
  workspace_id text not null,
  contact_id text not null,
  product_id text not null,
  product text not null,
  is_sandbox integer not null,
  viewed_at bigint not null
);

create table published_names (
  node text not null,
  purpose text not null,
  name text not null,
  used_at bigint not null
);

create table quarter_counters (
  workspace_id text not null,
  dimension text not null,
  starts_at bigint not null,
  value text not null,
  accepted bigint not null default 0,
  campaign_sends bigint not null default 0,
  api_sends bigint not null default 0,
  delivered bigint not null default 0,
  opens bigint not null default 0,
  clicks bigint not null default 0,
  bounces bigint not null default 0,
  complaints bigint not null default 0
);

create table queue (
  message_id text not null,
  workspace_id text not null,
  destination text not null,
  priority integer not null,
  lane text not null,
  attempts integer not null,
  next_attempt_at bigint not null,
  expires_at bigint not null,
  is_held integer not null,
  was_handed_over integer not null,
  enqueued_at bigint not null,
  content_id text not null default ''::text,
  recipient text not null default ''::text,
  dsn_notify text,
  claimed_by text,
  crashes integer not null default 0,
  is_withdrawn integer not null default 0,
  held_by_appliance integer not null default 0
);

create table recent_counters (
  workspace_id text not null,
  span text not null,
  starts_at bigint not null,
  name text not null,
  count bigint not null
);

create table restore_holds (
  id integer not null,
  since bigint not null
);

create table sandbox_schedule (
  message_id text not null,
  due_at bigint not null
);

create table sandboxes (
  id text not null,
  workspace_id text not null
);

create table saved_blocks (
  id text not null,
  workspace_id text not null,
  name text not null,
  name_folded text not null,
  json_structure text not null,
  created_at bigint not null,
  updated_at bigint not null
);

create table schema_migrations (
  name character varying(255) not null,
  timestamp character varying(255) not null
);

create table schema_migrations_lock (
  id character varying(255) not null,
  is_locked integer not null default 0
);

create table secrets (
  name text not null,
  version integer not null,
  value text not null,
  created_at bigint not null
);

create table segments (
  seq bigint not null default nextval('segments_seq_seq'::regclass),
  id text not null,
  workspace_id text not null,
  name text not null,
  name_folded text not null,
  conditions text not null,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint
);

create table sending_usage (
  workspace_id text not null,
  window_kind text not null,
  window_start bigint not null,
  accepted integer not null
);

create table set_aside_events (
  consumer text not null,
  seq bigint not null,
  event text not null,
  error text not null,
  set_aside_at bigint not null,
  is_retry_wanted integer not null
);

create table site_uses (
  node_id text not null,
  site text not null,
  backoff_until bigint
);

create table split_destinations (
  destination text not null,
  parts integer not null,
  begins_at bigint not null,
  ends_at bigint not null
);

create table suppression_sweeps (
  workspace_id text not null,
  is_sandbox integer not null,
  position bigint not null
);

create table suppressions (
  seq bigint not null default nextval('suppressions_seq_seq'::regclass),
  workspace_id text not null,
  email text not null,
  reason text not null,
  scope text not null,
  source_message_id text,
  created_at bigint not null
);

create table tags (
  seq bigint not null default nextval('tags_seq_seq'::regclass),
  id text not null,
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

create table template_versions (
  template_id text not null,
  version integer not null,
  name text not null,
  description text,
  html text not null,
  json_structure text,
  created_at bigint not null
);

create table templates (
  id text not null,
  workspace_id text not null,
  name text not null,
  name_folded text not null,
  description text,
  version integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  deleted_at bigint
);

create table visits (
  seq bigint not null default nextval('visits_seq_seq'::regclass),
  kind text not null,
  message_id text not null,
  at bigint not null,
  address text not null,
  user_agent text not null,
  is_head integer not null,
  url text
);

create table webhook_attempts (
  delivery_id text not null,
  number integer not null,
  started_at bigint not null,
  duration_ms integer not null,
  status_code integer not null,
  error text,
  response text,
  user_agent text
);

create table webhook_deliveries (
  id text not null,
  subscription_id text not null,
  payload bigint not null,
  status text not null,
  attempts integer not null,
  attempts_before integer not null,
  next_attempt_at bigint,
  created_at bigint not null,
  finished_at bigint
);

create table webhook_payloads (
  seq bigint not null default nextval('webhook_payloads_seq_seq'::regclass),
  event text not null,
  body text not null,
  created_at bigint not null
);

create table webhook_subscriptions (
  id text not null,
  workspace_id text not null,
  is_sandbox integer not null,
  event text not null,
  target_url text not null,
  secret text not null,
  former_secret text,
  former_until bigint,
  created_at bigint not null,
  failing_since bigint,
  disabled_at bigint,
  disabled_reason text,
  deleted_at bigint
);

create table workspaces (
  id text not null,
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
  is_marketing integer not null default 0,
  brand_color text,
  track_opens integer not null default 1,
  track_clicks integer not null default 1,
  utm_source text,
  utm_medium text,
  utm_campaign text,
  created_at bigint not null,
  deleted_at bigint,
  removed_by text,
  setup_dismissed_at bigint
);

create table write_trials (
  id integer not null,
  tried_at bigint not null
);

alter table account_mails add constraint account_mails_pkey PRIMARY KEY (id);

alter table acme_accounts add constraint acme_accounts_pkey PRIMARY KEY (directory);

alter table acme_certificates add constraint acme_certificates_pkey PRIMARY KEY (directory);

alter table acme_challenges add constraint acme_challenges_pkey PRIMARY KEY (token);

alter table activities add constraint activities_pkey PRIMARY KEY (seq);

alter table api_keys add constraint api_keys_key_hash_key UNIQUE (key_hash);

alter table api_keys add constraint api_keys_pkey PRIMARY KEY (id);

alter table attempts add constraint attempts_message_id_fkey FOREIGN KEY (message_id) REFERENCES messages(id) ON DELETE CASCADE;

alter table attempts add constraint attempts_pkey PRIMARY KEY (seq);

alter table attributes add constraint attributes_pkey PRIMARY KEY (id);

alter table audiences add constraint audiences_pkey PRIMARY KEY (seq);

alter table audiences add constraint audiences_workspace_id_key UNIQUE (workspace_id);

alter table automation_entries add constraint automation_entries_pk PRIMARY KEY (automation, contact_id);

alter table automation_mails add constraint automation_mails_pkey PRIMARY KEY (step);

alter table automation_members add constraint automation_members_pk PRIMARY KEY (automation, contact);

alter table automation_run_steps add constraint automation_run_steps_pkey PRIMARY KEY (seq);

alter table automation_runs add constraint automation_runs_id_key UNIQUE (id);

alter table automation_runs add constraint automation_runs_pkey PRIMARY KEY (seq);

alter table automation_step_counts add constraint automation_step_counts_pk PRIMARY KEY (step, path);

alter table automation_steps add constraint automation_steps_id_key UNIQUE (id);

alter table automation_steps add constraint automation_steps_pkey PRIMARY KEY (seq);

alter table automations add constraint automations_id_key UNIQUE (id);

alter table automations add constraint automations_pkey PRIMARY KEY (seq);

alter table bounces add constraint bounces_message_id_key UNIQUE (message_id);

alter table bounces add constraint bounces_pkey PRIMARY KEY (id);

alter table campaign_checks add constraint campaign_checks_pkey PRIMARY KEY (campaign);

alter table campaign_clicks add constraint campaign_clicks_pk PRIMARY KEY (campaign, link, contact);

alter table campaign_data add constraint campaign_data_pkey PRIMARY KEY (campaign);

alter table campaign_holds add constraint campaign_holds_pkey PRIMARY KEY (campaign_id);

alter table campaign_letters add constraint campaign_letters_pkey PRIMARY KEY (campaign);

alter table campaign_links add constraint campaign_links_pk PRIMARY KEY (campaign, link);

alter table campaign_pages add constraint campaign_pages_pkey PRIMARY KEY (campaign);

alter table campaign_providers add constraint campaign_providers_pk PRIMARY KEY (campaign, provider);

alter table campaign_recipients add constraint campaign_recipients_pk PRIMARY KEY (campaign, contact);

alter table campaign_tests add constraint campaign_tests_pkey PRIMARY KEY (campaign);

alter table campaign_times add constraint campaign_times_pk PRIMARY KEY (campaign, starts_at);

alter table campaign_variant_links add constraint campaign_variant_links_pk PRIMARY KEY (campaign, variant, link);

alter table campaign_variants add constraint campaign_variants_pk PRIMARY KEY (campaign, variant);

alter table campaigns add constraint campaigns_id_key UNIQUE (id);

alter table campaigns add constraint campaigns_pkey PRIMARY KEY (seq);

alter table captured_mails add constraint captured_mails_pkey PRIMARY KEY (seq);

alter table contact_attributes add constraint contact_attributes_pk PRIMARY KEY (contact);

alter table contact_hours add constraint contact_hours_pk PRIMARY KEY (contact, hour);

alter table contact_import_erasures add constraint contact_import_erasures_pk PRIMARY KEY (import, email_hash);

alter table contact_import_parts add constraint contact_import_parts_pk PRIMARY KEY (import, part);

alter table contact_import_rejections add constraint contact_import_rejections_pk PRIMARY KEY (import, line);

alter table contact_imports add constraint contact_imports_id_key UNIQUE (id);

alter table contact_imports add constraint contact_imports_pkey PRIMARY KEY (seq);

alter table contact_sweeps add constraint contact_sweeps_pkey PRIMARY KEY (id);

alter table contact_tags add constraint contact_tags_pk PRIMARY KEY (tag, contact);

alter table contacts add constraint contacts_by_seq PRIMARY KEY (seq);

alter table contents_ahead add constraint contents_ahead_pkey PRIMARY KEY (content_id);

alter table conversions add constraint conversions_pkey PRIMARY KEY (id);

alter table daily_counters add constraint daily_counters_pk PRIMARY KEY (workspace_id, day, name);

alter table daily_group_counters add constraint daily_group_counters_pk PRIMARY KEY (workspace_id, dimension, day, value);

alter table dkim_keys add constraint dkim_keys_domain_id_fkey FOREIGN KEY (domain_id) REFERENCES domains(id) ON DELETE CASCADE;

alter table dkim_keys add constraint dkim_keys_pkey PRIMARY KEY (id);

alter table dkim_keys add constraint dkim_keys_selector_key UNIQUE (selector);

alter table domain_denials add constraint domain_denials_message_id_key UNIQUE (message_id);

alter table domain_denials add constraint domain_denials_pkey PRIMARY KEY (seq);

alter table domain_reports add constraint domain_reports_once UNIQUE (domain, kind, org_name, report_id);

alter table domain_reports add constraint domain_reports_pkey PRIMARY KEY (id);

alter table domains add constraint domains_pkey PRIMARY KEY (id);

alter table drained_nodes add constraint drained_nodes_pkey PRIMARY KEY (name);

alter table email_batches add constraint email_batches_pkey PRIMARY KEY (id);

alter table event_cursors add constraint event_cursors_pkey PRIMARY KEY (consumer);

alter table events add constraint events_pkey PRIMARY KEY (seq);

alter table feed_items add constraint feed_items_pk PRIMARY KEY (feed, item);

alter table feed_runs add constraint feed_runs_id_key UNIQUE (id);

alter table feed_runs add constraint feed_runs_pkey PRIMARY KEY (seq);

alter table feeds add constraint feeds_id_key UNIQUE (id);

alter table feeds add constraint feeds_pkey PRIMARY KEY (seq);

alter table form_counts add constraint form_counts_pk PRIMARY KEY (form_id, day);

alter table forms add constraint forms_pkey PRIMARY KEY (id);

alter table inbound_mails add constraint inbound_mails_body_id_key UNIQUE (body_id);

alter table inbound_mails add constraint inbound_mails_pkey PRIMARY KEY (seq);

alter table inbound_parts add constraint inbound_parts_pk PRIMARY KEY (body_id, part);

alter table job_requests add constraint job_requests_pkey PRIMARY KEY (id);

alter table jobs add constraint jobs_pkey PRIMARY KEY (name);

alter table kept_answers add constraint kept_answers_pkey PRIMARY KEY (id);

alter table leases add constraint leases_node_id_fkey FOREIGN KEY (node_id) REFERENCES nodes(id) ON DELETE CASCADE;

alter table leases add constraint leases_pkey PRIMARY KEY (name);

alter table limit_uses add constraint limit_uses_pkey PRIMARY KEY (name);

alter table list_members add constraint list_members_pk PRIMARY KEY (list, contact);

alter table lists add constraint lists_id_key UNIQUE (id);

alter table lists add constraint lists_pkey PRIMARY KEY (seq);

alter table login_failures add constraint login_failures_pkey PRIMARY KEY (seq);

alter table mail_totals add constraint mail_totals_pk PRIMARY KEY (workspace_id, part);

alter table media add constraint media_id_key UNIQUE (id);

alter table media add constraint media_pkey PRIMARY KEY (seq);

alter table media_files add constraint media_files_pk PRIMARY KEY (media, width);

alter table media_parts add constraint media_parts_pk PRIMARY KEY (media, width, part);

alter table message_contents add constraint message_contents_pkey PRIMARY KEY (id);

alter table message_parts add constraint message_parts_pk PRIMARY KEY (content_id, part);

alter table messages add constraint messages_content_id_fkey FOREIGN KEY (content_id) REFERENCES message_contents(id);

alter table messages add constraint messages_pkey PRIMARY KEY (id);

alter table nodes add constraint nodes_pkey PRIMARY KEY (id);

alter table operator_challenges add constraint operator_challenges_pkey PRIMARY KEY (challenge);

alter table operator_identities add constraint operator_identities_pk PRIMARY KEY (issuer, subject);

alter table operator_invitations add constraint operator_invitations_once UNIQUE (workspace_id, email);

alter table operator_invitations add constraint operator_invitations_pkey PRIMARY KEY (id);

alter table operator_links add constraint operator_links_pkey PRIMARY KEY (token_hash);

alter table operator_passkeys add constraint operator_passkeys_pkey PRIMARY KEY (id);

alter table operator_recovery_codes add constraint operator_recovery_codes_pk PRIMARY KEY (operator_id, code_hash);

alter table operator_roles add constraint operator_roles_pk PRIMARY KEY (operator_id, workspace_id);

alter table operator_sessions add constraint operator_sessions_pkey PRIMARY KEY (id);

alter table operator_sessions add constraint operator_sessions_token_hash_key UNIQUE (token_hash);

alter table operator_tokens add constraint operator_tokens_pkey PRIMARY KEY (id);

alter table operator_tokens add constraint operator_tokens_token_hash_key UNIQUE (token_hash);

alter table operators add constraint operators_email_key UNIQUE (email);

alter table operators add constraint operators_pkey PRIMARY KEY (id);

alter table opt_ins add constraint opt_ins_pkey PRIMARY KEY (id);

alter table product_views add constraint product_views_id_key UNIQUE (id);

alter table product_views add constraint product_views_pkey PRIMARY KEY (seq);

alter table published_names add constraint published_names_pkey PRIMARY KEY (node, purpose, name);

alter table quarter_counters add constraint quarter_counters_pk PRIMARY KEY (workspace_id, dimension, starts_at, value);

alter table queue add constraint queue_message_id_fkey FOREIGN KEY (message_id) REFERENCES messages(id) ON DELETE CASCADE;

alter table queue add constraint queue_pkey PRIMARY KEY (message_id);

alter table recent_counters add constraint recent_counters_pk PRIMARY KEY (workspace_id, span, starts_at, name);

alter table restore_holds add constraint restore_holds_pkey PRIMARY KEY (id);

alter table sandbox_schedule add constraint sandbox_schedule_message_id_fkey FOREIGN KEY (message_id) REFERENCES messages(id) ON DELETE CASCADE;

alter table sandbox_schedule add constraint sandbox_schedule_pkey PRIMARY KEY (message_id);

alter table sandboxes add constraint sandboxes_pkey PRIMARY KEY (id);

alter table sandboxes add constraint sandboxes_workspace_id_key UNIQUE (workspace_id);

alter table saved_blocks add constraint saved_blocks_pkey PRIMARY KEY (id);

alter table schema_migrations add constraint schema_migrations_pkey PRIMARY KEY (name);

alter table schema_migrations_lock add constraint schema_migrations_lock_pkey PRIMARY KEY (id);

alter table secrets add constraint secrets_pk PRIMARY KEY (name, version);

alter table segments add constraint segments_id_key UNIQUE (id);

alter table segments add constraint segments_pkey PRIMARY KEY (seq);

alter table sending_usage add constraint sending_usage_windows_pk PRIMARY KEY (workspace_id, window_kind, window_start);

alter table set_aside_events add constraint set_aside_events_pk PRIMARY KEY (consumer, seq);

alter table site_uses add constraint site_uses_node_id_fkey FOREIGN KEY (node_id) REFERENCES nodes(id) ON DELETE CASCADE;

alter table site_uses add constraint site_uses_pk PRIMARY KEY (node_id, site);

alter table split_destinations add constraint split_destinations_pkey PRIMARY KEY (destination);

alter table suppression_sweeps add constraint suppression_sweeps_pkey PRIMARY KEY (workspace_id);

alter table suppressions add constraint suppressions_by_email UNIQUE (workspace_id, email);

alter table suppressions add constraint suppressions_pkey PRIMARY KEY (seq);

alter table tags add constraint tags_id_key UNIQUE (id);

alter table tags add constraint tags_pkey PRIMARY KEY (seq);

alter table template_versions add constraint template_versions_pk PRIMARY KEY (template_id, version);

alter table template_versions add constraint template_versions_template_id_fkey FOREIGN KEY (template_id) REFERENCES templates(id) ON DELETE CASCADE;

alter table templates add constraint templates_pkey PRIMARY KEY (id);

alter table visits add constraint visits_pkey PRIMARY KEY (seq);

alter table webhook_attempts add constraint webhook_attempts_pk PRIMARY KEY (delivery_id, number);

alter table webhook_deliveries add constraint webhook_deliveries_pkey PRIMARY KEY (id);

alter table webhook_payloads add constraint webhook_payloads_pkey PRIMARY KEY (seq);

alter table webhook_subscriptions add constraint webhook_subscriptions_pkey PRIMARY KEY (id);

alter table workspaces add constraint workspaces_pkey PRIMARY KEY (id);

alter table write_trials add constraint write_trials_pkey PRIMARY KEY (id);

CREATE INDEX account_mails_by_time ON public.account_mails USING btree (created_at);

CREATE INDEX account_mails_due ON public.account_mails USING btree (next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

CREATE INDEX activities_by_action ON public.activities USING btree (workspace_id, action, seq);

CREATE INDEX activities_by_workspace ON public.activities USING btree (workspace_id, seq);

CREATE INDEX api_keys_by_workspace ON public.api_keys USING btree (workspace_id);

CREATE INDEX attempts_by_message ON public.attempts USING btree (message_id);

CREATE UNIQUE INDEX attributes_by_name ON public.attributes USING btree (workspace_id, name);

CREATE INDEX attributes_in_order ON public.attributes USING btree (workspace_id, name_folded, id);

CREATE INDEX automation_run_steps_by_run ON public.automation_run_steps USING btree (run, seq);

CREATE INDEX automation_runs_by_automation ON public.automation_runs USING btree (automation, seq);

CREATE INDEX automation_runs_by_contact ON public.automation_runs USING btree (contact_id, seq);

CREATE INDEX automation_runs_by_status ON public.automation_runs USING btree (automation, status, seq);

CREATE INDEX automation_runs_due ON public.automation_runs USING btree (due_at, seq) WHERE (due_at IS NOT NULL);

CREATE INDEX automation_runs_due_of ON public.automation_runs USING btree (workspace_id, due_at, seq) WHERE (due_at IS NOT NULL);

CREATE INDEX automation_runs_ended ON public.automation_runs USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX automation_runs_in_step ON public.automation_runs USING btree (step) WHERE (ended_at IS NULL);

CREATE INDEX automation_runs_parked ON public.automation_runs USING btree (automation, seq) WHERE (parked_due_at IS NOT NULL);

CREATE INDEX automation_runs_unfinished ON public.automation_runs USING btree (automation, seq) WHERE (ended_at IS NULL);

CREATE INDEX automation_runs_waiting ON public.automation_runs USING btree (contact_id, wait_event) WHERE (ended_at IS NULL);

CREATE INDEX automation_steps_by_automation ON public.automation_steps USING btree (automation, "position");

CREATE INDEX automation_steps_unsettled ON public.automation_steps USING btree (unsettled_at) WHERE (unsettled_at IS NOT NULL);

CREATE INDEX automations_by_trigger ON public.automations USING btree (trigger_type) WHERE (deleted_at IS NULL);

CREATE INDEX automations_by_workspace ON public.automations USING btree (workspace_id, seq) WHERE (deleted_at IS NULL);

CREATE INDEX automations_unsettled ON public.automations USING btree (unsettled_at) WHERE (unsettled_at IS NOT NULL);

CREATE INDEX bounces_by_campaign ON public.bounces USING btree (workspace_id, campaign_id, created_at, id, type, subtype) WHERE (campaign_id IS NOT NULL);

CREATE INDEX bounces_by_email ON public.bounces USING btree (workspace_id, email, created_at, id);

CREATE INDEX bounces_by_workspace ON public.bounces USING btree (workspace_id, created_at, id, type, subtype);

CREATE INDEX campaign_checks_finished ON public.campaign_checks USING btree (finished_at) WHERE (finished_at IS NOT NULL);

CREATE INDEX campaign_checks_running ON public.campaign_checks USING btree (started_at) WHERE (status = 'running'::text);

CREATE UNIQUE INDEX campaign_links_by_url ON public.campaign_links USING btree (campaign, digest);

CREATE INDEX campaign_pages_by_workspace ON public.campaign_pages USING btree (workspace_id, campaign);

CREATE INDEX campaign_recipients_by_message ON public.campaign_recipients USING btree (message_id) WHERE (message_id IS NOT NULL);

CREATE INDEX campaign_recipients_by_status ON public.campaign_recipients USING btree (campaign, status, contact);

CREATE INDEX campaign_recipients_due ON public.campaign_recipients USING btree (campaign, due_at, contact) WHERE ((due_at IS NOT NULL) AND (status = 'pending'::text));

CREATE INDEX campaign_recipients_to_test ON public.campaign_recipients USING btree (campaign, variant, contact) WHERE ((status = 'pending'::text) AND (variant IS NOT NULL));

CREATE INDEX campaigns_by_workspace ON public.campaigns USING btree (workspace_id, seq, status);

CREATE INDEX campaigns_due ON public.campaigns USING btree (next_at, seq) WHERE (next_at IS NOT NULL);

CREATE INDEX campaigns_finished ON public.campaigns USING btree (finished_at, seq) WHERE ((finished_at IS NOT NULL) AND (recipients_pruned_at IS NULL));

CREATE INDEX campaigns_under_way ON public.campaigns USING btree (seq) WHERE (status = ANY (ARRAY['sending'::text, 'paused'::text]));

CREATE INDEX contact_imports_by_workspace ON public.contact_imports USING btree (workspace_id, seq);

CREATE INDEX contact_imports_finished ON public.contact_imports USING btree (finished_at, seq) WHERE (finished_at IS NOT NULL);

CREATE INDEX contact_imports_unfinished ON public.contact_imports USING btree (seq) WHERE (finished_at IS NULL);

CREATE INDEX contact_search ON public.contacts USING gin (contact_trigrams(search_text));

CREATE INDEX contact_sweeps_unfinished ON public.contact_sweeps USING btree (begun_at) WHERE (finished_at IS NULL);

CREATE INDEX contact_tags_by_contact ON public.contact_tags USING btree (contact, tag);

CREATE INDEX contacts_bounced ON public.contacts USING btree (seq, subscribed) WHERE ((deleted_at IS NULL) AND (is_bounced = 1));

CREATE INDEX contacts_by_created ON public.contacts USING btree (audience, created_at, seq) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX contacts_by_email ON public.contacts USING btree (audience, email) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX contacts_by_id ON public.contacts USING btree (id);

CREATE INDEX contacts_by_updated ON public.contacts USING btree (audience, updated_at, seq) WHERE (deleted_at IS NULL);

CREATE INDEX contacts_deleted ON public.contacts USING btree (deleted_at, seq) WHERE (deleted_at IS NOT NULL);

CREATE INDEX contacts_live ON public.contacts USING btree (seq, subscribed, is_bounced) WHERE (deleted_at IS NULL);

CREATE INDEX contacts_unsubscribed ON public.contacts USING btree (seq, is_bounced) WHERE ((deleted_at IS NULL) AND (subscribed = 0));

CREATE INDEX conversions_by_campaign ON public.conversions USING btree (campaign_id, currency, campaign_variant, value) WHERE (campaign_id IS NOT NULL);

CREATE INDEX conversions_by_contact ON public.conversions USING btree (workspace_id, contact_id, id);

CREATE INDEX conversions_by_workspace ON public.conversions USING btree (workspace_id, id);

CREATE INDEX daily_counters_by_day ON public.daily_counters USING btree (day);

CREATE INDEX daily_group_counters_by_day ON public.daily_group_counters USING btree (day);

CREATE INDEX dkim_keys_by_domain ON public.dkim_keys USING btree (domain_id);

CREATE INDEX dkim_keys_retiring ON public.dkim_keys USING btree (retire_at) WHERE (retire_at IS NOT NULL);

CREATE INDEX domain_denials_by_domain ON public.domain_denials USING btree (domain, denied_at);

CREATE INDEX domain_denials_by_time ON public.domain_denials USING btree (denied_at, domain);

CREATE INDEX domain_denials_unjudged ON public.domain_denials USING btree (denied_at) WHERE (verdict IS NULL);

CREATE INDEX domain_reports_by_reporter ON public.domain_reports USING btree (domain, kind, received_at, authenticated_as);

CREATE INDEX domain_reports_by_time ON public.domain_reports USING btree (domain, begin_at);

CREATE INDEX domain_reports_received ON public.domain_reports USING btree (received_at);

CREATE UNIQUE INDEX domains_by_owner ON public.domains USING btree (owner, domain) WHERE (removed_at IS NULL);

CREATE INDEX domains_to_check ON public.domains USING btree (next_check_at) WHERE (next_check_at IS NOT NULL);

CREATE INDEX email_batches_by_key ON public.email_batches USING btree (key_id, released_at);

CREATE INDEX feed_items_by_time ON public.feed_items USING btree (feed, seen_at);

CREATE INDEX feed_runs_by_feed ON public.feed_runs USING btree (feed, seq);

CREATE UNIQUE INDEX feed_runs_by_time ON public.feed_runs USING btree (feed, due_at);

CREATE INDEX feeds_by_workspace ON public.feeds USING btree (workspace_id, seq);

CREATE INDEX feeds_due ON public.feeds USING btree (next_at, seq) WHERE (next_at IS NOT NULL);

CREATE INDEX form_counts_by_workspace ON public.form_counts USING btree (workspace_id);

CREATE INDEX forms_by_workspace ON public.forms USING btree (workspace_id, id);

CREATE INDEX inbound_mails_processed ON public.inbound_mails USING btree (is_signed, processed_at, size) WHERE (processed_at IS NOT NULL);

CREATE INDEX inbound_mails_waiting ON public.inbound_mails USING btree (is_signed, seq, size) WHERE (processed_at IS NULL);

CREATE INDEX kept_answers_by_age ON public.kept_answers USING btree (created_at);

CREATE INDEX leases_by_node ON public.leases USING btree (node_id);

CREATE INDEX list_members_by_contact ON public.list_members USING btree (contact, list);

CREATE INDEX lists_by_workspace ON public.lists USING btree (workspace_id, seq) WHERE (deleted_at IS NULL);

CREATE INDEX lists_deleted ON public.lists USING btree (deleted_at, seq) WHERE (deleted_at IS NOT NULL);

CREATE INDEX login_failures_by_time ON public.login_failures USING btree (at);

CREATE UNIQUE INDEX media_by_hash ON public.media USING btree (workspace_id, hash);

CREATE INDEX media_by_workspace ON public.media USING btree (workspace_id, seq);

CREATE INDEX media_deleted ON public.media USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);

CREATE INDEX media_files_by_hash ON public.media_files USING btree (hash);

CREATE INDEX message_contents_by_batch ON public.message_contents USING btree (batch_id, batch_index) WHERE (batch_id IS NOT NULL);

CREATE INDEX message_contents_whole ON public.message_contents USING btree (created_at) WHERE (pruned_at IS NULL);

CREATE INDEX messages_by_campaign ON public.messages USING btree (campaign_id, id) WHERE (campaign_id IS NOT NULL);

CREATE INDEX messages_by_content ON public.messages USING btree (content_id, id);

CREATE INDEX messages_by_recipient ON public.messages USING btree (workspace_id, recipient_bucket, id, lower(recipient));

CREATE INDEX messages_by_status ON public.messages USING btree (workspace_id, status, id) WHERE (status <> ALL (ARRAY['sent'::text, 'delivered'::text]));

CREATE INDEX messages_by_workspace ON public.messages USING btree (workspace_id, id);

CREATE INDEX messages_opened ON public.messages USING btree (workspace_id, lower(recipient), opened_at) WHERE (opened_at IS NOT NULL);

CREATE INDEX operator_challenges_by_expiry ON public.operator_challenges USING btree (expires_at);

CREATE INDEX operator_identities_by_operator ON public.operator_identities USING btree (operator_id);

CREATE INDEX operator_invitations_by_expiry ON public.operator_invitations USING btree (expires_at);

CREATE UNIQUE INDEX operator_invitations_by_token ON public.operator_invitations USING btree (token_hash) WHERE (token_hash IS NOT NULL);

CREATE INDEX operator_links_by_expiry ON public.operator_links USING btree (expires_at);

CREATE INDEX operator_links_by_operator ON public.operator_links USING btree (operator_id);

CREATE INDEX operator_passkeys_by_operator ON public.operator_passkeys USING btree (operator_id);

CREATE INDEX operator_roles_by_workspace ON public.operator_roles USING btree (workspace_id);

CREATE INDEX operator_sessions_by_operator ON public.operator_sessions USING btree (operator_id);

CREATE INDEX operator_sessions_by_seen ON public.operator_sessions USING btree (seen_at);

CREATE INDEX operator_tokens_by_operator ON public.operator_tokens USING btree (operator_id);

CREATE INDEX opt_ins_by_email ON public.opt_ins USING btree (workspace_id, email, created_at);

CREATE INDEX product_views_by_contact ON public.product_views USING btree (workspace_id, contact_id, viewed_at);

CREATE INDEX quarter_counters_by_start ON public.quarter_counters USING btree (starts_at);

CREATE INDEX queue_by_destination ON public.queue USING btree (destination, message_id) WHERE (destination IS NOT NULL);

CREATE INDEX queue_claimed ON public.queue USING btree (claimed_by) WHERE (claimed_by IS NOT NULL);

CREATE INDEX queue_deferred ON public.queue USING btree (workspace_id, message_id) WHERE ((attempts > 0) AND (claimed_by IS NULL));

CREATE INDEX queue_due ON public.queue USING btree (lane, next_attempt_at, message_id) WHERE ((is_held = 0) AND (claimed_by IS NULL));

CREATE INDEX queue_held ON public.queue USING btree (message_id) WHERE (is_held = 1);

CREATE INDEX queue_untried ON public.queue USING btree (workspace_id, message_id) WHERE (attempts = 0);

CREATE INDEX recent_counters_by_start ON public.recent_counters USING btree (span, starts_at);

CREATE INDEX sandbox_schedule_due ON public.sandbox_schedule USING btree (due_at);

CREATE INDEX saved_blocks_by_workspace ON public.saved_blocks USING btree (workspace_id, id);

CREATE INDEX segments_by_workspace ON public.segments USING btree (workspace_id, seq);

CREATE INDEX segments_deleted ON public.segments USING btree (deleted_at, seq) WHERE (deleted_at IS NOT NULL);

CREATE INDEX suppressions_by_workspace ON public.suppressions USING btree (workspace_id, seq, reason, scope);

CREATE UNIQUE INDEX tags_by_name ON public.tags USING btree (workspace_id, name_folded) WHERE (deleted_at IS NULL);

CREATE INDEX tags_by_workspace ON public.tags USING btree (workspace_id, seq) WHERE (deleted_at IS NULL);

CREATE INDEX tags_deleted ON public.tags USING btree (deleted_at, seq) WHERE (deleted_at IS NOT NULL);

CREATE INDEX templates_by_workspace ON public.templates USING btree (workspace_id, id);

CREATE INDEX webhook_deliveries_by_subscription ON public.webhook_deliveries USING btree (subscription_id, id);

CREATE INDEX webhook_deliveries_due ON public.webhook_deliveries USING btree (subscription_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);

CREATE INDEX webhook_deliveries_pending ON public.webhook_deliveries USING btree (payload) WHERE (next_attempt_at IS NOT NULL);

CREATE INDEX webhook_subscriptions_by_workspace ON public.webhook_subscriptions USING btree (workspace_id, id);

CREATE UNIQUE INDEX workspaces_by_name ON public.workspaces USING btree (lower(name)) WHERE (deleted_at IS NULL);

CREATE OR REPLACE FUNCTION public.contact_trigrams(words text)
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN (SELECT COALESCE(array_agg(DISTINCT substr(contact_trigrams.words, at.at, 3)), '{}'::text[]) AS "coalesce" FROM generate_series(1, (length(contact_trigrams.words) - 2)) at(at));
