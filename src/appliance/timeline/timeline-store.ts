/**
 * SQL for a contact's timeline, merged from all tables with dated rows, newest first.
 *
 * Runs on `Database.slowReader`. Each table is read through an index on the contact; messages through one that also covers 1/256 of the
 * workspace's other messages. Pages are keyset-paginated by moment, type and id.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Contact } from '../../audience/contacts/contact.js'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { isBehind, type KeysetOrder } from '../../db/listing.js'
import { snapshot } from '../../db/snapshot.js'
import type { Listing, Page } from '../../http/pagination.js'
import { isSpelled, recipientBucket, recipientSpellings } from '../../messages/message-store.js'

export const TIMELINE_TYPES = [
  'contact.created',
  'list.member_added',
  'tag.added',
  'form.submitted',
  'suppression.added',
  'email.accepted',
  'email.sent',
  'email.delivered',
  'email.opened',
  'email.clicked',
  'email.bounced',
  'email.complained',
  'flow.triggered',
  'flow.completed',
  'conversion.created',
  'product.viewed',
] as const
export type TimelineType = (typeof TIMELINE_TYPES)[number]

export interface TimelineEntry {
  readonly type: TimelineType
  /** Ms since epoch UTC. */
  readonly at: number
  /** As in the API. */
  readonly data: Readonly<Record<string, unknown>>
}

interface MergedRow {
  readonly at: number
  readonly key: string
  readonly type: TimelineType
  readonly id: string
}

const ORDER: KeysetOrder = { columns: ['at', 'key'], kinds: ['number', 'text'], direction: 'desc' }

/** Moments of a message. A skipped or scheduled one is accepted but not sent. */
const MOMENTS = {
  'email.accepted': 'created_at',
  'email.sent': 'sent_at',
  'email.delivered': 'delivered_at',
  'email.opened': 'opened_at',
  'email.clicked': 'clicked_at',
  'email.bounced': 'bounced_at',
  'email.complained': 'complained_at',
} as const satisfies Partial<Record<TimelineType, string>>

export function listTimeline(
  db: Queries,
  workspaceId: string,
  contact: Contact,
  page: Page,
): Promise<Listing<TimelineEntry>> {
  return snapshot(db, db => listAtOneMoment(db, workspaceId, contact, page))
}

async function listAtOneMoment(
  db: Queries,
  workspaceId: string,
  contact: Contact,
  { limit, offset, after, isUncounted }: Page,
): Promise<Listing<TimelineEntry>> {
  const merged = await mergedOf(db, workspaceId, contact)
  const behind = after ? isBehind(ORDER, after.position(...ORDER.kinds)) : sql<boolean>`1 = 1`
  const { rows } = await sql<MergedRow>`
    ${merged} select at, key, type, id from merged where ${behind}
    order by at desc, key desc limit ${limit + 1} offset ${after ? 0 : offset}`.execute(db)
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: await withData(db, contact, shown),
    total: after?.total ?? (isUncounted ? rows.length : await countAll(db, merged)),
    end: last && [last.at, last.key],
    hasMore: rows.length > limit,
  }
}

async function countAll(db: Queries, merged: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ count: number }>`${merged} select count(*) as count from merged`.execute(db)
  return must(rows[0], 'the count').count
}

async function mergedOf(db: Queries, workspaceId: string, contact: Contact): Promise<RawBuilder<unknown>> {
  const { seq, id, email, createdAt } = contact
  const own = db
    .selectFrom('messages')
    .select(['id', ...Object.values(MOMENTS)])
    .where('workspace_id', '=', workspaceId)
    .where('recipient_bucket', '=', recipientBucket(email))
    .where(isSpelled(await recipientSpellings(db, workspaceId, email)))
  const branches = [
    sql`select cast(${createdAt} as bigint) as at, 'contact.created' as type, cast(${id} as text) as id`,
    sql`select added_at, 'list.member_added', lists.id from list_members
      inner join lists on lists.seq = list_members.list where contact = ${seq} and lists.deleted_at is null`,
    sql`select added_at, 'tag.added', tags.id from contact_tags
      inner join tags on tags.seq = contact_tags.tag where contact = ${seq} and tags.deleted_at is null`,
    sql`select created_at, 'form.submitted', id from opt_ins where workspace_id = ${workspaceId} and email = ${email}`,
    sql`select created_at, 'suppression.added', email from suppressions
      where workspace_id = ${workspaceId} and email = ${email}`,
    ...Object.entries(MOMENTS).map(
      ([type, column]) =>
        sql`select ${sql.ref(column)}, ${sql.lit(type)}, id from own
          where ${sql.ref(type === 'email.accepted' ? 'sent_at' : column)} ${sql.raw(type === 'email.accepted' ? 'is null' : 'is not null')}`,
    ),
    sql`select started_at, 'flow.triggered', id from automation_runs
      where contact_id = ${id} and workspace_id = ${workspaceId}`,
    sql`select ended_at, 'flow.completed', id from automation_runs
      where contact_id = ${id} and workspace_id = ${workspaceId} and ended_at is not null`,
    sql`select created_at, 'conversion.created', id from conversions
      where workspace_id = ${workspaceId} and contact_id = ${id}`,
    sql`select viewed_at, 'product.viewed', id from product_views
      where workspace_id = ${workspaceId} and contact_id = ${id}`,
  ]
  return sql`with own as ${own}, merged as (
    select at, type, id, type || ':' || id as key from (${sql.join(branches, sql` union all `)}) as branches)`
}

