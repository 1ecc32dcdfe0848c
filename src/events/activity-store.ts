/**
 * SQL of the activity log: who changed what in a workspace.
 *
 * Recorded in the transaction of the change and read by `GET /activity`. Separate from the event log: nothing consumes it. Never
 * contains secrets.
 */
import type { Generated, Selectable } from 'kysely'
import type { Actor } from '../core/actor.js'
import { given } from '../core/given.js'
import type { Queries, Tx } from '../db/database.js'
import { newestFirst, type Listed, type PageOf } from '../db/listing.js'
import { deleteOldest } from '../db/retention.js'

interface ActivityRow {
  seq: Generated<number>
  workspace_id: string
  actor_type: Actor['type']
  actor_id: string | null
  actor_name: string | null
  /** IP address the request came from. */
  peer: string | null
  action: string
  subject: string
  /** JSON. */
  details: string
  /** JSON: `Changes`. */
  changes: string
  created_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    activities: ActivityRow
  }
}

type Value = string | number | boolean | null

/** Settings before and after the action, by name. */
export type Changes = Readonly<Record<string, { readonly before: Value; readonly after: Value }>>

export interface Activity {
  readonly workspaceId: string
  readonly actor: Actor
  /** E.g. `domain.added`. */
  readonly action: `${string}.${string}`
  /** Human-readable object of the action: a domain, an address, the name of a key. */
  readonly subject: string
  readonly details?: Readonly<Record<string, Value>>
  readonly changes?: Changes
  /** Ms since epoch UTC. */
  readonly createdAt: number
}

export async function recordActivity(tx: Tx, activity: Activity): Promise<void> {
  const { workspaceId, actor, action, subject, details = {}, changes = {}, createdAt } = activity
  await tx.db
    .insertInto('activities')
    .values({
      workspace_id: workspaceId,
      actor_type: actor.type,
      actor_id: actor.id ?? null,
      actor_name: actor.name ?? null,
      peer: actor.peer ?? null,
      action,
      subject,
      details: JSON.stringify(details),
      changes: JSON.stringify(changes),
      created_at: createdAt,
    })
    .execute()
}

export interface RecordedActivity extends Required<Activity> {
  readonly id: number
}

/** Newest first. @param action only this action */
export async function listActivities(
  db: Queries,
  workspaceId: string,
  action: string | undefined,
  page: PageOf,
): Promise<Listed<RecordedActivity>> {
  const matching = db
    .selectFrom('activities')
    .where('workspace_id', '=', workspaceId)
    .$if(action !== undefined, query => query.where('action', '=', action ?? ''))
  return newestFirst(matching, page, fromRow)
}

/** @returns how many, at most `limit` */
export function deleteActivitiesBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'activities', key: 'seq', time: 'created_at' }, before, limit)
}

function fromRow(row: Selectable<ActivityRow>): RecordedActivity {
  return {
    id: row.seq,
    workspaceId: row.workspace_id,
    actor: {
      type: row.actor_type,
      ...given({
        id: row.actor_id ?? undefined,
        name: row.actor_name ?? undefined,
        peer: row.peer ?? undefined,
      }),
    },
    action: row.action as Activity['action'],
    subject: row.subject,
    details: JSON.parse(row.details) as RecordedActivity['details'],
    changes: JSON.parse(row.changes) as Changes,
    createdAt: row.created_at,
  }
}
