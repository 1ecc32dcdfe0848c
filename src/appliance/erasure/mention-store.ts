/**
 * SQL for rows that mention an erased person in text: searched on the slow reader, range by range, then deleted or rewritten by key. Used
 * by `erase.ts`.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../../db/database.js'
import { likeText } from '../../db/folded-words.js'

/** A row whose text may mention the person. */
export interface Mention {
  readonly key: string | number
  /** Second column of the key, if it has one. */
  readonly part: string | number | null
  readonly text: string
}

/** Tables whose text mentions people, scanned in key order. */
export interface MentionTable {
  readonly name: string
  readonly from: RawBuilder<unknown>
  readonly key: string
  readonly part?: string
  readonly text: RawBuilder<string>
  /** Condition for rows of the workspaces; absent if the table has no workspace. */
  readonly owner?: (workspaceIds: readonly string[]) => RawBuilder<unknown>
  /** Condition for rows to search; absent for all. */
  readonly isMeant?: RawBuilder<unknown>
}

const inWorkspaces = (ids: readonly string[]) => sql`workspace_id in (${sql.join(ids)})`

export const MENTIONS = {
  events: {
    name: 'events',
    from: sql`events`,
    key: 'seq',
    text: sql<string>`payload`,
    owner: inWorkspaces,
  },
  /** Copies of events, which the log may have deleted meanwhile. No owner column: see `workspaceId` in the copy. */
  setAside: {
    name: 'set_aside_events',
    from: sql`set_aside_events`,
    key: 'seq',
    part: 'event',
    text: sql<string>`event || ' ' || error`,
  },
  activity: {
    name: 'activity',
    from: sql`activities`,
    key: 'seq',
    text: sql<string>`subject || ' ' || details || ' ' || changes`,
    owner: inWorkspaces,
  },
  batches: {
    name: 'email_batches',
    from: sql`email_batches`,
    key: 'id',
    text: sql<string>`errors`,
    owner: inWorkspaces,
  },
  deliveries: {
    name: 'webhook_deliveries',
    from: sql`webhook_deliveries inner join webhook_payloads on webhook_payloads.seq = webhook_deliveries.payload`,
    key: 'id',
    part: 'webhook_payloads.seq',
    text: sql<string>`body`,
    owner: ids =>
      sql`subscription_id in (select id from webhook_subscriptions where workspace_id in (${sql.join(ids)}))`,
  },
  answers: { name: 'idempotency_results', from: sql`kept_answers`, key: 'id', text: sql<string>`value` },
  inbound: {
    name: 'inbound_mails',
    from: sql`inbound_mails`,
    key: 'seq',
    part: 'body_id',
    text: sql<string>`envelope_sender || ' ' || recipients || ' ' || coalesce(findings, '')`,
  },
} as const satisfies Readonly<Record<string, MentionTable>>

/** Rows that an import rejected. @param contactImport its `seq` */
export function rejectionsOf(contactImport: number): MentionTable {
  return {
    name: 'import_rejections',
    from: sql`(select * from contact_import_rejections where import = ${contactImport}) as rejections`,
    key: 'line',
    text: sql<string>`cells || ' ' || reason`,
  }
}

export async function importsOf(db: Queries, workspaceIds: readonly string[]): Promise<number[]> {
  const rows = await db
    .selectFrom('contact_imports')
    .select('seq')
    .where('workspace_id', 'in', workspaceIds)
    .where('rejected', '>', 0)
    .execute()
  return rows.map(({ seq }) => seq)
}

/** @returns the key `count` rows further on; undefined if fewer are left */
export async function keyAtDistance(
  db: Queries,
  { from, key, isMeant }: MentionTable,
  after: string | number | undefined,
  rows: number,
): Promise<string | number | undefined> {
  const found = await sql<{ key: string | number }>`
    select ${sql.ref(key)} as key from ${from} where ${isMeant ?? sql`1 = 1`}
      ${after === undefined ? sql`` : sql`and ${sql.ref(key)} > ${after}`}
    order by ${sql.ref(key)} limit 1 offset ${rows - 1}`.execute(db)
  return found.rows[0]?.key
}

