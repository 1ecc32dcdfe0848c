/** Received mail: bounces, complaints and reports. */
import type { ColumnTypes } from './column-types.js'

export const inboundTables = ({ serial, octets }: ColumnTypes): string[] => [
  `create table inbound_mails (
    seq ${serial},
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
  )`,
  'create index inbound_mails_processed on inbound_mails (is_signed, processed_at, size) where processed_at is not null',
  'create index inbound_mails_waiting on inbound_mails (is_signed, seq, size) where processed_at is null',
  `create table inbound_parts (
    body_id text not null,
    -- From 0.
    part integer not null,
    octets ${octets} not null,
    constraint inbound_parts_pk primary key (body_id, part)
  )`,
]
