/** Contacts of an audience (a workspace or its sandbox), their attributes and their search index. */
import type { Dialect } from '../../database.js'
import type { ColumnTypes } from './column-types.js'

export const contactsTables = ({ serial, rowid, json, withoutRowid }: ColumnTypes): string[] => [
  `create table audiences (
    seq ${serial},
    -- A workspace or a sandbox.
    workspace_id text not null unique,
    -- Lower half of the newest contact's seq.
    last_contact bigint not null,
    -- Counts of contacts that are not deleted.
    contacts integer not null,
    unsubscribed integer not null,
    bounced integer not null,
    unsubscribed_bounced integer not null
  )`,
  // The upper half of seq is the audience, the lower half counts, so that an audience's contacts are stored together.
  `create table contacts (
    seq ${rowid} not null,
    audience integer not null,
    subscribed integer not null,
    -- Unsubscribed by a suppression; removing it subscribes the contact again.
    is_suspended integer default 0 not null,
    is_bounced integer not null,
    bounced_at bigint,
    -- permanent, transient or undetermined.
    bounce_type text,
    last_opened_at bigint,
    last_clicked_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    email text not null,
    -- What conditions compare, with case and accents folded.
    first_folded text,
    last_folded text,
    id text not null,
    first_name text,
    last_name text,
    -- Address and names, folded.
    search_text text not null,
    -- JSON, as submitted.
    attributes text not null,
    constraint contacts_by_seq primary key (seq)
  )`,
  'create index contacts_bounced on contacts (seq, subscribed) where deleted_at is null and is_bounced = 1',
  'create index contacts_by_created on contacts (audience, created_at, seq) where deleted_at is null',
  'create unique index contacts_by_email on contacts (audience, email) where deleted_at is null',
  'create unique index contacts_by_id on contacts (id)',
  'create index contacts_by_updated on contacts (audience, updated_at, seq) where deleted_at is null',
  'create index contacts_deleted on contacts (deleted_at, seq) where deleted_at is not null',
  'create index contacts_live on contacts (seq, subscribed, is_bounced) where deleted_at is null',
  'create index contacts_unsubscribed on contacts (seq, is_bounced) where deleted_at is null and subscribed = 0',
  // What conditions compare of attributes, apart from contacts, so that a scan of an audience reads little else. No row without attributes.
  `create table contact_attributes (
    contact ${rowid} not null,
    -- Binary JSON: for each attribute an array of text, number, time (ms since epoch UTC), items, numbers among the items.
    compared ${json} not null,
    constraint contact_attributes_pk primary key (contact)
  )`,
  // How often a person opened or clicked mail in each hour of the day: at most 24 rows per contact.
  `create table contact_hours (
    contact bigint not null,
    -- 0 to 23, UTC.
    hour integer not null,
    visits integer not null,
    constraint contact_hours_pk primary key (contact, hour)
  )${withoutRowid}`,
  // Deleting or restoring all contacts, in steps; continued after a restart.
  `create table contact_sweeps (
    id text primary key,
    workspace_id text not null,
    is_sandbox integer not null,
    -- delete or restore.
    kind text not null,
    -- Deleting moves it up, restoring down.
    position bigint not null,
    end_position bigint not null,
    changed integer not null,
    skipped integer not null,
    begun_at bigint not null,
    finished_at bigint
  )`,
  'create index contact_sweeps_unfinished on contact_sweeps (begun_at) where finished_at is null',
  // Pending updates of a workspace's contacts after a whole domain was suppressed.
  `create table suppression_sweeps (
    workspace_id text primary key,
    is_sandbox integer not null,
    position bigint not null
  )`,
]

/**
 * The search index: which contacts contain three given characters in a row. Longer texts are then looked for in those contacts.
 * On SQLite, triggers maintain it. It is merged by `mergeSearchIndex` only, a few pages at a time.
 */
export const contactSearch = (dialect: Dialect): string[] =>
  dialect === 'sqlite'
    ? [
        `create virtual table contact_search using fts5(
    search_text, content = 'contacts', content_rowid = 'seq', tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0
  )`,
        `insert into contact_search (contact_search, rank) values ('automerge', 0)`,
        `insert into contact_search (contact_search, rank) values ('crisismerge', 500)`,
        `insert into contact_search (contact_search, rank) values ('usermerge', 8)`,
        `create trigger contact_search_insert after insert on contacts begin
    insert into contact_search (rowid, search_text) values (new.seq, new.search_text);
  end`,
        `create trigger contact_search_update after update of search_text on contacts when old.search_text <> new.search_text begin
    insert into contact_search (contact_search, rowid, search_text) values ('delete', old.seq, old.search_text);
    insert into contact_search (rowid, search_text) values (new.seq, new.search_text);
  end`,
        `create trigger contact_search_delete after delete on contacts begin
    insert into contact_search (contact_search, rowid, search_text) values ('delete', old.seq, old.search_text);
  end`,
      ]
    : [
        `create function contact_trigrams(words text) returns text[] language sql immutable strict parallel safe return
    (select coalesce(array_agg(distinct substr(words, at, 3)), '{}') from generate_series(1, length(words) - 2) as at)`,
        'create index contact_search on contacts using gin (contact_trigrams(search_text))',
      ]
