/** SQL of runs that wait for an event: they are found along an index of contact and event, and go on. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { compilable, inLists, statement } from '../../db/statement.js'
import type { AwaitedEvent } from './run.js'

/** What happened that runs may wait for. */
export interface Happened {
  readonly contactId: string
  readonly event: AwaitedEvent
  /** Of an event about a mail. */
  readonly messageId: string | null
}

/** Also for `explain query plan`. */
export function wakingQuery(db: Queries, { contactId, event, messageId }: Happened) {
  return compilable(
    db,
    sql`select seq, due_at from automation_runs
      where contact_id = ${contactId} and wait_event = ${event} and ended_at is null
        and (wait_message is null or wait_message = ${messageId}) order by seq limit 1000`,
  )
}

const selectWaiting = statement<{ contactId: string; event: AwaitedEvent; messageId: string | null }>(
  (db, given) => wakingQuery(db, given),
)

/** Lets those go on that wait for this. @returns how many */
export async function wakeWaiting(db: Queries, happened: Happened, now: number): Promise<number> {
  const { contactId, event, messageId } = happened
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
