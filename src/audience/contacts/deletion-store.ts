/**
 * SQL to soft-delete, restore and purge contacts in bulk.
 *
 * Counts change in the same call as the rows; list and tag pairs stay until the purge. Sweeps over all contacts record their progress in
 * `contact_sweeps` with each step, so that another process can resume them.
 */
import { sql, type Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import { findSuppressionsOf } from '../../deliverability/suppressions/suppression-store.js'
import { applyCounts, contactsOf, CountChange, type SeqRange } from '../audience-store.js'
import { deletePairsOf, recount } from '../pair-store.js'
import type { Contact } from './contact.js'
import { updateContacts, type ContactChange } from './contact-write-store.js'
import { mailStatusUnder, subscriptionUnder } from './standing.js'
import {
  CONTACT_COLUMNS,
  contactFromRow,
  contactsAfter,
  deleteContactRows,
  findContactsByEmail,
} from './contact-store.js'

interface SweepRow {
  id: string
  workspace_id: string
  is_sandbox: Flag
  kind: 'delete' | 'restore'
  position: number
  end_position: number
  changed: number
  skipped: number
  begun_at: number
  finished_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    contact_sweeps: SweepRow
  }
}

export interface Sweep {
  readonly id: string
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly kind: 'delete' | 'restore'
  /** Next contact number: deleting sweeps upwards, restoring downwards. */
  readonly position: number
  readonly endPosition: number
  readonly changed: number
  readonly skipped: number
  readonly begunAt: number
  readonly finishedAt: number | null
}

export async function insertSweep(db: Queries, sweep: Sweep): Promise<void> {
  await db.insertInto('contact_sweeps').values(toRow(sweep)).execute()
}

export async function updateSweep(db: Queries, sweep: Sweep): Promise<void> {
  await db.updateTable('contact_sweeps').set(toRow(sweep)).where('id', '=', sweep.id).execute()
}

export async function findSweep(db: Queries, id: string): Promise<Sweep | undefined> {
  const row = await db.selectFrom('contact_sweeps').selectAll().where('id', '=', id).executeTakeFirst()
  return row && fromRow(row)
}

/** Oldest first. @param workspaceId limits to one workspace */
export async function unfinishedSweeps(db: Queries, workspaceId?: string): Promise<Sweep[]> {
  let query = db.selectFrom('contact_sweeps').selectAll().where('finished_at', 'is', null)
  if (workspaceId !== undefined) query = query.where('workspace_id', '=', workspaceId)
  return (await query.orderBy('begun_at').execute()).map(fromRow)
}

/** Number of the newest contact, or the audience's first number if there is none. */
export async function newestContact(db: Queries, audience: number): Promise<number> {
  const { first, last } = contactsOf(audience)
  const row = await db
    .selectFrom('contacts')
    .select('seq')
    .where('seq', '>=', first)
    .where('seq', '<=', last)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.seq ?? first
}

const markDeleted = statement((db, { seqs, at }: { seqs: readonly number[]; at: number }) =>
  db.updateTable('contacts').set({ deleted_at: at }).where('seq', 'in', seqs),
)

/** Soft-deletes the first live contacts of a range. @returns them */
export async function softDeleteSome(
  db: Queries,
  audience: number,
  range: SeqRange,
  at: number,
  limit: number,
): Promise<Contact[]> {
  const contacts = await contactsAfter(db, range, limit)
  await softDelete(db, audience, contacts, at)
  return contacts
}

/** Their pairs stay, so that they can be restored. @param contacts live ones */
export async function softDelete(
  db: Queries,
  audience: number,
  contacts: readonly Contact[],
  at: number,
): Promise<void> {
  const seqs = contacts.map(({ seq }) => seq)
  const change = new CountChange()
  for (const contact of contacts) change.remove(contact)
  for (const list of inLists(seqs)) await markDeleted(db, { seqs: list, at })
  await recount(db, seqs, -1)
  await applyCounts(db, audience, change)
}

/** Restorable contacts, newest first. @param since earliest deletion */
export async function deletedBefore(
  db: Queries,
  range: SeqRange,
  since: number,
  limit: number,
): Promise<Contact[]> {
  const rows = await db
    .selectFrom('contacts')
    .select(CONTACT_COLUMNS)
    .where('seq', '>=', range.first)
    .where('seq', '<=', range.last)
    .where('deleted_at', '>=', since)
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute()
  return rows.map(contactFromRow)
}

