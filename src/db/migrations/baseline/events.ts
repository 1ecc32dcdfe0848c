/** The event log and its consumers. */
import type { ColumnTypes } from './column-types.js'

export const eventsTables = ({ serial }: ColumnTypes): string[] => [
  `create table events (
    seq ${serial},
    kind text not null,
    workspace_id text not null,
    message_id text,
    is_sandbox integer not null,
    occurred_at bigint not null,
    payload text not null
  )`,
  `create table event_cursors (
    consumer text primary key,
    seq bigint not null
  )`,
  // Events that their consumer could not process.
  `create table set_aside_events (
    consumer text not null,
    seq bigint not null,
    -- JSON: the whole event, since the log is pruned.
    event text not null,
    error text not null,
    set_aside_at bigint not null,
    -- An operator requested a retry.
    is_retry_wanted integer not null,
    constraint set_aside_events_pk primary key (consumer, seq)
  )`,
]
