/**
 * SQL of many runs at once: those of an automation that was paused, goes on or is deleted, of a step or a contact that is gone.
 *
 * Each statement is of a bounded number of runs, found along an index. Pauses reach runs when they fall due.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists } from '../../db/statement.js'
import { changeRunCounts } from '../flows/automation-store.js'
import type { KeptStatus } from './run.js'

/** Its automation is paused: it stands still. */
export async function parkRun(db: Queries, seq: number): Promise<void> {
  await sql`
    update automation_runs set parked_due_at = due_at, due_at = null
    where seq = ${seq} and due_at is not null`.execute(db)
}

/** Those of an automation that stand still go on as they would have. @returns how many, at most `limit` */
export async function unparkRuns(db: Queries, automation: number, limit: number): Promise<number> {
  const result = await sql`
    update automation_runs set due_at = parked_due_at, parked_due_at = null
    where seq in (
      select seq from automation_runs
      where automation = ${automation} and parked_due_at is not null order by seq limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** Unfinished ones of an automation, the oldest first. */
export async function findUnfinished(db: Queries, automation: number, limit: number): Promise<number[]> {
  const rows = await db
    .selectFrom('automation_runs')
    .select('seq')
    .where('automation', '=', automation)
    .where('ended_at', 'is', null)
    .orderBy('seq')
    .limit(limit)
    .execute()
  return rows.map(({ seq }) => seq)
}

/** What is kept of who has been in it, and whom its segment meant. @returns how many rows went, at most twice `limit` */
export async function forgetContacts(db: Queries, automation: number, limit: number): Promise<number> {
  const entries = await sql`
    delete from automation_entries where automation = ${automation} and contact_id in (
      select contact_id from automation_entries where automation = ${automation} limit ${limit})`.execute(db)
  const members = await sql`
    delete from automation_members where automation = ${automation} and contact in (
      select contact from automation_members where automation = ${automation} limit ${limit})`.execute(db)
  return Number(entries.numAffectedRows ?? 0n) + Number(members.numAffectedRows ?? 0n)
}

/** Whether the contact is in it already. */
export async function isInside(db: Queries, automation: number, contactId: string): Promise<boolean> {
  const row = await db
    .selectFrom('automation_runs')
    .select('seq')
    .where('contact_id', '=', contactId)
    .where('automation', '=', automation)
    .where('ended_at', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** A step was deleted: runs that wait on it go on with the one that came after it. @returns how many, at most `limit` */
export async function leaveStep(
  db: Queries,
  step: number,
  successor: number | null,
  now: number,
  limit: number,
): Promise<number> {
  const result = await sql`
    update automation_runs set
      step = ${successor}, wait = null, wait_event = null, wait_message = null, failures = 0, refusals = 0,
      due_at = case when due_at is null then null else cast(${now} as bigint) end,
      parked_due_at = case when parked_due_at is null then null else cast(${now} as bigint) end
    where seq in (
      select seq from automation_runs where step = ${step} and ended_at is null limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** Unfinished runs of contacts: numbers by automation. */
export async function findRunsOf(
  db: Queries,
  contactIds: readonly string[],
): Promise<ReadonlyMap<number, readonly number[]>> {
  const found = new Map<number, number[]>()
  for (const list of inLists(contactIds)) {
    const rows = await db
      .selectFrom('automation_runs')
      .select(['seq', 'automation'])
      .where('contact_id', 'in', list)
      .where('ended_at', 'is', null)
      .execute()
    for (const { seq, automation } of rows) {
      const seqs = found.get(automation) ?? []
      found.set(automation, seqs)
      seqs.push(seq)
    }
  }
  return found
}

/** Of those that are at an end, with their logs; they are counted no more. @returns how many, at most `limit` */
export async function deleteRunsBefore(db: Queries, before: number, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('automation_runs')
    .select(['seq', 'automation', 'status'])
    .where('ended_at', '<', before)
    .orderBy('ended_at')
    .limit(limit)
    .execute()
  for (const list of inLists(rows.map(({ seq }) => seq))) {
    await db.deleteFrom('automation_run_steps').where('run', 'in', list).execute()
    await db.deleteFrom('automation_runs').where('seq', 'in', list).execute()
  }
  for (const automation of new Set(rows.map(row => row.automation))) {
    const count = (status: KeptStatus) =>
      -rows.filter(row => row.automation === automation && row.status === status).length
    const [completed, failed, cancelled] = [count('completed'), count('failed'), count('cancelled')]
    await changeRunCounts(db, automation, { completed, failed, cancelled })
  }
  return rows.length
}
