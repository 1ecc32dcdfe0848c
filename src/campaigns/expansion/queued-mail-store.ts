/** SQL of where a campaign's queued mail stands. */
import { sql } from 'kysely'
import { must } from '../../core/must.js'
import type { Queries } from '../../db/database.js'

export interface FoundQueuedMail {
  /** Of those that were looked at. */
  readonly mails: number
  /** If any is, perhaps not all of them are counted. */
  readonly inProgress: number
  /** By an operator. */
  readonly held: number
  /** Destinations with mail that is due, neither held nor in progress. */
  readonly destinationsDue: readonly string[]
  /** When the next of the others is due. */
  readonly nextAttemptAt: number | null
}

/** Mails looked at: enough for the last ones of a campaign. */
const MAX_MAILS = 10_000
/** With due mail for more, some of it is about to be delivered. */
const MAX_DESTINATIONS = 100

/** @param db the slow reader */
export async function findQueuedMail(db: Queries, campaign: number, now: number): Promise<FoundQueuedMail> {
  const mails = sql`(
    select queue.destination, queue.is_held, queue.claimed_by, queue.next_attempt_at from campaign_recipients
    inner join queue on queue.message_id = campaign_recipients.message_id
    where campaign = ${campaign} and status = 'sent' limit ${MAX_MAILS}) as mails`
  // Nearly always so, and found among the first: who looks at a running campaign need not wait for the counts.
  const claimed = await sql`select 1 as one from ${mails} where claimed_by is not null limit 1`.execute(db)
  if (claimed.rows.length > 0)
    return { mails: 1, inProgress: 1, held: 0, destinationsDue: [], nextAttemptAt: null }
  const isFree = sql`is_held = 0 and claimed_by is null`
  const { rows } = await sql<{ mails: number; in_progress: number; held: number; next: number | null }>`
    select count(*) as mails, count(claimed_by) as in_progress,
      count(case when is_held = 1 then 1 end) as held,
      min(case when ${isFree} and next_attempt_at > ${now} then next_attempt_at end) as next
    from ${mails}`.execute(db)
  const due = await sql<{ destination: string }>`
    select distinct destination from ${mails} where ${isFree} and next_attempt_at <= ${now}
    limit ${MAX_DESTINATIONS}`.execute(db)
  const row = must(rows[0], 'the row of an aggregate')
  return {
    mails: row.mails,
    inProgress: row.in_progress,
    held: row.held,
    destinationsDue: due.rows.map(({ destination }) => destination),
    nextAttemptAt: row.next,
  }
}
