/**
 * SQL for erasing a person: rows found by address or contact, and rows that only mention the address in text.
 *
 * Called by `erase.ts`. Whatever takes a scan is looked for on the slow reader, so that the writer only deletes by key.
 */
import { sql, type RawBuilder } from 'kysely'
import { deleteContactRows } from '../../audience/contacts/contact-store.js'
import { applyCounts, CountChange } from '../../audience/audience-store.js'
import { deletePairsOf, recount } from '../../audience/pair-store.js'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import type { Tables } from '../../db/tables.js'
import { recipientBucket } from '../../messages/message-store.js'
import { deletePartsOf } from '../../messages/retention-store.js'

/** Whose data goes. */
export interface Subject {
  /** With their sandboxes. */
  readonly workspaceIds: readonly string[]
  /** As `normalizedAddress` writes it. */
  readonly email: string
  readonly contactIds: readonly string[]
}

interface ContactKey {
  readonly seq: number
  readonly id: string
  readonly audience: number
  readonly subscribed: 0 | 1
  readonly is_bounced: 0 | 1
  readonly deleted_at: number | null
}

/** Also deleted ones that can still be restored. */
export async function contactsToErase(
  db: Queries,
  workspaceIds: readonly string[],
  email: string,
): Promise<ContactKey[]> {
  const audiences = db.selectFrom('audiences').select('seq').where('workspace_id', 'in', workspaceIds)
  const contacts = db
    .selectFrom('contacts')
    .select(['seq', 'id', 'audience', 'subscribed', 'is_bounced', 'deleted_at'])
    .where('email', '=', email)
    .where('audience', 'in', audiences)
  const live = await contacts.where('deleted_at', 'is', null).execute()
  return [...live, ...(await contacts.where('deleted_at', 'is not', null).execute())]
}

export async function eraseContacts(db: Queries, contacts: readonly ContactKey[]): Promise<void> {
  for (const { seq, audience, subscribed, is_bounced: bounced, deleted_at: deletedAt } of contacts) {
    if (deletedAt === null) {
      const change = new CountChange()
      change.remove({ subscribed: subscribed === 1, bounced: bounced === 1 })
      await recount(db, [seq], -1)
      await applyCounts(db, audience, change)
    }
    await db.deleteFrom('automation_members').where('contact', '=', seq).execute()
    await deletePairsOf(db, [seq])
    await deleteContactRows(db, [seq])
  }
}

export interface ErasedMessage {
  readonly id: string
  readonly content_id: string
}

/** The next ones, queued or not. */
export async function messagesToErase(
  db: Queries,
  subject: Subject,
  limit: number,
): Promise<ErasedMessage[]> {
  return db
    .selectFrom('messages')
    .select(['id', 'content_id'])
    .where('workspace_id', 'in', subject.workspaceIds)
    .where('recipient_bucket', '=', recipientBucket(subject.email))
    .where(sql<boolean>`lower(recipient) = ${subject.email}`)
    .limit(limit)
    .execute()
}

/** Those still queued: they need a final event, since campaigns count it. */
export async function queuedOf(db: Queries, ids: readonly string[]): Promise<string[]> {
  const rows = await db.selectFrom('queue').select('message_id').where('message_id', 'in', ids).execute()
  return rows.map(row => row.message_id)
}

/** With queue rows, attempts and captured copies. */
export async function eraseMessages(
  db: Queries,
  messages: readonly ErasedMessage[],
  capturedSeqs: readonly number[],
): Promise<void> {
  const ids = messages.map(({ id }) => id)
  for (const list of inLists(capturedSeqs))
    await db.deleteFrom('captured_mails').where('seq', 'in', list).execute()
  for (const list of inLists(ids)) await db.deleteFrom('messages').where('id', 'in', list).execute()
}

export async function capturedOf(db: Queries, ids: readonly string[]): Promise<number[]> {
  const rows = await db.selectFrom('captured_mails').select('seq').where('message_id', 'in', ids).execute()
  return rows.map(({ seq }) => seq)
}

/** Of 256 KB, in one step. */
const PARTS_AT_ONCE = 16

/** Deletes a step of a content that no message has any more. @returns whether it is gone, or still somebody's */
export async function eraseContent(db: Queries, contentId: string): Promise<'gone' | 'shared' | 'more'> {
  const other = await db
    .selectFrom('messages')
    .select('id')
    .where('content_id', '=', contentId)
    .limit(1)
    .executeTakeFirst()
  if (other) return 'shared'
  if ((await deletePartsOf(db, contentId, PARTS_AT_ONCE)) === PARTS_AT_ONCE) return 'more'
  await db.deleteFrom('contents_ahead').where('content_id', '=', contentId).execute()
  await db.deleteFrom('message_contents').where('id', '=', contentId).execute()
  return 'gone'
}

