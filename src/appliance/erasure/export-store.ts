/**
 * SQL for exporting the data stored about a person, section by section, in batches.
 *
 * Runs on `Database.exportReader`; every statement is short. Rows are found as in `erasure-store.ts` and exported with all their columns,
 * so new columns are included automatically.
 */
import { sql } from 'kysely'
import type { Contact } from '../../audience/contacts/contact.js'
import { listContactHours } from '../../audience/contacts/contact-hours-store.js'
import { isoTime } from '../../core/moments.js'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { recipientBucket } from '../../messages/message-store.js'
import { OWNED, type OwnedRows, type Subject } from './erasure-store.js'
import { importsOf, mentions, mentionsBetween, rejectionsOf } from './mention-store.js'
import { formsOf, mentionOf } from './person-words.js'
import type { Section } from './personal-tables.js'

export type Shown = Readonly<Record<string, unknown>>

const AT_ONCE = 100
/** Rows of a log that one statement searches. */
const LOOKED_AT = 20_000

/** The person, in one workspace. */
export interface Exported extends Subject {
  readonly contact: Contact
}

type ReadSection = (db: Queries, exported: Exported) => AsyncGenerator<readonly Shown[]>

/** All but the messages, whose contents are read one by one. */
export const EXPORT_READERS: Readonly<Record<Exclude<Section, 'messages'>, ReadSection>> = {
  lists: (db, { contact }) => once(pairs(db, contact, 'list_members', 'lists', 'list')),
  tags: (db, { contact }) => once(pairs(db, contact, 'contact_tags', 'tags', 'tag')),
  suppressions: (db, { workspaceIds, email }) =>
    once(
      db
        .selectFrom('suppressions')
        .selectAll()
        .where('workspace_id', 'in', workspaceIds)
        .where('email', 'in', [email, email.slice(email.lastIndexOf('@'))])
        .execute(),
    ),
  bounces: owned('bounces'),
  domain_denials: owned('domain_denials'),
  conversions: owned('conversions'),
  product_views: owned('product_views'),
  form_submissions: owned('opt_ins'),
  automation_runs: readRuns,
  campaigns: (db, { workspaceIds, contact: { seq } }) =>
    once(snapshot(db, db => campaignsOf(db, workspaceIds, seq))),
  events: (db, exported) => readLog(db, exported, 'events', 'payload'),
  activity: (db, exported) =>
    readLog(db, exported, 'activities', `subject || ' ' || details || ' ' || changes`),
  import_rejections: readRejections,
  visit_hours: (db, { contact }) => once(listContactHours(db, contact.seq)),
}

async function* once(rows: Promise<readonly object[]>): AsyncGenerator<readonly Shown[]> {
  yield (await rows).map(shown)
}

async function pairs(
  db: Queries,
  { seq }: Contact,
  table: 'list_members' | 'contact_tags',
  things: 'lists' | 'tags',
  thing: string,
): Promise<readonly object[]> {
  const { rows } = await sql<object>`
    select things.id as id, things.name as name, pairs.added_at as added_at from ${sql.table(table)} as pairs
    inner join ${sql.table(things)} as things on things.seq = pairs.${sql.ref(thing)}
    where pairs.contact = ${seq} and things.deleted_at is null order by pairs.added_at`.execute(db)
  return rows
}

/** Rows with a column for the person, in key order. */
function owned(table: OwnedRows['table']): ReadSection {
  const found = OWNED.find(one => one.table === table)
  if (!found) throw new Error(`${table} is not erased`)
  return (db, exported) => readOwned(db, found, exported)
}

