/** What belongs to the appliance as a whole. */
import type { ColumnTypes } from './column-types.js'

export const systemTables = ({ json, serial, unlogged }: ColumnTypes): string[] => [
  // The appliance's own secrets, e.g. the key that signs return paths; older versions verify mail in transit.
  `create table secrets (
    name text not null,
    version integer not null,
    value text not null,
    created_at bigint not null,
    constraint secrets_pk primary key (name, version)
  )`,
  `create table jobs (
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
  )`,
  // One node asks the one that runs the jobs to run one now.
  `create table job_requests (
    id text primary key,
    name text not null,
    requested_at bigint not null,
    answer text
  )`,
  // Servers that share the database; one row with SQLite.
  `create table nodes (
    id text primary key,
    name text not null,
    -- Separated by commas.
    roles text not null,
    is_stopping integer not null,
    started_at bigint not null,
    -- Others remove it if it is not renewed until then.
    alive_until bigint not null
  )`,
  // Host names of nodes that take no work until the operator resumes them, across restarts.
  `create table drained_nodes (
    name text primary key,
    drained_at bigint not null
  )`,
  // Work that one node does for all.
  `create table leases (
    name text primary key,
    node_id text not null references nodes (id) on delete cascade,
    taken_at bigint not null
  )`,
  'create index leases_by_node on leases (node_id)',
  // What each node holds of limits that all nodes share; empty with one node.
  `create ${unlogged}table limit_uses (
    -- Digest of the kind of limit and of what it limits, e.g. a key or an address.
    name text primary key,
    -- By node: how much it may have used within the window, and until when that counts.
    held ${json} not null,
    until bigint not null
  )`,
  // Failed logins, which every node counts.
  `create table login_failures (
    seq ${serial},
    node_id text not null,
    -- failed, succeeded or forgiven: the latter two clear what is before them.
    kind text not null,
    address text not null,
    account_hash text,
    account text,
    at bigint not null
  )`,
  'create index login_failures_by_time on login_failures (at)',
  // Which nodes are delivering to a site, so that each takes its part of the site's connections and rate; empty with one node.
  `create table site_uses (
    node_id text not null references nodes (id) on delete cascade,
    site text not null,
    backoff_until bigint,
    constraint site_uses_pk primary key (node_id, site)
  )`,
  // Destinations with so much mail that several nodes deliver to them.
  `create table split_destinations (
    destination text primary key,
    parts integer not null,
    begins_at bigint not null,
    ends_at bigint not null
  )`,
  // Accounts at ACME servers, and the state of orders there.
  `create table acme_accounts (
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
  )`,
  // The certificate of each ACME server, which all nodes use.
  `create table acme_certificates (
    directory text primary key,
    -- Grows whenever a certificate is stored.
    version integer not null,
    -- PEM, leaf first.
    chain text not null,
    -- PEM, sealed if secrets.key is set.
    private_key text not null,
    obtained_at bigint not null
  )`,
  // Of orders in progress: any node answers them.
  `create table acme_challenges (
    token text primary key,
    -- http or dns.
    kind text not null,
    content text not null,
    expires_at bigint not null
  )`,
  // Stored responses of requests with an Idempotency-Key.
  `create table kept_answers (
    -- Digest of workspace, kind of key, method, path and Idempotency-Key.
    id text primary key,
    body_hash text not null,
    status integer not null,
    value text not null,
    created_at bigint not null
  )`,
  'create index kept_answers_by_age on kept_answers (created_at)',
  // One row at most: a restored copy does not send until released.
  `create table restore_holds (
    id integer primary key,
    since bigint not null
  )`,
  // The health check writes here: only a real commit proves that the disk takes writes.
  `create table write_trials (
    id integer primary key,
    tried_at bigint not null
  )`,
]