type Data = Readonly<Record<string, unknown>>
type Loaded = Data & { readonly id: string }
type Loader = (db: Queries, ids: readonly string[], contact: Contact) => Promise<readonly Loaded[]>

/** Loads the data of entries, by the part of their type before the dot. */
const LOADERS: Readonly<Record<string, Loader>> = {
  async email(db, ids) {
    const rows = await db
      .selectFrom('messages')
      .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
      .select(['messages.id', 'messages.id as message_id', 'subject', 'status', 'bounce_type'])
      .select(['messages.campaign_id as campaign_id', 'automation_id'])
      .where('messages.id', 'in', ids)
      .execute()
    return rows.map(({ bounce_type, ...row }) => (bounce_type === null ? row : { ...row, bounce_type }))
  },
  list: (db, ids) =>
    db
      .selectFrom('lists')
      .select(['id', 'id as list_id', 'name as list_name'])
      .where('id', 'in', ids)
      .execute(),
  tag: (db, ids) =>
    db.selectFrom('tags').select(['id', 'id as tag_id', 'name as tag_name']).where('id', 'in', ids).execute(),
  async form(db, ids) {
    const rows = await db
      .selectFrom('opt_ins')
      .select(['id', 'form_id', 'fields', 'confirmed_at'])
      .where('id', 'in', ids)
      .execute()
    return rows.map(({ fields, confirmed_at, ...row }) => ({
      ...row,
      fields: JSON.parse(fields) as unknown,
      confirmed: confirmed_at !== null,
    }))
  },
  flow: (db, ids) =>
    db
      .selectFrom('automation_runs')
      .innerJoin('automations', 'automations.seq', 'automation_runs.automation')
      .select(['automation_runs.id', 'automation_runs.id as run_id', 'automations.id as automation_id'])
      .select([
        'automations.name as automation_name',
        'automation_runs.trigger_type',
        'automation_runs.status',
      ])
      .where('automation_runs.id', 'in', ids)
      .execute(),
  conversion: (db, ids) =>
    db
      .selectFrom('conversions')
      .select(['id', 'id as conversion_id', 'value', 'currency', 'message_id', 'campaign_id'])
      .where('id', 'in', ids)
      .execute(),
  async product(db, ids) {
    const rows = await db
      .selectFrom('product_views')
      .select(['id', 'product_id', 'product'])
      .where('id', 'in', ids)
      .execute()
    return rows.map(({ product, ...row }) => ({ ...row, ...(JSON.parse(product) as Data) }))
  },
  suppression: (db, ids, { seq }) =>
    db
      .selectFrom('suppressions')
      .innerJoin('audiences', 'audiences.workspace_id', 'suppressions.workspace_id')
      .innerJoin('contacts', 'contacts.audience', 'audiences.seq')
      .select(['suppressions.email as id', 'reason', 'scope'])
      .where('contacts.seq', '=', seq)
      .where('suppressions.email', 'in', ids)
      .execute(),
}

function kindOf(type: TimelineType): string {
  return type.slice(0, type.indexOf('.'))
}

async function withData(
  db: Queries,
  contact: Contact,
  rows: readonly MergedRow[],
): Promise<readonly TimelineEntry[]> {
  const found = new Map<string, Data>()
  for (const [kind, load] of Object.entries(LOADERS)) {
    const ids = new Set(rows.filter(({ type }) => kindOf(type) === kind).map(({ id }) => id))
    if (ids.size === 0) continue
    for (const { id, ...data } of await load(db, [...ids], contact)) found.set(`${kind} ${id}`, data)
  }
  return rows.map(({ at, type, id }) => ({ type, at, data: found.get(`${kindOf(type)} ${id}`) ?? {} }))
}
