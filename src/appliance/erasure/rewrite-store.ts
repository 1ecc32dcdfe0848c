/**
 * SQL for rows about others that mention an erased person in one of their fields: found on the slow reader, range by range, then rewritten
 * by key. Used by `erase-mentions.ts`. The text of mail to others is not among these fields: retention deletes it.
 */
import { sql, type RawBuilder } from 'kysely'
import { addToGroups, OTHER_VALUES } from '../../analytics/statistics/counter-store.js'
import { addToQuarters, takeQuarters } from '../../analytics/statistics/quarter-store.js'
import type { Queries } from '../../db/database.js'
import type { Tables } from '../../db/tables.js'
import type { MentionTable } from './mention-store.js'
import { PLACEHOLDER, withoutAddress } from './person-words.js'

type Fields = Readonly<Record<string, string | null>>

/** A table whose rows stay, with fields that may mention people. */
export interface RewrittenTable {
  readonly table: keyof Tables
  readonly key: string
  readonly columns: readonly string[]
  readonly owner: (workspaceIds: readonly string[]) => RawBuilder<unknown>
  readonly isMeant?: RawBuilder<unknown>
  /** Default: each field has a placeholder for the address. */
  readonly rewrite?: (fields: Fields, email: string) => Fields
}

const inWorkspaces = (ids: readonly string[]) => sql`workspace_id in (${sql.join(ids)})`

/** Fields of a content that may mention people, all but the message itself. */
const CONTENT_FIELDS = [
  ...['from_address', 'from_name', 'reply_to', 'subject', 'tags', 'submitter', 'dsn_envid'],
  ...['addressees', 'headers', 'attachments', 'merging'],
]

/** Whether mail may still be made of a content: then it stays as it was accepted, and a campaign or automation as it was written. */
const isInUse = sql`(exists (select 1 from queue where queue.content_id = message_contents.id)
  or exists (select 1 from campaigns where campaigns.id = message_contents.campaign_id and campaigns.finished_at is null)
  or exists (select 1 from automation_mails where automation_mails.content_id = message_contents.id))`

const CONTENTS = {
  table: 'message_contents',
  key: 'id',
  columns: CONTENT_FIELDS,
  owner: inWorkspaces,
} as const

export const REWRITTEN: readonly RewrittenTable[] = [
  { ...CONTENTS, isMeant: sql`not ${isInUse}`, rewrite: contentWithout },
  {
    table: 'messages',
    key: 'id',
    columns: ['merge_data', 'dsn_orcpt'],
    owner: inWorkspaces,
    isMeant: sql`not exists (select 1 from queue where queue.message_id = messages.id)`,
  },
  {
    table: 'attempts',
    key: 'seq',
    columns: ['summary', 'tried'],
    owner: ids => sql`message_id in (select id from messages where ${inWorkspaces(ids)})`,
  },
  {
    table: 'captured_mails',
    key: 'seq',
    columns: ['envelope_sender', 'subject'],
    owner: ids => sql`message_id in (select id from messages where ${inWorkspaces(ids)})`,
  },
  { table: 'bounces', key: 'id', columns: ['diagnostic_code'], owner: inWorkspaces },
  { table: 'domain_denials', key: 'seq', columns: ['verdict'], owner: inWorkspaces },
  { table: 'opt_ins', key: 'id', columns: ['fields'], owner: inWorkspaces },
  { table: 'conversions', key: 'id', columns: ['metadata'], owner: inWorkspaces },
  { table: 'product_views', key: 'seq', columns: ['product_id', 'product'], owner: inWorkspaces },
  { table: 'automation_runs', key: 'seq', columns: ['trigger_data', 'error'], owner: inWorkspaces },
  {
    table: 'automation_run_steps',
    key: 'seq',
    columns: ['detail'],
    owner: ids => sql`run in (select seq from automation_runs where ${inWorkspaces(ids)})`,
  },
]

/** Contents that keep the address until no more mail is made of them. */
export const CONTENTS_IN_USE = searched({ ...CONTENTS, isMeant: isInUse })

/** How rows that may mention a person are found. */
export function searched({ table, key, columns, owner, isMeant }: RewrittenTable): MentionTable {
  const texts = columns.map(column => sql`coalesce(${sql.ref(column)}, '')`)
  return {
    name: table,
    from: sql.table(table),
    key,
    text: sql<string>`${sql.join(texts, sql` || ' ' || `)}`,
    owner,
    ...(isMeant ? { isMeant } : {}),
  }
}

