/** The media library: images, their files in several widths, and the files' octets. */
import type { ColumnTypes } from './column-types.js'

export const mediaTables = ({ serial, octets }: ColumnTypes): string[] => [
  `create table media (
    seq ${serial},
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
  )`,
  'create unique index media_by_hash on media (workspace_id, hash)',
  'create index media_by_workspace on media (workspace_id, seq)',
  'create index media_deleted on media (deleted_at) where deleted_at is not null',
  `create table media_files (
    media bigint not null,
    width integer not null,
    height integer not null,
    octets bigint not null,
    hash text not null,
    constraint media_files_pk primary key (media, width)
  )`,
  'create index media_files_by_hash on media_files (hash)',
  `create table media_parts (
    media bigint not null,
    width integer not null,
    part integer not null,
    octets ${octets} not null,
    constraint media_parts_pk primary key (media, width, part)
  )`,
]