/** Whether a text may mention a word. SQLite folds only ASCII, so other characters match any; what is found is checked again. */
export function mentions(text: RawBuilder<string>, word: string): RawBuilder<boolean> {
  const pattern = likeText(word.toLowerCase()).replace(/[^\0-\x7f]/gu, '_')
  return sql<boolean>`lower(${text}) like ${`%${pattern}%`} escape '!'`
}

/** Rows that may mention one of the words, in key order. @param between exclusive start and inclusive end key; undefined is unbounded */
export async function mentionsBetween(
  db: Queries,
  { from, key, part, text, owner, isMeant }: MentionTable,
  { workspaceIds, words }: { readonly workspaceIds: readonly string[]; readonly words: readonly string[] },
  { after, end }: Readonly<Record<'after' | 'end', string | number | undefined>>,
  limit: number,
): Promise<Mention[]> {
  const isMentioned = sql.join(
    words.map(word => mentions(text, word)),
    sql` or `,
  )
  const { rows } = await sql<Mention>`
    select ${sql.ref(key)} as key, ${part === undefined ? sql`null` : sql.ref(part)} as part, ${text} as text
    from ${from}
    where (${isMentioned}) and ${isMeant ?? sql`1 = 1`} ${owner ? sql`and ${owner(workspaceIds)}` : sql``}
      ${after === undefined ? sql`` : sql`and ${sql.ref(key)} > ${after}`}
      ${end === undefined ? sql`` : sql`and ${sql.ref(key)} <= ${end}`}
    order by ${sql.ref(key)} limit ${limit}`.execute(db)
  return rows
}

/** Texts of all rows, in key order, to look for addresses in. */
export async function textsAfter(
  db: Queries,
  { from, key, text }: MentionTable,
  after: string | number | undefined,
  limit: number,
): Promise<{ readonly key: string | number; readonly text: string }[]> {
  const { rows } = await sql<{ key: string | number; text: string }>`
    select ${sql.ref(key)} as key, ${text} as text from ${from}
    ${after === undefined ? sql`` : sql`where ${sql.ref(key)} > ${after}`}
    order by ${sql.ref(key)} limit ${limit}`.execute(db)
  return rows
}

export async function rewriteEvent(db: Queries, seq: number, payload: string): Promise<void> {
  await db.updateTable('events').set({ payload }).where('seq', '=', seq).execute()
  await eraseSetAside(db, seq)
}

export async function eraseEvent(db: Queries, seq: number): Promise<void> {
  await eraseSetAside(db, seq)
  await db.deleteFrom('events').where('seq', '=', seq).execute()
}

/** For all consumers. */
export async function eraseSetAside(db: Queries, seq: number): Promise<void> {
  await db.deleteFrom('set_aside_events').where('seq', '=', seq).execute()
}

export async function eraseActivity(db: Queries, seq: number): Promise<void> {
  await db.deleteFrom('activities').where('seq', '=', seq).execute()
}

export async function rewriteBatchErrors(db: Queries, id: string, errors: string): Promise<void> {
  await db.updateTable('email_batches').set({ errors }).where('id', '=', id).execute()
}

export async function eraseRejection(db: Queries, contactImport: number, line: number): Promise<void> {
  await db
    .deleteFrom('contact_import_rejections')
    .where('import', '=', contactImport)
    .where('line', '=', line)
    .execute()
}

export async function eraseDeliveries(db: Queries, id: string, payload: number): Promise<void> {
  await db.deleteFrom('webhook_attempts').where('delivery_id', '=', id).execute()
  await db.deleteFrom('webhook_deliveries').where('id', '=', id).execute()
  await db.deleteFrom('webhook_payloads').where('seq', '=', payload).execute()
}

export async function rewriteAnswer(db: Queries, id: string, value: string): Promise<void> {
  await db.updateTable('kept_answers').set({ value }).where('id', '=', id).execute()
}

export async function eraseInbound(db: Queries, seq: number, bodyId: string): Promise<void> {
  await db.deleteFrom('inbound_parts').where('body_id', '=', bodyId).execute()
  await db.deleteFrom('inbound_mails').where('seq', '=', seq).execute()
}
