/** Automations, their steps and runs. */
import type { ColumnTypes } from './column-types.js'

export const automationsTables = ({ serial, withoutRowid }: ColumnTypes): string[] => [
  `create table automations (
    seq ${serial},
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
  )`,
  'create index automations_by_trigger on automations (trigger_type) where deleted_at is null',
  'create index automations_by_workspace on automations (workspace_id, seq) where deleted_at is null',
  'create index automations_unsettled on automations (unsettled_at) where unsettled_at is not null',
  `create table automation_steps (
    seq ${serial},
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
  )`,
  'create index automation_steps_by_automation on automation_steps (automation, position)',
  'create index automation_steps_unsettled on automation_steps (unsettled_at) where unsettled_at is not null',
  `create table automation_runs (
    seq ${serial},
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
  )`,
  'create index automation_runs_by_automation on automation_runs (automation, seq)',
  'create index automation_runs_by_contact on automation_runs (contact_id, seq)',
  'create index automation_runs_by_status on automation_runs (automation, status, seq)',
  'create index automation_runs_due on automation_runs (due_at, seq) where due_at is not null',
  'create index automation_runs_due_of on automation_runs (workspace_id, due_at, seq) where due_at is not null',
  'create index automation_runs_ended on automation_runs (ended_at) where ended_at is not null',
  'create index automation_runs_in_step on automation_runs (step) where ended_at is null',
  'create index automation_runs_parked on automation_runs (automation, seq) where parked_due_at is not null',
  'create index automation_runs_unfinished on automation_runs (automation, seq) where ended_at is null',
  'create index automation_runs_waiting on automation_runs (contact_id, wait_event) where ended_at is null',
  `create table automation_run_steps (
    seq ${serial},
    run bigint not null,
    at bigint not null,
    step_id text not null,
    step_type text not null,
    -- waiting, completed, skipped, retrying or failed.
    outcome text not null,
    -- JSON.
    detail text
  )`,
  'create index automation_run_steps_by_run on automation_run_steps (run, seq)',
  // How many runs left a step on each path: next, yes, no, event, timeout, skipped, failed.
  `create table automation_step_counts (
    step bigint not null,
    path text not null,
    runs integer not null,
    constraint automation_step_counts_pk primary key (step, path)
  )${withoutRowid}`,
  // Entries of a contact: ever, and in the current hour.
  `create table automation_entries (
    automation bigint not null,
    contact_id text not null,
    hour bigint not null,
    entries integer not null,
    constraint automation_entries_pk primary key (automation, contact_id)
  )${withoutRowid}`,
  // The content shared by a step's mail.
  `create table automation_mails (
    step bigint primary key,
    content_id text not null,
    fingerprint text not null,
    stored_at bigint not null
  )`,
  // Contacts in the segment when it was last scanned, by seq.
  `create table automation_members (
    automation bigint not null,
    contact bigint not null,
    constraint automation_members_pk primary key (automation, contact)
  )${withoutRowid}`,
]
