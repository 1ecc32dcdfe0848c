/**
 * The attributes that an audience had first get columns of their own in the rows of its contacts: to read one of JSON takes a
 * rule about three times as long, for each of a million contacts.
 *
 * They stand before what may be long, which a rule does not read; so the table is made anew, and filled from what rules compared
 * so far: `traits`, which keeps what has no column.
 */
import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Dialect } from '../database.js'

/** Attributes of one audience that have columns. */
const PLACES = 16
const PER_STEP = 500

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('attribute_places')
    .addColumn('audience', 'integer', c => c.notNull())
    .addColumn('place', 'integer', c => c.notNull())
    // Of the attribute, as it is written.
    .addColumn('name', 'text', c => c.notNull())
    .addPrimaryKeyConstraint('attribute_places_pk', ['audience', 'place'])
    .addUniqueConstraint('attribute_places_names', ['audience', 'name'])
    .execute()
  await createContacts(db, dialect)
  await copyContacts(db, dialect)
  await db.schema.dropTable('contacts').execute()
  await sql`alter table contacts_anew rename to contacts`.execute(db)
  await createIndexes(db, dialect)
}

async function createContacts(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('contacts_anew')
    .addColumn('seq', dialect === 'sqlite' ? 'integer' : 'bigint', c => c.notNull())
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
    .addColumn('email', 'text', c => c.notNull())
    // What rules compare: names and attributes with case and accents folded.
    .addColumn('first_folded', 'text')
    .addColumn('last_folded', 'text')
    .$call(placeColumns)
    // Attributes without a place, as JSON that need not be parsed.
    .addColumn('traits', dialect === 'sqlite' ? 'blob' : 'jsonb', c => c.notNull())
    .addColumn('id', 'text', c => c.notNull())
    .addColumn('first_name', 'text')
    .addColumn('last_name', 'text')
    // Address and names, folded.
    .addColumn('search_text', 'text', c => c.notNull())
    // JSON, as it was given.
    .addColumn('attributes', 'text', c => c.notNull())
    .addPrimaryKeyConstraint('contacts_by_seq', ['seq' as never])
    .execute()
}

/** Of each place: the text; what of it is a number; what of it is a moment, ms since epoch UTC. */
function placeColumns<T extends string>(table: CreateTableBuilder<T>): CreateTableBuilder<T> {
  let longer: CreateTableBuilder<string> = table
  for (let place = 0; place < PLACES; place += 1)
    longer = longer
      .addColumn(`text_${place}`, 'text')
      .addColumn(`number_${place}`, 'double precision')
      .addColumn(`moment_${place}`, 'bigint')
  return longer
}

interface OldContact {
  readonly seq: number
  readonly audience: number
  readonly attributes: string
  readonly traits: string
  readonly [column: string]: unknown
}

async function copyContacts(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const places = new Map<number, Map<string, number>>()
  let last = -1
  for (;;) {
    const json = dialect === 'sqlite' ? sql`json(traits)` : sql`traits::text`
    const { rows } = await sql<OldContact>`
      select contacts.*, ${json} as traits from contacts where seq > ${last} order by seq limit ${PER_STEP}`.execute(
      db,
    )
    for (const contact of rows) {
      const row = withPlaces(contact, places)
      const columns = sql.join(Object.keys(row).map(column => sql.ref(column)))
      const values = Object.entries(row).map(([column, value]) =>
        column !== 'traits'
          ? sql`${value}`
          : dialect === 'sqlite'
            ? sql`jsonb(${value})`
            : sql`cast(${value} as jsonb)`,
      )
      await sql`insert into contacts_anew (${columns}) values (${sql.join(values)})`.execute(db)
      last = contact.seq
    }
    if (rows.length < PER_STEP) break
  }
  for (const [audience, names] of places)
    for (const [name, place] of names)
      await sql`insert into attribute_places (audience, place, name) values (${audience}, ${place}, ${name})`.execute(
        db,
      )
}

function withPlaces(contact: OldContact, places: Map<number, Map<string, number>>): Record<string, unknown> {
  const known = places.get(contact.audience) ?? new Map<string, number>()
  places.set(contact.audience, known)
  const left = new Map(Object.entries(JSON.parse(contact.traits) as object) as [string, unknown][])
  const row: Record<string, unknown> = { ...contact }
  for (const name of Object.keys(JSON.parse(contact.attributes) as object)) {
    const place = known.get(name) ?? known.size
    if (place >= PLACES) continue
    known.set(name, place)
    const trait = name.replace(/[^A-Za-z0-9_]/gu, letter => `~${letter.codePointAt(0)?.toString(16) ?? ''}~`)
    row[`text_${place}`] = left.get(trait) ?? null
    row[`number_${place}`] = left.get(`${trait}~n`) ?? null
    row[`moment_${place}`] = left.get(`${trait}~d`) ?? null
    // What is neither text, number nor truth value stays: null.
    if (left.get(trait) !== null) left.delete(trait)
    left.delete(`${trait}~n`)
    left.delete(`${trait}~d`)
  }
  return { ...row, traits: JSON.stringify(Object.fromEntries(left)) }
}

/** As they were. */
async function createIndexes(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema.createIndex('contacts_by_id').on('contacts').column('id').unique().execute()
  await db.schema
    .createIndex('contacts_by_email')
    .on('contacts')
    .columns(['audience', 'email'])
    .unique()
    .where(sql.ref('deleted_at'), 'is', null)
    .execute()
  const live = sql`where deleted_at is null`
  await sql`create index contacts_live on contacts (seq, subscribed, is_bounced) ${live}`.execute(db)
  await sql`create index contacts_unsubscribed on contacts (seq, is_bounced) ${live} and subscribed = 0`.execute(
    db,
  )
  await sql`create index contacts_bounced on contacts (seq, subscribed) ${live} and is_bounced = 1`.execute(
    db,
  )
  await sql`create index contacts_deleted on contacts (deleted_at, seq) where deleted_at is not null`.execute(
    db,
  )
  await sql`create index contacts_unindexed on contacts (seq) where is_indexed = 0`.execute(db)
  if (dialect === 'postgres')
    await sql`create index contact_search on contacts using gin (contact_trigrams(search_text))`.execute(db)
}
