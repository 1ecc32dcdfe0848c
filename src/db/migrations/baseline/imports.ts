/** Imports of contacts: the uploaded file, progress and rejected rows. */
import type { ColumnTypes } from './column-types.js'

export const importsTables = ({ serial, octets, withoutRowid }: ColumnTypes): string[] => [
  `create table contact_imports (
    seq ${serial},
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
  )`,
  'create index contact_imports_by_workspace on contact_imports (workspace_id, seq)',
  'create index contact_imports_finished on contact_imports (finished_at, seq) where finished_at is not null',
  'create index contact_imports_unfinished on contact_imports (seq) where finished_at is null',
  `create table contact_import_parts (
    import bigint not null,
    part integer not null,
    octets ${octets} not null,
    constraint contact_import_parts_pk primary key (import, part)
  )`,
  `create table contact_import_rejections (
    import bigint not null,
    -- Line of the file, from 1.
    line integer not null,
    reason text not null,
    -- JSON.
    cells text not null,
    constraint contact_import_rejections_pk primary key (import, line)
  )${withoutRowid}`,
  // SHA-256 of addresses erased during an import, which then drops their rows.
  `create table contact_import_erasures (
    import bigint not null,
    email_hash text not null,
    constraint contact_import_erasures_pk primary key (import, email_hash)
  )`,
]