async function* readOwned(
  db: Queries,
  { table, key, by, column }: OwnedRows,
  { workspaceIds, email, contactIds }: Exported,
): AsyncGenerator<readonly Shown[]> {
  const values = by === 'email' ? [email] : contactIds
  for (let after: string | number | undefined; ;) {
    const { rows } = await sql<Record<string, string | number>>`
      select * from ${sql.table(table)}
      where workspace_id in (${sql.join(workspaceIds)}) and ${sql.ref(column)} in (${sql.join(values)})
        ${after === undefined ? sql`` : sql`and ${sql.ref(key)} > ${after}`}
      order by ${sql.ref(key)} limit ${AT_ONCE}`.execute(db)
    yield rows.map(shown)
    after = rows.at(-1)?.[key]
    if (rows.length < AT_ONCE) return
  }
}

export interface ExportedMessage {
  readonly id: string
  readonly contentId: string
  readonly shown: Shown
}

/** Without their contents, oldest first. */
export async function* readMessages(
  db: Queries,
  { workspaceIds, email }: Exported,
): AsyncGenerator<readonly ExportedMessage[]> {
  for (let after = ''; ;) {
    const rows = await snapshot(db, db => messagesAfter(db, workspaceIds, email, after))
    yield rows
    if (rows.length < AT_ONCE) return
    after = must(rows.at(-1), 'the last message').id
  }
}

/** With their attempts. */
async function messagesAfter(
  db: Queries,
  workspaceIds: readonly string[],
  email: string,
  after: string,
): Promise<ExportedMessage[]> {
  const rows = await db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .selectAll('messages')
    .select(['from_address', 'from_name', 'subject', 'template_id', 'automation_id'])
    .where('messages.workspace_id', 'in', workspaceIds)
    .where('recipient_bucket', '=', recipientBucket(email))
    .where(sql<boolean>`lower(recipient) = ${email}`)
    .where('messages.id', '>', after)
    .orderBy('messages.id')
    .limit(AT_ONCE)
    .execute()
  const ids = rows.map(({ id }) => id)
  const attempts =
    ids.length === 0
      ? []
      : await db.selectFrom('attempts').selectAll().where('message_id', 'in', ids).orderBy('seq').execute()
  return rows.map(row => ({
    id: row.id,
    contentId: row.content_id,
    shown: { ...shown(row), attempts: attempts.filter(one => one.message_id === row.id).map(shown) },
  }))
}

async function* readRuns(db: Queries, { contactIds }: Exported): AsyncGenerator<readonly Shown[]> {
  for (let after = 0; ;) {
    const { runs, last } = await snapshot(db, db => runsAfter(db, contactIds, after))
    yield runs
    if (runs.length < AT_ONCE) return
    after = last
  }
}

/** With their steps. @returns also the number of the last one */
async function runsAfter(
  db: Queries,
  contactIds: readonly string[],
  after: number,
): Promise<{ readonly runs: readonly Shown[]; readonly last: number }> {
  const runs = await db
    .selectFrom('automation_runs')
    .innerJoin('automations', 'automations.seq', 'automation_runs.automation')
    .selectAll('automation_runs')
    .select(['automations.id as automation_id', 'automations.name as automation_name'])
    .where('contact_id', 'in', contactIds)
    .where('automation_runs.seq', '>', after)
    .orderBy('automation_runs.seq')
    .limit(AT_ONCE)
    .execute()
  const seqs = runs.map(({ seq }) => seq)
  const steps =
    seqs.length === 0
      ? []
      : await db
          .selectFrom('automation_run_steps')
          .selectAll()
          .where('run', 'in', seqs)
          .orderBy('seq')
          .execute()
  return {
    runs: runs.map(run => ({
      ...shown(run),
      steps: steps.filter(one => one.run === run.seq).map(shown),
    })),
    last: seqs.at(-1) ?? after,
  }
}

