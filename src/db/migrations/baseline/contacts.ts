/** Contacts of an audience (a workspace or its sandbox), their attributes and their search index. */
import type { Dialect } from '../../database.js'
import type { ColumnTypes } from './column-types.js'

export const contactsTables = ({ serial, rowid, json }: ColumnTypes): string[] => [
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
  // The columns given to the attributes an audience used first: reading JSON takes about three times as long.
  `create table attribute_places (
    audience integer not null,
    place integer not null,
    name text not null,
    constraint attribute_places_pk primary key (audience, place),
    constraint attribute_places_names unique (audience, name)
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
    -- Whether contact_search has its current text.
    is_indexed integer not null,
    email text not null,
    -- What conditions compare, with case and accents folded: names, then attributes with columns of their own.
    first_folded text,
    last_folded text,
    ${placeColumns()},
    -- Folded attributes without columns, as binary JSON.
    traits ${json} not null,
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
  'create index contacts_unindexed on contacts (seq) where is_indexed = 0',
  'create index contacts_unsubscribed on contacts (seq, is_bounced) where deleted_at is null and subscribed = 0',
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
 * SQLite merges it in the steps of its consumer only, never while contacts are written.
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
      ]
    : [
        `create function contact_trigrams(words text) returns text[] language sql immutable strict parallel safe return
    (select coalesce(array_agg(distinct substr(words, at, 3)), '{}') from generate_series(1, length(words) - 2) as at)`,
        'create index contact_search on contacts using gin (contact_trigrams(search_text))',
      ]

/** Attributes of one audience that have columns. */
const PLACES = 16

/** For each attribute: its text, its number if it is one, its time (ms since epoch UTC) if it is one. */
function placeColumns(): string {
  return Array.from(
    { length: PLACES },
    (_, place) => `text_${place} text, number_${place} double precision, moment_${place} bigint`,
  ).join(', ')
}