/** Tables with a column for the person's address or contact. */
export interface OwnedRows {
  readonly name: string
  readonly table: keyof Tables
  readonly key: string
  readonly by: 'email' | 'contact'
  readonly column: string
}

export const OWNED: readonly OwnedRows[] = [
  { name: 'form_submissions', table: 'opt_ins', key: 'id', by: 'email', column: 'email' },
  { name: 'bounces', table: 'bounces', key: 'id', by: 'email', column: 'email' },
  { name: 'domain_denials', table: 'domain_denials', key: 'seq', by: 'email', column: 'email' },
  { name: 'conversions', table: 'conversions', key: 'id', by: 'contact', column: 'contact_id' },
  { name: 'product_views', table: 'product_views', key: 'seq', by: 'contact', column: 'contact_id' },
  { name: 'automation_runs', table: 'automation_runs', key: 'seq', by: 'email', column: 'contact_email' },
]

export async function ownedToErase(
  db: Queries,
  { table, key, by, column }: OwnedRows,
  { workspaceIds, email, contactIds }: Subject,
  limit: number,
): Promise<(string | number)[]> {
  const values = by === 'email' ? [email] : contactIds
  if (values.length === 0) return []
  const { rows } = await sql<{ key: string | number }>`
    select ${sql.ref(key)} as key from ${sql.table(table)}
    where workspace_id in (${sql.join(workspaceIds)}) and ${sql.ref(column)} in (${sql.join(values)})
    limit ${limit}`.execute(db)
  return rows.map(row => row.key)
}

export async function eraseOwned(
  db: Queries,
  { table, key }: OwnedRows,
  keys: readonly (string | number)[],
): Promise<void> {
  if (keys.length === 0) return
  if (table === 'automation_runs')
    await sql`delete from automation_run_steps where run in (${sql.join(keys)})`.execute(db)
  await sql`delete from ${sql.table(table)} where ${sql.ref(key)} in (${sql.join(keys)})`.execute(db)
}

export async function eraseEntries(db: Queries, { workspaceIds, contactIds }: Subject): Promise<void> {
  if (contactIds.length === 0) return
  await db
    .deleteFrom('automation_entries')
    .where('contact_id', 'in', contactIds)
    .where('automation', 'in', e =>
      e.selectFrom('automations').select('seq').where('workspace_id', 'in', workspaceIds),
    )
    .execute()
}

/** A row whose text may mention the person. */
export interface Mention {
  readonly key: string | number
  /** A second column of the key, where there is one. */
  readonly part: string | number | null
  readonly text: string
}

