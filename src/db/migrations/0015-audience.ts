/**
 * The audience: contacts, the lists they are in, the tags they have, segments, and what was begun for all contacts at once.
 *
 * Contacts are numbered: the upper half of the number is their audience (a workspace, or its sandbox), the lower half counts.
 * So those of an audience lie together in the order of their making, and rows about them need no more than a number.
 */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await audiences(db, dialect)
  await contacts(db, dialect)
  await contactSearch(db, dialect)
  await lists(db, dialect)
  await tags(db, dialect)
  await segments(db, dialect)
  await contactSweeps(db)
}

async function audiences(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('audiences')
    .$call(t => sequenceKey(t, dialect))
    // Or a sandbox.
    .addColumn('workspace_id', 'text', c => c.notNull().unique())
    // Of the contact made last, within its audience.
    .addColumn('last_contact', 'bigint', c => c.notNull())
    // Contacts that are not deleted, by what lists of them are filtered by.
    .addColumn('contacts', 'integer', c => c.notNull())
    .addColumn('unsubscribed', 'integer', c => c.notNull())
    .addColumn('bounced', 'integer', c => c.notNull())
    .addColumn('unsubscribed_bounced', 'integer', c => c.notNull())
    .execute()
}

async function contacts(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('contacts')
    .addColumn('seq', dialect === 'sqlite' ? 'integer' : 'bigint', c => c.primaryKey())
    .addColumn('audience', 'integer', c => c.notNull())
    .addColumn('subscribed', 'integer', c => c.notNull())
    .addColumn('is_bounced', 'integer', c => c.notNull())
    .addColumn('bounced_at', 'bigint')
    // permanent, transient or undetermined.
    .addColumn('bounce_type', 'text')
    .addColumn('last_opened_at', 'bigint')
    .addColumn('last_clicked_at', 'bigint')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    .addColumn('deleted_at', 'bigint')
    // Whether contact_search knows it as it is.
    .addColumn('is_indexed', 'integer', c => c.notNull())
    // What rules compare: names and attributes with case and accents folded, the attributes as JSON that need not be parsed.
    .addColumn('first_folded', 'text')
    .addColumn('last_folded', 'text')
    .addColumn('traits', dialect === 'sqlite' ? 'blob' : 'jsonb', c => c.notNull())
    .addColumn('id', 'text', c => c.notNull())
    .addColumn('email', 'text', c => c.notNull())
    .addColumn('first_name', 'text')
    .addColumn('last_name', 'text')
    // Address and names, folded.
    .addColumn('search_text', 'text', c => c.notNull())
    // JSON, as it was given.
    .addColumn('attributes', 'text', c => c.notNull())
    .execute()
  await db.schema.createIndex('contacts_by_id').on('contacts').column('id').unique().execute()
  await db.schema
    .createIndex('contacts_by_email')
    .on('contacts')
    .columns(['audience', 'email'])
    .unique()
    .where(sql.ref('deleted_at'), 'is', null)
    .execute()
  await sql`create index contacts_live on contacts (seq, subscribed, is_bounced) where deleted_at is null`.execute(
    db,
  )
  await sql`create index contacts_unsubscribed on contacts (seq, is_bounced) where deleted_at is null and subscribed = 0`.execute(
    db,
  )
  await sql`create index contacts_bounced on contacts (seq, subscribed) where deleted_at is null and is_bounced = 1`.execute(
    db,
  )
  await sql`create index contacts_deleted on contacts (deleted_at, seq) where deleted_at is not null`.execute(
    db,
  )
  await sql`create index contacts_unindexed on contacts (seq) where is_indexed = 0`.execute(db)
}

/**
 * Which contacts have three letters in a row somewhere; what is longer is then looked for in those. Of three letters there are
 * few enough that entries are small, and what stands between two words may be asked for as well.
 */
async function contactSearch(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect === 'sqlite') {
    await sql`create virtual table contact_search using fts5(
      search_text, content = 'contacts', content_rowid = 'seq', tokenize = 'trigram case_sensitive 1', detail = none, columnsize = 0
    )`.execute(db)
    // Merging belongs to whoever fills the index, in steps; here it would come upon whoever writes.
    await sql`insert into contact_search (contact_search, rank) values ('automerge', 0)`.execute(db)
    await sql`insert into contact_search (contact_search, rank) values ('crisismerge', 500)`.execute(db)
    return
  }
  await sql`create function contact_trigrams(words text) returns text[] language sql immutable strict parallel safe return
    (select coalesce(array_agg(distinct substr(words, at, 3)), '{}') from generate_series(1, length(words) - 2) as at)`.execute(
    db,
  )
  await sql`create index contact_search on contacts using gin (contact_trigrams(search_text))`.execute(db)
}

