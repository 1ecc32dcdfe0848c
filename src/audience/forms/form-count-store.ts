/**
 * SQL of the counts of form submissions, by form and day of the workspace's time zone.
 *
 * Incremented in the transactions that accept a submission and that apply it; never pruned, so that totals cover a form's whole life.
 */
import { sql } from 'kysely'
import { findTimezone } from '../../accounts/timezone-store.js'
import type { Queries } from '../../db/database.js'
import { DAY_MS, dayAt, type Day } from '../../world/time/zone-days.js'

interface FormCountRow {
  form_id: string
  /** In the time zone that the workspace had then. */
  day: Day
  workspace_id: string
  submitted: number
  completed: number
}

declare module '../../db/tables.js' {
  interface Tables {
    form_counts: FormCountRow
  }
}

export interface FormCounts {
  /** Accepted submissions. */
  readonly submitted: number
  /** Submissions that took effect, at once or when they were confirmed. */
  readonly completed: number
}

export interface FormDay extends FormCounts {
  readonly day: Day
}

export async function countSubmissions(
  db: Queries,
  { id, workspaceId }: { readonly id: string; readonly workspaceId: string },
  at: number,
  counts: FormCounts,
): Promise<void> {
  const day = dayAt(at, await findTimezone(db, workspaceId))
  await db
    .insertInto('form_counts')
    .values({ form_id: id, day, workspace_id: workspaceId, ...counts })
    .onConflict(conflict =>
      conflict.columns(['form_id', 'day']).doUpdateSet(e => ({
        submitted: e('form_counts.submitted', '+', e.ref('excluded.submitted')),
        completed: e('form_counts.completed', '+', e.ref('excluded.completed')),
      })),
    )
    .execute()
}

export async function totalSubmissions(db: Queries, formId: string): Promise<FormCounts> {
  const row = await db
    .selectFrom('form_counts')
    .select([
      sql<number>`cast(coalesce(sum(submitted), 0) as integer)`.as('submitted'),
      sql<number>`cast(coalesce(sum(completed), 0) as integer)`.as('completed'),
    ])
    .where('form_id', '=', formId)
    .executeTakeFirstOrThrow()
  return { submitted: row.submitted, completed: row.completed }
}

/** One entry per day that ends with the day of `now`, oldest first. */
export async function dailySubmissions(
  db: Queries,
  { id: formId, workspaceId }: { readonly id: string; readonly workspaceId: string },
  now: number,
  days: number,
): Promise<FormDay[]> {
  const last = dayAt(now, await findTimezone(db, workspaceId))
  const first = last - (days - 1) * DAY_MS
  const rows = await db
    .selectFrom('form_counts')
    .select(['day', 'submitted', 'completed'])
    .where('form_id', '=', formId)
    .where('day', '>=', first)
    .where('day', '<=', last)
    .execute()
  const known = new Map(rows.map(row => [row.day, row]))
  return Array.from({ length: days }, (_, at) => {
    const day = first + at * DAY_MS
    return known.get(day) ?? { day, submitted: 0, completed: 0 }
  })
}
