/** What groups contacts: lists, tags, segments; and the forms that add to lists. */
import type { ColumnTypes } from './column-types.js'

export const listsTables = ({ serial, withoutRowid }: ColumnTypes): string[] => [
  `create table lists (
    seq ${serial},
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
  )`,
  'create index lists_by_workspace on lists (workspace_id, seq) where deleted_at is null',
  'create index lists_deleted on lists (deleted_at, seq) where deleted_at is not null',
  `create table list_members (
    list bigint not null,
    contact bigint not null,
    added_at bigint not null,
    constraint list_members_pk primary key (list, contact)
  )${withoutRowid}`,
  'create index list_members_by_contact on list_members (contact, list)',
  `create table tags (
    seq ${serial},
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
  )`,
  'create unique index tags_by_name on tags (workspace_id, name_folded) where deleted_at is null',
  'create index tags_by_workspace on tags (workspace_id, seq) where deleted_at is null',
  'create index tags_deleted on tags (deleted_at, seq) where deleted_at is not null',
  `create table contact_tags (
    tag bigint not null,
    contact bigint not null,
    added_at bigint not null,
    constraint contact_tags_pk primary key (tag, contact)
  )${withoutRowid}`,
  'create index contact_tags_by_contact on contact_tags (contact, tag)',
  `create table segments (
    seq ${serial},
    id text not null unique,
    workspace_id text not null,
    name text not null,
    name_folded text not null,
    conditions text not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  )`,
  'create index segments_by_workspace on segments (workspace_id, seq)',
  'create index segments_deleted on segments (deleted_at, seq) where deleted_at is not null',
  `create table forms (
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
  )`,
  'create index forms_by_workspace on forms (workspace_id, id)',
  // Submissions by form and UTC day.
  `create table form_counts (
    form_id text not null,
    -- Midnight UTC, ms since epoch.
    day bigint not null,
    workspace_id text not null,
    -- Accepted submissions, and those that took effect, at once or when they were confirmed.
    submitted integer not null,
    completed integer not null,
    constraint form_counts_pk primary key (form_id, day)
  )${withoutRowid}`,
  'create index form_counts_by_workspace on form_counts (workspace_id)',
  // Form submissions waiting for confirmation by mail.
  `create table opt_ins (
    id text primary key,
    form_id text not null,
    workspace_id text not null,
    email text not null,
    -- JSON: values by form field.
    fields text not null,
    created_at bigint not null,
    confirmed_at bigint
  )`,
  'create index opt_ins_by_email on opt_ins (workspace_id, email, created_at)',
]