async function lists(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('lists')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('description', 'text')
    // static or dynamic.
    .addColumn('type', 'text', c => c.notNull())
    // JSON, of a dynamic one.
    .addColumn('conditions', 'text')
    .addColumn('is_public', 'integer', c => c.notNull())
    .addColumn('double_opt_in', 'integer', c => c.notNull())
    // Contacts that are not deleted.
    .addColumn('member_count', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    // Its members are then taken off step by step, and it goes with the last.
    .addColumn('deleted_at', 'bigint')
    .execute()
  await byWorkspace(db, 'lists')
  await pairs(db, dialect, 'list_members', 'list')
}

async function tags(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('tags')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('name_folded', 'text', c => c.notNull())
    .addColumn('color', 'text')
    .addColumn('description', 'text')
    .addColumn('contact_count', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
  await byWorkspace(db, 'tags')
  await db.schema
    .createIndex('tags_by_name')
    .on('tags')
    .columns(['workspace_id', 'name_folded'])
    .unique()
    .where(sql.ref('deleted_at'), 'is', null)
    .execute()
  await pairs(db, dialect, 'contact_tags', 'tag')
}

async function segments(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('segments')
    .$call(t => sequenceKey(t, dialect))
    .addColumn('id', 'text', c => c.notNull().unique())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('name_folded', 'text', c => c.notNull())
    // JSON.
    .addColumn('conditions', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('updated_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('segments_by_workspace')
    .on('segments')
    .columns(['workspace_id', 'seq'])
    .execute()
}

/** Deleting or restoring all contacts, on its way; whoever finds one unfinished goes on with it. */
async function contactSweeps(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('contact_sweeps')
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('is_sandbox', 'integer', c => c.notNull())
    // delete or restore.
    .addColumn('kind', 'text', c => c.notNull())
    // Contacts beyond are done; deleting goes up, restoring down.
    .addColumn('position', 'bigint', c => c.notNull())
    .addColumn('end_position', 'bigint', c => c.notNull())
    .addColumn('changed', 'integer', c => c.notNull())
    .addColumn('skipped', 'integer', c => c.notNull())
    .addColumn('begun_at', 'bigint', c => c.notNull())
    .addColumn('finished_at', 'bigint')
    .execute()
  await sql`create index contact_sweeps_unfinished on contact_sweeps (begun_at) where finished_at is null`.execute(
    db,
  )
}

/** Contacts of a thing, and things of a contact. */
async function pairs(
  db: Kysely<unknown>,
  dialect: Dialect,
  table: string,
  thing: 'list' | 'tag',
): Promise<void> {
  await db.schema
    .createTable(table)
    .addColumn(thing, 'bigint', c => c.notNull())
    .addColumn('contact', 'bigint', c => c.notNull())
    .addColumn('added_at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint(`${table}_pk`, [thing as never, 'contact'])
    .$call(t => (dialect === 'sqlite' ? t.modifyEnd(sql`without rowid`) : t))
    .execute()
  await db.schema.createIndex(`${table}_by_contact`).on(table).columns(['contact', thing]).execute()
}

async function byWorkspace(db: Kysely<unknown>, table: string): Promise<void> {
  await db.schema
    .createIndex(`${table}_by_workspace`)
    .on(table)
    .columns(['workspace_id', 'seq'])
    .where(sql.ref('deleted_at'), 'is', null)
    .execute()
  await db.schema
    .createIndex(`${table}_deleted`)
    .on(table)
    .column('seq')
    .where(sql.ref('deleted_at'), 'is not', null)
    .execute()
}

/** A key that grows with every insert and is never given twice. */
function sequenceKey<T extends string>(
  table: CreateTableBuilder<T>,
  dialect: Dialect,
): CreateTableBuilder<T> {
  return dialect === 'sqlite'
    ? table.addColumn('seq', 'integer', c => c.primaryKey().autoIncrement())
    : table.addColumn('seq', 'bigserial', c => c.primaryKey())
}
