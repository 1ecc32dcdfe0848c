/**
 * SQL of the activity log: who changed what in a workspace.
 *
 * Recorded in the transaction of the change and read by `GET /activity`. Separate from the event log: nothing consumes it. Never
 * contains secrets.
 */
import { sql, type Generated, type Selectable } from 'kysely'
import type { Actor } from '../core/actor.js'
import { given } from '../core/given.js'
import { APPLIANCE } from '../core/owner.js'
import type { Queries, Tx } from '../db/database.js'
import { likeText } from '../db/folded-words.js'
import { newestFirst, type Listed, type PageOf } from '../db/listing.js'
import { deleteOldest } from '../db/retention.js'
import type { Services } from '../db/services.js'

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

/** Who acts, and in which workspace; a `Principal` is one. */
export interface WorkspaceActor {
  readonly workspaceId: string
  readonly actor: Actor
}

export interface Activity {
  /** E.g. `domain.added`. */
  readonly action: `${string}.${string}`
  /** Human-readable object of the action: a domain, an address, the name of a key. */
  readonly subject: string
  readonly details?: Readonly<Record<string, Value>>
  readonly changes?: Changes
}

/** @param createdAt ms since epoch UTC */
export async function recordActivity(
  tx: Tx,
  { workspaceId, actor }: WorkspaceActor,
  createdAt: number,
  { action, subject, details = {}, changes = {} }: Activity,
): Promise<void> {
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

/** Records an action on the appliance in a transaction of its own, for actions that change no rows. */
export async function recordAction(
  { database, clock }: Pick<Services, 'database' | 'clock'>,
  actor: Actor,
  action: Activity['action'],
  subject: string,
): Promise<void> {
  await database.write(tx =>
    recordActivity(tx, { workspaceId: APPLIANCE, actor }, clock.now(), { action, subject }),
  )
}

export interface RecordedActivity extends WorkspaceActor, Required<Activity> {
  readonly id: number
  /** Ms since epoch UTC. */
  readonly createdAt: number
}

/** All given conditions must match. */
export interface ActivityFilter {
  readonly workspaceId?: string
  readonly action?: string
  /** Id or name of the actor, ignoring case, or its type. */
  readonly actor?: string
  /** Part of the subject, ignoring case. */
  readonly subject?: string
  /** Ms since epoch UTC, inclusive. */
  readonly since?: number
  /** Exclusive. */
  readonly until?: number
}

/** Newest first. */
export function listActivities(
  db: Queries,
  filter: ActivityFilter,
  page: PageOf,
): Promise<Listed<RecordedActivity>> {
  return newestFirst(matching(db, filter), page, fromRow)
}

/** @returns undefined if there is none, or it is past its retention */
export async function findActivity(db: Queries, id: number): Promise<RecordedActivity | undefined> {
  const row = await db.selectFrom('activities').selectAll().where('seq', '=', id).executeTakeFirst()
  return row && fromRow(row)
}

/** Newest first. @param before id: only older activities */
export async function activitiesBefore(
  db: Queries,
  filter: ActivityFilter,
  before: number,
  limit: number,
): Promise<RecordedActivity[]> {
  const rows = await matching(db, filter)
    .selectAll()
    .where('seq', '<', before)
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute()
  return rows.map(fromRow)
}

function matching(db: Queries, { workspaceId, action, actor, subject, since, until }: ActivityFilter) {
  let rows = db.selectFrom('activities')
  if (workspaceId !== undefined) rows = rows.where('workspace_id', '=', workspaceId)
  if (action !== undefined) rows = rows.where('action', '=', action)
  if (actor !== undefined)
    rows = rows.where(e =>
      e.or([
        e('actor_id', '=', actor),
        sql<boolean>`lower(actor_name) = ${actor.toLowerCase()}`,
        e('actor_type', '=', actor as Actor['type']),
      ]),
    )
  if (subject !== undefined)
    rows = rows.where(sql<boolean>`lower(subject) like ${`%${likeText(subject.toLowerCase())}%`} escape '!'`)
  if (since !== undefined) rows = rows.where('created_at', '>=', since)
  if (until !== undefined) rows = rows.where('created_at', '<', until)
  return rows
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
