/** Templates and their versions, and saved blocks. */
export const contentTables = (): string[] => [
  // The current content is the newest version.
  `create table templates (
    id text primary key,
    workspace_id text not null,
    name text not null,
    name_folded text not null,
    description text,
    version integer not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint
  )`,
  'create index templates_by_workspace on templates (workspace_id, id)',
  `create table template_versions (
    template_id text not null references templates (id) on delete cascade,
    version integer not null,
    name text not null,
    description text,
    html text not null,
    json_structure text,
    created_at bigint not null,
    constraint template_versions_pk primary key (template_id, version)
  )`,
  `create table saved_blocks (
    id text primary key,
    workspace_id text not null,
    name text not null,
    name_folded text not null,
    json_structure text not null,
    created_at bigint not null,
    updated_at bigint not null
  )`,
  'create index saved_blocks_by_workspace on saved_blocks (workspace_id, id)',
]