/** Tables whose text mentions people, walked along their key. */
export interface MentionTable {
  readonly name: string
  readonly from: RawBuilder<unknown>
  readonly key: string
  readonly part?: string
  readonly text: RawBuilder<string>
  /** Which rows are the workspaces'; left out where the table does not say. */
  readonly owner?: (workspaceIds: readonly string[]) => RawBuilder<unknown>
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
  activity: {
    name: 'activity',
    from: sql`activities`,
    key: 'seq',
    text: sql<string>`subject || ' ' || details`,
    owner: inWorkspaces,
  },
  rejections: {
    name: 'import_rejections',
    from: sql`contact_import_rejections`,
    key: 'import',
    part: 'line',
    text: sql<string>`cells || ' ' || reason`,
    owner: ids => sql`import in (select seq from contact_imports where workspace_id in (${sql.join(ids)}))`,
  },
  deliveries: {
    name: 'webhook_deliveries',
    from: sql`webhook_deliveries inner join webhook_payloads on webhook_payloads.event_seq = webhook_deliveries.event_seq`,
    key: 'id',
    part: 'webhook_payloads.event_seq',
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

/** The next rows that may mention one of the words. @param after key of the last one seen */
export async function mentionsAfter(
  db: Queries,
  { from, key, part, text, owner }: MentionTable,
  workspaceIds: readonly string[],
  words: readonly string[],
  after: string | number | undefined,
  limit: number,
): Promise<Mention[]> {
  const isMentioned = sql.join(
    words.map(word => sql`lower(${text}) like ${`%${likeText(word)}%`} escape '!'`),
    sql` or `,
  )
  const { rows } = await sql<Mention>`
    select ${sql.ref(key)} as key, ${part === undefined ? sql`null` : sql.ref(part)} as part, ${text} as text
    from ${from}
    where (${isMentioned}) ${owner ? sql`and ${owner(workspaceIds)}` : sql``}
      ${after === undefined ? sql`` : sql`and ${sql.ref(key)} > ${after}`}
    order by ${sql.ref(key)} limit ${limit}`.execute(db)
  return rows
}

export function likeText(word: string): string {
  return word.replace(/[!%_]/g, '!$&')
}

/** Whether a text names one of the words as a whole, not `joann@x.example` for `ann@x.example`. */
export function mentionOf(words: readonly string[]): (text: string) => boolean {
  const named = new RegExp(words.map(wholeWord).join('|'), 'iu')
  return text => named.test(text)
}

/** Also right after an escape of JSON, e.g. `\n`. */
export function wholeWord(word: string): string {
  const literal = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const before = `(?:(?<![\\p{L}\\p{N}!#$%&'*+/=?^_\`{|}~.-])|(?<=\\\\[bfnrt]))`
  return `${before}${literal}(?![\\p{L}\\p{N}-]|\\.[\\p{L}\\p{N}])`
}

export async function rewriteEvent(db: Queries, seq: number, payload: string): Promise<void> {
  await db.updateTable('events').set({ payload }).where('seq', '=', seq).execute()
  await db.deleteFrom('set_aside_events').where('seq', '=', seq).execute()
}

export async function eraseEvents(db: Queries, seqs: readonly number[]): Promise<void> {
  if (seqs.length === 0) return
  await db.deleteFrom('set_aside_events').where('seq', 'in', seqs).execute()
  await db.deleteFrom('events').where('seq', 'in', seqs).execute()
}

export async function eraseActivities(db: Queries, seqs: readonly number[]): Promise<void> {
  await db.deleteFrom('activities').where('seq', 'in', seqs).execute()
}

export async function eraseRejection(db: Queries, contactImport: number, line: number): Promise<void> {
  await db
    .deleteFrom('contact_import_rejections')
    .where('import', '=', contactImport)
    .where('line', '=', line)
    .execute()
}

export async function eraseDelivery(db: Queries, id: string, eventSeq: number): Promise<void> {
  await db.deleteFrom('webhook_attempts').where('delivery_id', '=', id).execute()
  await db.deleteFrom('webhook_deliveries').where('id', '=', id).execute()
  await db.deleteFrom('webhook_payloads').where('event_seq', '=', eventSeq).execute()
}

export async function rewriteAnswer(db: Queries, id: string, value: string): Promise<void> {
  await db.updateTable('kept_answers').set({ value }).where('id', '=', id).execute()
}

export async function eraseInbound(db: Queries, seq: number, bodyId: string): Promise<void> {
  await db.deleteFrom('inbound_parts').where('body_id', '=', bodyId).execute()
  await db.deleteFrom('inbound_mails').where('seq', '=', seq).execute()
}

/** Every workspace, and every sandbox. @param workspaceId this one and its sandbox only */
export async function ownersOf(db: Queries, workspaceId?: string): Promise<string[]> {
  const sandboxes = await db
    .selectFrom('sandboxes')
    .select('id')
    .$if(workspaceId !== undefined, query => query.where('workspace_id', '=', workspaceId ?? ''))
    .execute()
  const all = workspaceId === undefined ? await db.selectFrom('workspaces').select('id').execute() : []
  return [
    ...(workspaceId === undefined ? all.map(({ id }) => id) : [workspaceId]),
    ...sandboxes.map(({ id }) => id),
  ]
}

/** Addresses that a restored database knows people by, table by table. */
export const KNOWN_BY: readonly (readonly [table: keyof Tables, column: string])[] = [
  ['contacts', 'email'],
  ['messages', 'recipient'],
  ['suppressions', 'email'],
  ['bounces', 'email'],
  ['opt_ins', 'email'],
  ['automation_runs', 'contact_email'],
  ['domain_denials', 'email'],
]

/** Those after an address, in order. */
export async function addressesAfter(
  db: Queries,
  [table, column]: (typeof KNOWN_BY)[number],
  after: string,
  limit: number,
): Promise<string[]> {
  const { rows } = await sql<{ address: string }>`
    select distinct lower(${sql.ref(column)}) as address from ${sql.table(table)}
    where lower(${sql.ref(column)}) > ${after} order by 1 limit ${limit}`.execute(db)
  return rows.map(({ address }) => address)
}
