/**
 * SQL for erasing a person: rows found by address or contact.
 *
 * Used by `erase.ts`. Scans run on the slow reader, so that the writer only deletes by key.
 */
import { sql } from 'kysely'
import { deleteContactRows } from '../../audience/contacts/contact-store.js'
import { applyCounts, CountChange } from '../../audience/audience-store.js'
import { deletePairsOf, recount } from '../../audience/pair-store.js'
import { deleteRuns } from '../../automations/runs/bulk-run-store.js'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import type { Tables } from '../../db/tables.js'
import { recipientBucket } from '../../messages/message-store.js'
import { deletePartsOf } from '../../messages/retention-store.js'

export interface Subject {
  /** Including their sandboxes. */
  readonly workspaceIds: readonly string[]
  /** As normalised by `normalizedAddress`. */
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

/** Includes deleted contacts that can still be restored. */
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

/** Removes them from lists, counts and pages, as a deletion does; the rows stay until `eraseContacts`. @param at ms since epoch UTC */
export async function hideContacts(db: Queries, contacts: readonly ContactKey[], at: number): Promise<void> {
  for (const { seq, audience, subscribed, is_bounced: bounced, deleted_at: deletedAt } of contacts) {
    if (deletedAt !== null) continue
    const change = new CountChange()
    change.remove({ subscribed: subscribed === 1, bounced: bounced === 1 })
    await recount(db, [seq], -1)
    await applyCounts(db, audience, change)
    await db.updateTable('contacts').set({ deleted_at: at }).where('seq', '=', seq).execute()
  }
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
  readonly contentId: string
  readonly isQueued: boolean
  /** Its content may have rows in `message_parts`. */
  readonly hasParts: boolean
}

/** Messages of a workspace, in id order. */
export async function messagesToErase(
  db: Queries,
  {
    workspaceId,
    email,
    after,
  }: { readonly workspaceId: string; readonly email: string; readonly after: string },
  limit: number,
): Promise<ErasedMessage[]> {
  const rows = await db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .leftJoin('queue', 'queue.message_id', 'messages.id')
    .select(['messages.id', 'messages.content_id', 'queue.message_id as queued_id'])
    .select(e => e.or([e('raw_size', 'is not', null), e('attachments', 'is not', null)]).as('has_parts'))
    .where('messages.workspace_id', '=', workspaceId)
    .where('recipient_bucket', '=', recipientBucket(email))
    .where(sql<boolean>`lower(messages.recipient) = ${email}`)
    .where('messages.id', '>', after)
    .orderBy('messages.id')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    id: row.id,
    contentId: row.content_id,
    isQueued: row.queued_id !== null,
    hasParts: Boolean(row.has_parts),
  }))
}

/** Whether one of the messages is to the person. */
export async function messagesAmong(
  db: Queries,
  { workspaceIds, email }: Subject,
  ids: readonly string[],
): Promise<boolean> {
  if (ids.length === 0) return false
  const row = await db
    .selectFrom('messages')
    .select('id')
    .where('id', 'in', ids)
    .where('workspace_id', 'in', workspaceIds)
    .where(sql<boolean>`lower(recipient) = ${email}`)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Those still queued: they need a final event, since campaigns count it. */
export async function queuedOf(db: Queries, ids: readonly string[]): Promise<string[]> {
  const rows = await db.selectFrom('queue').select('message_id').where('message_id', 'in', ids).execute()
  return rows.map(row => row.message_id)
}

/** Also deletes queue rows, attempts and captured copies. */
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

export async function capturedOf(
  db: Queries,
  ids: readonly string[],
): Promise<{ readonly seq: number; readonly messageId: string }[]> {
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('captured_mails')
    .select(['seq', 'message_id'])
    .where('message_id', 'in', ids)
    .execute()
  return rows.map(row => ({ seq: row.seq, messageId: row.message_id }))
}

/** Parts of 256 KB deleted in one step. */
const PARTS_AT_ONCE = 16

/** Deletes some parts of a content that only these messages have. @returns whether there may be more */
export async function eraseContentParts(
  db: Queries,
  contentId: string,
  messageIds: readonly string[],
): Promise<boolean> {
  const other = await db
    .selectFrom('messages')
    .select('id')
    .where('content_id', '=', contentId)
    .where('id', 'not in', messageIds)
    .limit(1)
    .executeTakeFirst()
  return other === undefined && (await deletePartsOf(db, contentId, PARTS_AT_ONCE)) === PARTS_AT_ONCE
}

/** Deletes a content without messages. @returns whether it did */
export async function eraseContent(db: Queries, contentId: string): Promise<boolean> {
  const other = await db
    .selectFrom('messages')
    .select('id')
    .where('content_id', '=', contentId)
    .limit(1)
    .executeTakeFirst()
  if (other) return false
  await db.deleteFrom('message_parts').where('content_id', '=', contentId).execute()
  await db.deleteFrom('contents_ahead').where('content_id', '=', contentId).execute()
  await db.deleteFrom('message_contents').where('id', '=', contentId).execute()
  return true
}

/** Fields of a content that name its recipients, as JSON. */
interface RecipientTexts {
  readonly addressees: string | null
  readonly merging: string | null
}

export async function recipientsOf(db: Queries, contentId: string): Promise<RecipientTexts | undefined> {
  return db
    .selectFrom('message_contents')
    .select(['addressees', 'merging'])
    .where('id', '=', contentId)
    .executeTakeFirst()
}

export async function rewriteRecipients(
  db: Queries,
  contentId: string,
  texts: RecipientTexts,
): Promise<void> {
  await db.updateTable('message_contents').set(texts).where('id', '=', contentId).execute()
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
  if (table === 'automation_runs') {
    await deleteRuns(db, keys.map(Number))
    return
  }
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

/** Every workspace and sandbox. @param workspaceId only this one and its sandbox */
export async function ownersOf(db: Queries, workspaceId?: string): Promise<string[]> {
  const sandboxes = await db
    .selectFrom('sandboxes')
    .select('id')
    .$if(workspaceId !== undefined, query =>
      query.where('workspace_id', '=', must(workspaceId, 'workspaceId')),
    )
    .execute()
  const all = workspaceId === undefined ? await db.selectFrom('workspaces').select('id').execute() : []
  return [
    ...(workspaceId === undefined ? all.map(({ id }) => id) : [workspaceId]),
    ...sandboxes.map(({ id }) => id),
  ]
}

/** Addresses of people in a restored database, table by table. */
export const KNOWN_BY: readonly (readonly [table: keyof Tables, column: string])[] = [
  ['contacts', 'email'],
  ['messages', 'recipient'],
  ['suppressions', 'email'],
  ['bounces', 'email'],
  ['opt_ins', 'email'],
  ['automation_runs', 'contact_email'],
  ['domain_denials', 'email'],
]

/** Addresses after the given one, in order. */
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
