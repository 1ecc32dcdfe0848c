/**
 * SQL of runs in bulk: those of a paused, resumed or deleted automation, of a deleted step or contact, or waiting for an event.
 *
 * Every statement affects a bounded number of rows, found through an index. A run is parked only when it falls due, so pausing an
 * automation writes nothing here.
 */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'
import { changeRunCounts } from '../flows/automation-store.js'
import type { StoredStatus, AwaitedEvent } from './run.js'

/** The run's automation is paused. */
export async function parkRun(db: Queries, seq: number): Promise<void> {
  await sql`
    update automation_runs set parked_due_at = due_at, due_at = null
    where seq = ${seq} and due_at is not null`.execute(db)
}

/** @returns how many, at most `limit` */
export async function unparkRuns(db: Queries, automation: number, limit: number): Promise<number> {
  const result = await sql`
    update automation_runs set due_at = parked_due_at, parked_due_at = null
    where seq in (
      select seq from automation_runs
      where automation = ${automation} and parked_due_at is not null order by seq limit ${limit})`.execute(db)
  return Number(result.numAffectedRows ?? 0n)
}

/** Numbers, oldest first. */
export async function findUnfinishedRuns(db: Queries, automation: number, limit: number): Promise<number[]> {
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

/** Deletes an automation's entry records and known segment members. @returns number of rows, at most twice `limit` */
export async function deleteContactRecords(db: Queries, automation: number, limit: number): Promise<number> {
  const entries = await sql`
    delete from automation_entries where automation = ${automation} and contact_id in (
      select contact_id from automation_entries where automation = ${automation} limit ${limit})`.execute(db)
  const members = await sql`
    delete from automation_members where automation = ${automation} and contact in (
      select contact from automation_members where automation = ${automation} limit ${limit})`.execute(db)
  return Number(entries.numAffectedRows ?? 0n) + Number(members.numAffectedRows ?? 0n)
}

export async function hasUnfinishedRun(db: Queries, automation: number, contactId: string): Promise<boolean> {
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

/** Moves runs at a deleted step to its successor. @returns how many, at most `limit` */
export async function skipDeletedStep(
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

/** Numbers of the contacts' unfinished runs, by automation. */
export async function findUnfinishedRunsOf(
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

/** Deletes runs that ended before then. @returns how many, at most `limit` */
export async function deleteRunsBefore(db: Queries, before: number, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('automation_runs')
    .select('seq')
    .where('ended_at', '<', before)
    .orderBy('ended_at')
    .limit(limit)
    .execute()
  return deleteRuns(
    db,
    rows.map(({ seq }) => seq),
  )
}

/** Deletes runs with their step logs and corrects the counts of their automations. @returns how many there were */
export async function deleteRuns(db: Queries, seqs: readonly number[]): Promise<number> {
  let deleted = 0
  for (const list of inLists(seqs)) {
    await db.deleteFrom('automation_run_steps').where('run', 'in', list).execute()
    const rows = await db
      .deleteFrom('automation_runs')
      .where('seq', 'in', list)
      .returning(['automation', 'status'])
      .execute()
    for (const automation of new Set(rows.map(row => row.automation))) {
      const count = (status: StoredStatus) =>
        -rows.filter(row => row.automation === automation && row.status === status).length
      const [active, completed, failed, cancelled] = [
        count('active'),
        count('completed'),
        count('failed'),
        count('cancelled'),
      ]
      await changeRunCounts(db, automation, { active, completed, failed, cancelled })
    }
    deleted += rows.length
  }
  return deleted
}

/** Something a run may be waiting for. */
export interface ContactAction {
  readonly contactId: string
  readonly event: AwaitedEvent
  /** Null unless the event is about a message. */
  readonly messageId: string | null
}

/** Also for `explain query plan`. */
export function wakingQuery({ contactId, event, messageId }: ContactAction) {
  return sql`select seq, due_at from automation_runs
      where contact_id = ${contactId} and wait_event = ${event} and ended_at is null
        and (wait_message is null or wait_message = ${messageId}) order by seq limit 1000`
}

const selectWaiting = statement<{ contactId: string; event: AwaitedEvent; messageId: string | null }>(
  (_, given) => wakingQuery(given),
)

/** Makes runs due that wait for this action. @returns how many */
export async function wakeWaitingRuns(db: Queries, action: ContactAction, now: number): Promise<number> {
  const { contactId, event, messageId } = action
  const { rows } = await selectWaiting(db, { contactId, event, messageId })
  const seqs = (rows as { readonly seq: number }[]).map(({ seq }) => seq)
  for (const list of inLists(seqs))
    await sql`
      update automation_runs set wait = 'arrived', wait_event = null, wait_message = null,
        due_at = case when due_at is null then null else cast(${now} as bigint) end,
        parked_due_at = case when parked_due_at is null then null else cast(${now} as bigint) end
      where seq in (${sql.join(list)})`.execute(db)
  return seqs.length
}
