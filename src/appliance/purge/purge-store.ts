/**
 * SQL for purging removed workspaces, a few rows at a time.
 *
 * Used by `purge-workspaces.ts`, which walks the tables in order. Steps keep no progress: after a crash the next run finds the remaining
 * rows. The workspace itself is deleted last.
 */
import { sql, type RawBuilder } from 'kysely'
import { deletePairsOf } from '../../audience/pair-store.js'
import { contactsOf } from '../../audience/audience-store.js'
import { deleteContactRows } from '../../audience/contacts/contact-store.js'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import { TotalsChange } from '../../messages/mail-totals-store.js'
import { deletePartsOf } from '../../messages/retention-store.js'
import type { ChildTable, OwnTable } from './owned-tables.js'

/** A workspace and its sandbox; rows of either belong to it. */
export type OwnerIds = readonly string[]

/** Workspaces removed before the given moment, or whose purge has begun. */
export async function listPurgeable(db: Queries, before: number): Promise<string[]> {
  const rows = await db
    .selectFrom('workspaces')
    .select('id')
    .where('deleted_at', 'is not', null)
    .where('deleted_at', '<', before)
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Marks the purge as begun, so that the workspace cannot be restored. @returns ids that its rows may refer to */
export async function beginPurge(db: Queries, workspaceId: string): Promise<OwnerIds> {
  await db.updateTable('workspaces').set({ deleted_at: 0 }).where('id', '=', workspaceId).execute()
  const sandboxes = await db
    .selectFrom('sandboxes')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .execute()
  return [workspaceId, ...sandboxes.map(({ id }) => id)]
}

/** Deletes the workspace once nothing refers to it. */
export async function endPurge(db: Queries, workspaceId: string): Promise<void> {
  await db.deleteFrom('sandboxes').where('workspace_id', '=', workspaceId).execute()
  await db.deleteFrom('workspaces').where('id', '=', workspaceId).execute()
}

/** @returns how many were deleted, at most `limit` */
export async function deleteIndexed(
  db: Queries,
  { table, key, owner = 'workspace_id' }: OwnTable,
  ids: OwnerIds,
  limit: number,
): Promise<number> {
  return deleteFound(db, table, key, sql`${sql.ref(owner)} in (${sql.join(ids)})`, limit)
}

export async function deleteChildren(
  db: Queries,
  { table, key, column, parent, parentKey }: ChildTable,
  ids: OwnerIds,
  limit: number,
): Promise<number> {
  const parents = sql`select ${sql.ref(parentKey)} from ${sql.table(parent)} where workspace_id in (${sql.join(ids)})`
  return deleteFound(db, table, key, sql`${sql.ref(column)} in (${parents})`, limit)
}

/** @param found condition @returns how many were deleted, at most `limit` */
export async function deleteFound(
  db: Queries,
  table: string,
  key: readonly string[],
  found: RawBuilder<unknown>,
  limit: number,
): Promise<number> {
  const columns = sql.join(key.map(column => sql.ref(column)))
  const result = await sql`
    delete from ${sql.table(table)} where (${columns}) in (
      select ${columns} from ${sql.table(table)} where ${found} limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

export interface Scanned<ScanKey> {
  readonly removed: number
  /** Key of the last row examined; undefined at the end of the table. */
  readonly next: ScanKey | undefined
}

/** A key before the first row, of whatever type. */
export type ScanKey = string | number

interface Found {
  /** Keys of the rows that belong to the owner. */
  readonly places: readonly ScanKey[]
  readonly next: ScanKey | undefined
}

/** Examines rows in key order. @param after key of the last row examined */
async function findTheirs(
  db: Queries,
  { table, key: [key = 'id'], owner = 'workspace_id' }: OwnTable,
  ids: OwnerIds,
  after: ScanKey | undefined,
  limit: number,
): Promise<Found> {
  const { rows } = await sql<{ place: ScanKey; owner: string | null }>`
    select ${sql.ref(key)} as place, ${sql.ref(owner)} as owner from ${sql.table(table)}
    ${after === undefined ? sql`` : sql`where ${sql.ref(key)} > ${after}`}
    order by ${sql.ref(key)} limit ${limit}`.execute(db)
  const theirs = rows.filter(row => row.owner !== null && ids.includes(row.owner))
  return { places: theirs.map(({ place }) => place), next: rows.at(-1)?.place }
}

/** Deletes rows of a table without an index by workspace. @param after key of the last row examined */
export async function deleteScanned(
  db: Queries,
  owned: OwnTable,
  ids: OwnerIds,
  after: ScanKey | undefined,
  limit: number,
): Promise<Scanned<ScanKey>> {
  const {
    table,
    key: [key = 'id'],
  } = owned
  const { places, next } = await findTheirs(db, owned, ids, after, limit)
  if (places.length > 0)
    await sql`delete from ${sql.table(table)} where ${sql.ref(key)} in (${sql.join(places)})`.execute(db)
  return { removed: places.length, next }
}

/** Also deletes their set-aside entries. */
export async function deleteEvents(
  db: Queries,
  ids: OwnerIds,
  after: ScanKey | undefined,
  limit: number,
): Promise<Scanned<ScanKey>> {
  const { places, next } = await findTheirs(db, { table: 'events', key: ['seq'] }, ids, after, limit)
  const theirs = places.map(Number)
  if (theirs.length > 0) {
    await db.deleteFrom('set_aside_events').where('seq', 'in', theirs).execute()
    await db.deleteFrom('events').where('seq', 'in', theirs).execute()
  }
  return { removed: theirs.length, next }
}

/** Copies in the local inbox, deleted while their messages still exist. */
export async function deleteCaptured(
  db: Queries,
  ids: OwnerIds,
  after: ScanKey | undefined,
  limit: number,
): Promise<Scanned<ScanKey>> {
  const rows = await db
    .selectFrom('captured_mails')
    .leftJoin('messages', 'messages.id', 'captured_mails.message_id')
    .select(['captured_mails.seq', 'messages.workspace_id'])
    .where('captured_mails.seq', '>', Number(after ?? 0))
    .orderBy('captured_mails.seq')
    .limit(limit)
    .execute()
  const theirs = rows.filter(row => ids.includes(row.workspace_id ?? '')).map(({ seq }) => seq)
  if (theirs.length > 0) await db.deleteFrom('captured_mails').where('seq', 'in', theirs).execute()
  return { removed: theirs.length, next: rows.at(-1)?.seq }
}

/** Also deletes their queue rows and attempts. @returns how many messages, at most `limit` */
export async function deleteMessagesOf(db: Queries, ids: OwnerIds, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('messages')
    .select('id')
    .where('workspace_id', 'in', ids)
    .limit(limit)
    .execute()
  for (const list of inLists(rows.map(({ id }) => id))) {
    await uncountQueued(db, list)
    await db.deleteFrom('messages').where('id', 'in', list).execute()
  }
  return rows.length
}

/** Queued mail is deleted before its workspace's totals, which must agree with the queue until then. */
async function uncountQueued(db: Queries, messageIds: readonly string[]): Promise<void> {
  const queued = await db
    .selectFrom('queue')
    .select('workspace_id')
    .where('message_id', 'in', messageIds)
    .execute()
  const change = new TotalsChange()
  for (const row of queued) change.accepted(row.workspace_id, -1)
  await change.write(db)
}

/** Parts of 256 KB deleted in one step. */
const PARTS_AT_ONCE = 16

/** Deletes contents without messages, parts first; a content with many parts takes several steps. */
export async function deleteContents(
  db: Queries,
  ids: OwnerIds,
  after: ScanKey | undefined,
  limit: number,
): Promise<Scanned<ScanKey>> {
  const { places, next } = await findTheirs(db, { table: 'message_contents', key: ['id'] }, ids, after, limit)
  const theirs = places.map(String)
  let [parts, removed, last] = [PARTS_AT_ONCE, 0, after]
  for (const id of theirs.length === 0 ? [] : await unused(db, theirs)) {
    parts -= await deletePartsOf(db, id, parts)
    if (parts <= 0) return { removed, next: last ?? '' }
    await db.deleteFrom('contents_ahead').where('content_id', '=', id).execute()
    await db.deleteFrom('message_contents').where('id', '=', id).execute()
    ;[removed, last] = [removed + 1, id]
  }
  return { removed, next }
}

/** In id order. */
async function unused(db: Queries, contentIds: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('message_contents')
    .select('id')
    .where('id', 'in', contentIds)
    .where(e =>
      e.not(
        e.exists(e.selectFrom('messages').select('id').whereRef('content_id', '=', 'message_contents.id')),
      ),
    )
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Also deletes their attributes and search entries. */
export async function deleteContactsOf(db: Queries, ids: OwnerIds, limit: number): Promise<number> {
  const audiences = await db.selectFrom('audiences').select('seq').where('workspace_id', 'in', ids).execute()
  for (const { seq } of audiences) {
    const { first, last } = contactsOf(seq)
    const rows = await db
      .selectFrom('contacts')
      .select('seq')
      .where('seq', '>=', first)
      .where('seq', '<=', last)
      .orderBy('seq')
      .limit(limit)
      .execute()
    const seqs = rows.map(row => row.seq)
    await deletePairsOf(db, seqs)
    await deleteContactRows(db, seqs)
    if (seqs.length > 0) return seqs.length
  }
  return 0
}

/** Also deletes their steps. */
export async function deleteRunsOf(db: Queries, ids: OwnerIds, limit: number): Promise<number> {
  const seqs = await listOfAutomations(db, 'automation_runs', ids, limit)
  for (const list of inLists(seqs)) {
    await db.deleteFrom('automation_run_steps').where('run', 'in', list).execute()
    await db.deleteFrom('automation_runs').where('seq', 'in', list).execute()
  }
  return seqs.length
}

/** Also deletes the mail generated from them. */
export async function deleteStepsOf(db: Queries, ids: OwnerIds, limit: number): Promise<number> {
  const seqs = await listOfAutomations(db, 'automation_steps', ids, limit)
  for (const list of inLists(seqs)) {
    await db.deleteFrom('automation_mails').where('step', 'in', list).execute()
    await db.deleteFrom('automation_step_counts').where('step', 'in', list).execute()
    await db.deleteFrom('automation_steps').where('seq', 'in', list).execute()
  }
  return seqs.length
}

async function listOfAutomations(
  db: Queries,
  table: 'automation_runs' | 'automation_steps',
  ids: OwnerIds,
  limit: number,
): Promise<number[]> {
  const rows = await db
    .selectFrom(table)
    .select('seq')
    .where('automation', 'in', e =>
      e.selectFrom('automations').select('seq').where('workspace_id', 'in', ids),
    )
    .limit(limit)
    .execute()
  return rows.map(({ seq }) => seq)
}

/** Also deletes their attempts and payloads; a payload belongs to one workspace. */
export async function deleteDeliveriesOfAll(db: Queries, ids: OwnerIds, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select(['id', 'payload'])
    .where('subscription_id', 'in', e =>
      e.selectFrom('webhook_subscriptions').select('id').where('workspace_id', 'in', ids),
    )
    .limit(limit)
    .execute()
  for (const list of inLists(rows)) {
    const deliveries = list.map(({ id }) => id)
    const seqs = list.map(({ payload }) => payload)
    await db.deleteFrom('webhook_attempts').where('delivery_id', 'in', deliveries).execute()
    await db.deleteFrom('webhook_deliveries').where('id', 'in', deliveries).execute()
    await db.deleteFrom('webhook_payloads').where('seq', 'in', seqs).execute()
  }
  return rows.length
}
