/** Webhook subscriptions and deliveries. */
import type { ColumnTypes } from './column-types.js'

export const webhooksTables = ({ serial, withoutRowid }: ColumnTypes): string[] => [
  `create table webhook_subscriptions (
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
  )`,
  'create index webhook_subscriptions_by_workspace on webhook_subscriptions (workspace_id, id)',
  `create table webhook_payloads (
    -- One body per event, shared by all deliveries.
    seq ${serial},
    event text not null,
    body text not null,
    created_at bigint not null
  )`,
  `create table webhook_deliveries (
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
  )${withoutRowid}`,
  'create index webhook_deliveries_by_subscription on webhook_deliveries (subscription_id, id)',
  'create index webhook_deliveries_due on webhook_deliveries (subscription_id, next_attempt_at) where next_attempt_at is not null',
  `create table webhook_attempts (
    delivery_id text not null,
    number integer not null,
    started_at bigint not null,
    duration_ms integer not null,
    -- 0 if there was no response.
    status_code integer not null,
    error text,
    -- The beginning of the response body.
    response text,
    constraint webhook_attempts_pk primary key (delivery_id, number)
  )${withoutRowid}`,
]