/** The restorable contacts among these ids, newest first. */
export async function findDeleted(
  db: Queries,
  audience: number,
  ids: readonly string[],
  since: number,
): Promise<Contact[]> {
  const { first, last } = contactsOf(audience)
  const found: Contact[] = []
  for (const list of inLists(ids)) {
    const rows = await db
      .selectFrom('contacts')
      .select(CONTACT_COLUMNS)
      .where('id', 'in', list)
      .where('deleted_at', '>=', since)
      .execute()
    found.push(...rows.map(contactFromRow).filter(({ seq }) => seq >= first && seq <= last))
  }
  return found.sort((a, b) => b.seq - a.seq)
}

interface Back extends Readonly<Record<string, unknown>> {
  readonly seqs: readonly number[]
  readonly subscribed: Flag
  readonly suspended: Flag
  readonly at: number
}

const markRestored = statement((db, { seqs, subscribed, suspended, at }: Back) =>
  db
    .updateTable('contacts')
    .set({ deleted_at: null, updated_at: at, subscribed, is_suspended: suspended })
    .where('seq', 'in', seqs),
)

/**
 * Restores deleted contacts, except those whose address is in use again; of several with one address, the first is restored.
 * `subscribed` and `bounced` follow the current suppressions.
 *
 * @returns the restored contacts in their new state
 */
export async function restoreContacts(
  db: Queries,
  owner: { readonly workspaceId: string; readonly audience: number },
  deleted: readonly Contact[],
  at: number,
): Promise<Contact[]> {
  const emails = [...new Set(deleted.map(({ email }) => email))]
  const taken = new Set((await findContactsByEmail(db, owner.audience, emails)).map(({ email }) => email))
  const standings = await findSuppressionsOf(db, owner.workspaceId, emails)
  const change = new CountChange()
  const restored: Contact[] = []
  const bounced: ContactChange[] = []
  for (const contact of deleted) {
    if (taken.has(contact.email)) continue
    taken.add(contact.email)
    const standing = standings.get(contact.email)
    const back = { ...contact, ...subscriptionUnder(contact, standing), updatedAt: at }
    const after = { ...back, ...mailStatusUnder(back, standing) }
    if (after.bounced !== back.bounced) bounced.push({ before: back, after })
    change.add(back)
    restored.push(back)
  }
  for (const [subscribed, suspended] of [
    [0, 0],
    [0, 1],
    [1, 0],
  ] as const) {
    const seqs = restored
      .filter(one => flag(one.subscribed) === subscribed && flag(one.suspended) === suspended)
      .map(({ seq }) => seq)
    for (const list of inLists(seqs)) await markRestored(db, { seqs: list, subscribed, suspended, at })
  }
  await recount(
    db,
    restored.map(({ seq }) => seq),
    1,
  )
  await applyCounts(db, owner.audience, change)
  await updateContacts(db, owner.audience, bounced)
  const known = new Map(bounced.map(({ after }) => [after.seq, after]))
  return restored.map(contact => known.get(contact.seq) ?? contact)
}

/** Permanently deletes the contacts deleted longest ago, with their pairs. @returns rows deleted, at most `limit` */
export async function purgeDeleted(db: Queries, before: number, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('contacts')
    .select('seq')
    .where('deleted_at', 'is not', null)
    .where('deleted_at', '<', before)
    .orderBy('deleted_at')
    .limit(limit)
    .execute()
  const seqs = rows.map(({ seq }) => seq)
  await deletePairsOf(db, seqs)
  await deleteContactRows(db, seqs)
  return seqs.length
}

/** Deletes finished sweeps. @returns rows deleted, at most `limit` */
export async function deleteSweepsBefore(db: Queries, before: number, limit: number): Promise<number> {
  const result = await sql`
    delete from contact_sweeps where id in (
      select id from contact_sweeps where finished_at < ${before} order by id limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

function toRow(sweep: Sweep): SweepRow {
  return {
    id: sweep.id,
    workspace_id: sweep.workspaceId,
    is_sandbox: flag(sweep.isSandbox),
    kind: sweep.kind,
    position: sweep.position,
    end_position: sweep.endPosition,
    changed: sweep.changed,
    skipped: sweep.skipped,
    begun_at: sweep.begunAt,
    finished_at: sweep.finishedAt,
  }
}

function fromRow(row: Selectable<SweepRow>): Sweep {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    isSandbox: row.is_sandbox === 1,
    kind: row.kind,
    position: row.position,
    endPosition: row.end_position,
    changed: row.changed,
    skipped: row.skipped,
    begunAt: row.begun_at,
    finishedAt: row.finished_at,
  }
}