/** Read again in the transaction: it may have changed since it was found. */
export async function rewriteRow(
  db: Queries,
  { table, key, columns, rewrite = fieldsWithout }: RewrittenTable,
  value: string | number,
  email: string,
): Promise<void> {
  const { rows } = await sql<Fields>`
    select ${sql.join(columns.map(column => sql.ref(column)))} from ${sql.table(table)}
    where ${sql.ref(key)} = ${value}`.execute(db)
  const [fields] = rows
  if (!fields) return
  const changed = Object.entries(rewrite(fields, email)).filter(([column, text]) => text !== fields[column])
  if (changed.length === 0) return
  await sql`
    update ${sql.table(table)}
    set ${sql.join(changed.map(([column, text]) => sql`${sql.ref(column)} = ${text}`))}
    where ${sql.ref(key)} = ${value}`.execute(db)
}

function fieldsWithout(fields: Fields, email: string): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([column, text]) => [column, text && withoutAddress(text, email)]),
  )
}

/** Names beside the address go with it. */
function contentWithout(fields: Fields, email: string): Fields {
  const { from_address: from, reply_to: replyTo, headers, addressees } = fields
  const isNamed = (text: string | null | undefined): text is string =>
    typeof text === 'string' && withoutAddress(text, email) !== text
  return {
    ...fieldsWithout(fields, email),
    ...(isNamed(from) ? { from_name: null } : {}),
    ...(isNamed(replyTo) ? { reply_to: null } : {}),
    ...(isNamed(headers) ? { headers: headersWithout(headers, email) } : {}),
    ...(isNamed(addressees) ? { addressees: withoutAddressee(addressees, email) } : {}),
  }
}

/** @param json {name, value}[] */
function headersWithout(json: string, email: string): string {
  const fields = JSON.parse(json) as { readonly name: string; readonly value: string }[]
  return JSON.stringify(
    fields.map(({ name, value }) => ({
      name,
      value: withoutAddress(value, email) === value ? value : PLACEHOLDER,
    })),
  )
}

type Addressee = string | { readonly address: string }

/** @param json as `content-store.ts` writes it */
export function withoutAddressee(json: string, email: string): string {
  const { to, cc, ...rest } = JSON.parse(json) as { to: Addressee[]; cc: Addressee[] }
  const isOther = (one: Addressee) =>
    (typeof one === 'string' ? one : one.address).toLowerCase() !== email.toLowerCase()
  const left = to.filter(isOther)
  return JSON.stringify({ ...rest, to: left.length > 0 ? left : [PLACEHOLDER], cc: cc.filter(isOther) })
}

/** Statistics by tag, where a tag names the person: they are counted with those of all further tags. */
export async function namedCounters(
  db: Queries,
  workspaceIds: readonly string[],
  isNamed: (text: string) => boolean,
): Promise<CounterKey[]> {
  const rows = await db
    .selectFrom('daily_group_counters')
    .select(['workspace_id', 'dimension', 'day', 'value'])
    .where('workspace_id', 'in', workspaceIds)
    .where('dimension', '=', 'tag')
    .where(sql<boolean>`value like '%@%' or value like '%!%40%' escape '!'`)
    .execute()
  return rows.filter(({ value }) => isNamed(value))
}

export interface CounterKey {
  readonly workspace_id: string
  readonly dimension: Tables['daily_group_counters']['dimension']
  readonly day: number
  readonly value: string
}

export async function mergeCounter(db: Queries, key: CounterKey): Promise<void> {
  const { workspace_id: workspaceId, dimension, day, value } = key
  const row = await db
    .selectFrom('daily_group_counters')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('dimension', '=', dimension)
    .where('day', '=', day)
    .where('value', '=', value)
    .executeTakeFirst()
  if (!row) return
  const { workspace_id: _, dimension: __, day: ___, value: ____, ...counts } = row
  await addToGroups(db, [{ workspaceId, dimension, day, value: OTHER_VALUES, counts }])
  await mergeQuarters(db, key)
  await db
    .deleteFrom('daily_group_counters')
    .where('workspace_id', '=', workspaceId)
    .where('dimension', '=', dimension)
    .where('day', '=', day)
    .where('value', '=', value)
    .execute()
}

/** The counters by quarter hour are a part of the daily ones. */
async function mergeQuarters(
  db: Queries,
  { workspace_id: workspaceId, day, value }: CounterKey,
): Promise<void> {
  const named = await takeQuarters(db, { workspaceId, dimension: 'tag', day, value })
  await addToQuarters(
    db,
    named.map(quarter => ({ ...quarter, value: OTHER_VALUES })),
  )
}