/** In key order of both tables, campaign by campaign. */
async function campaignsOf(
  db: Queries,
  workspaceIds: readonly string[],
  contact: number,
): Promise<readonly object[]> {
  const { rows } = await sql<Record<string, unknown> & { id: string }>`
    select campaigns.id as id, campaigns.name as name, recipients.status as status, recipients.reason as reason,
      recipients.message_id as message_id
    from campaigns inner join campaign_recipients as recipients
      on recipients.campaign = campaigns.seq and recipients.contact = ${contact}
    where campaigns.workspace_id in (${sql.join(workspaceIds)}) order by campaigns.seq`.execute(db)
  const { rows: clicks } = await sql<{ id: string; url: string | null }>`
    select campaigns.id as id, links.url as url from campaigns
    inner join campaign_links as links on links.campaign = campaigns.seq
    inner join campaign_clicks as clicks
      on clicks.campaign = links.campaign and clicks.link = links.link and clicks.contact = ${contact}
    where campaigns.workspace_id in (${sql.join(workspaceIds)})`.execute(db)
  return rows.map(row => ({
    ...row,
    clicked_urls: clicks.flatMap(({ id, url }) => (id === row.id && url !== null ? [url] : [])),
  }))
}

/** Rows of a log that mention the person, oldest first. */
async function* readLog(
  db: Queries,
  exported: Exported,
  table: 'events' | 'activities',
  text: string,
): AsyncGenerator<readonly Shown[]> {
  const named = namesPerson(exported)
  const newest = (
    await sql<{ seq: number | null }>`select max(seq) as seq from ${sql.table(table)}`.execute(db)
  ).rows[0]?.seq
  const oldest = (
    await sql<{ seq: number | null }>`select min(seq) as seq from ${sql.table(table)}`.execute(db)
  ).rows[0]?.seq
  for (let from = oldest ?? 1; from <= (newest ?? 0); from += LOOKED_AT) {
    const { rows } = await sql<object & { text: string }>`
      select *, ${sql.raw(text)} as text from ${sql.table(table)}
      where seq >= ${from} and seq < ${from + LOOKED_AT}
        and workspace_id in (${sql.join(exported.workspaceIds)}) and (${named.like(text)})
      order by seq`.execute(db)
    yield rows.filter(row => named.isNamed(row.text)).map(({ text: _, ...row }) => shown(row))
  }
}

async function* readRejections(db: Queries, exported: Exported): AsyncGenerator<readonly Shown[]> {
  const { workspaceIds } = exported
  const named = namesPerson(exported)
  for (const contactImport of await importsOf(db, workspaceIds))
    for (let after: string | number | undefined; ;) {
      const sought = { workspaceIds, words: named.words }
      const page = await mentionsBetween(
        db,
        rejectionsOf(contactImport),
        sought,
        { after, end: undefined },
        AT_ONCE,
      )
      yield page.flatMap(({ key, text }) => (named.isNamed(text) ? { line: key, text } : []))
      after = page.at(-1)?.key
      if (page.length < AT_ONCE) break
    }
}

function namesPerson({ email, contactIds }: Exported) {
  const words = [...formsOf(email), ...contactIds]
  const named = mentionOf(words)
  return {
    words,
    isNamed: named,
    like: (text: string) =>
      sql.join(
        words.map(word => mentions(sql.raw(text), word)),
        sql` or `,
      ),
  }
}

/** Columns without meaning for the person: internal keys and positions. */
const HIDDEN = new Set([
  ...['seq', 'workspace_id', 'recipient_bucket', 'automation', 'step', 'run', 'content_id', 'dsn_notify'],
  ...['dsn_orcpt'],
])
const JSON_COLUMNS = new Set([
  'metadata',
  'product',
  'fields',
  'trigger_data',
  'merge_data',
  'payload',
  'tried',
  'details',
])

function shown(row: object): Shown {
  return Object.fromEntries(
    Object.entries(row as Readonly<Record<string, unknown>>)
      .filter(([name]) => !HIDDEN.has(name))
      .map(([name, value]) => [name, shownValue(name, value)]),
  )
}

function shownValue(name: string, value: unknown): unknown {
  if (typeof value === 'number' && /(^|_)at$/.test(name)) return isoTime(value)
  if (typeof value === 'number' && name.startsWith('is_')) return value === 1
  if (typeof value === 'string' && JSON_COLUMNS.has(name)) return JSON.parse(value)
  return value
}
