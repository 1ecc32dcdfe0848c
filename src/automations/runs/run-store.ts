/**
 * SQL of single runs.
 *
 * Ended and parked runs have no `due_at`, so the index of due runs holds only runs that can become due. Statements that touch many
 * runs at once are in `bulk-run-store.ts`.
 */
import { sql, type Generated, type Insertable, type RawBuilder, type Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import { inLists, inPieces, statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { AwaitedEvent, StoredStatus, Run, Wait } from './run.js'

interface RunRow {
  seq: Generated<number>
  id: string
  automation: number
  workspace_id: string
  is_sandbox: Flag
  contact_id: string
  contact_email: string
  status: StoredStatus
  step: number | null
  wait: Wait | null
  wait_event: AwaitedEvent | null
  wait_message: string | null
  due_at: number | null
  parked_due_at: number | null
  steps_done: number
  failures: number
  refusals: Generated<number>
  last_message_id: string | null
  trigger_type: string
  trigger_data: string
  flow_version: Generated<number>
  exit_reason: string | null
  error: string | null
  started_at: number
  ended_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    automation_runs: RunRow
  }
}

export type NewRun = Pick<
  Run,
  | 'id'
  | 'automation'
  | 'workspaceId'
  | 'isSandbox'
  | 'contactId'
  | 'contactEmail'
  | 'step'
  | 'stepsDone'
  | 'triggerType'
  | 'triggerData'
  | 'flowVersion'
  | 'startedAt'
>

const insertRows = statement((db, { rows }: { readonly rows: readonly Insertable<RunRow>[] }) =>
  db.insertInto('automation_runs').values(rows),
)

export async function insertRuns(db: Queries, runs: readonly NewRun[]): Promise<void> {
  const rows = runs.map(run => ({
    id: run.id,
    automation: run.automation,
    workspace_id: run.workspaceId,
    is_sandbox: flag(run.isSandbox),
    contact_id: run.contactId,
    contact_email: run.contactEmail,
    status: 'active' as const,
    step: run.step,
    wait: null,
    wait_event: null,
    wait_message: null,
    due_at: run.startedAt,
    parked_due_at: null,
    steps_done: run.stepsDone,
    failures: 0,
    refusals: 0,
    last_message_id: null,
    trigger_type: run.triggerType,
    trigger_data: JSON.stringify(run.triggerData),
    flow_version: run.flowVersion,
    exit_reason: null,
    error: null,
    started_at: run.startedAt,
    ended_at: null,
  }))
  for (const piece of inPieces(rows)) await insertRows(db, { rows: piece })
}

interface DueArguments extends Readonly<Record<string, number>> {
  readonly now: number
  readonly limit: number
}

/** For `explain query plan`. */
export function dueQuery(db: Queries, { now, limit }: DueArguments) {
  return db
    .selectFrom('automation_runs')
    .select('seq')
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .orderBy('seq')
    .limit(limit)
}

const selectDue = statement((db, given: DueArguments) => dueQuery(db, given))

/** Numbers of due runs, longest overdue first. */
export async function findDue(db: Queries, now: number, limit: number): Promise<number[]> {
  return (await selectDue(db, { now, limit })).rows.map(({ seq }) => seq)
}

/** For `explain query plan`. */
export function dueOfQuery(
  db: Queries,
  { workspaceId, now, limit }: { readonly workspaceId: string; readonly now: number; readonly limit: number },
) {
  return db
    .selectFrom('automation_runs')
    .select('seq')
    .where('workspace_id', '=', workspaceId)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .orderBy('seq')
    .limit(limit)
}

const selectDueOf = statement(
  (db, given: { readonly workspaceId: string; readonly now: number; readonly limit: number }) =>
    dueOfQuery(db, given),
)

/** Like `findDue`, for one workspace. */
export async function findDueOf(
  db: Queries,
  workspaceId: string,
  now: number,
  limit: number,
): Promise<number[]> {
  return (await selectDueOf(db, { workspaceId, now, limit })).rows.map(({ seq }) => seq)
}

/**
 * Ids of workspaces with unfinished, unparked runs, in order. Skips along the index from one workspace to the next.
 *
 * @param after exclusive; '' starts at the beginning
 */
export async function listOwnersOfRuns(db: Queries, after: string, limit: number): Promise<string[]> {
  const next = (owner: RawBuilder<unknown>) =>
    sql`select min(workspace_id) from automation_runs where due_at is not null and workspace_id > ${owner}`
  const { rows } = await sql<{ owner: string }>`
    with recursive step(owner, number) as (
      select (${next(sql`cast(${after} as text)`)}), 1
      union all
      select (${next(sql`step.owner`)}), number + 1 from step where owner is not null and number < ${limit}
    )
    select owner from step where owner is not null`.execute(db)
  return rows.map(({ owner }) => owner)
}

const selectNextDue = statement(db =>
  db
    .selectFrom('automation_runs')
    .select('due_at')
    .where('due_at', 'is not', null)
    .orderBy('due_at')
    .limit(1),
)

/** Ms since epoch UTC. */
export async function nextDueAt(db: Queries): Promise<number | undefined> {
  return (await selectNextDue(db, {})).rows[0]?.due_at ?? undefined
}

const selectBySeq = statement((db, { seq }: { readonly seq: number }) =>
  db.selectFrom('automation_runs').selectAll().where('seq', '=', seq),
)

export async function findRunBySeq(db: Queries, seq: number): Promise<Run | undefined> {
  const [row] = (await selectBySeq(db, { seq })).rows
  return row && runFromRow(row)
}

export async function findRun(db: Queries, automation: number, id: string): Promise<Run | undefined> {
  const row = await db
    .selectFrom('automation_runs')
    .selectAll()
    .where('id', '=', id)
    .where('automation', '=', automation)
    .executeTakeFirst()
  return row && runFromRow(row)
}

/** Newest first. @param total from the automation's run counts */
export async function listRuns(
  db: Queries,
  automation: number,
  status: StoredStatus | undefined,
  total: number,
  page: Page,
): Promise<Listing<Run>> {
  let matching = db.selectFrom('automation_runs').where('automation', '=', automation)
  if (status !== undefined) matching = matching.where('status', '=', status)
  return newestFirst(matching, page, runFromRow, 'seq', total)
}

type Position = Pick<
  Run,
  | 'step'
  | 'wait'
  | 'waitEvent'
  | 'waitMessage'
  | 'dueAt'
  | 'stepsDone'
  | 'failures'
  | 'refusals'
  | 'lastMessageId'
>

const moveRow = statement((db, { seq, ...set }: PositionRow) =>
  db.updateTable('automation_runs').set(set).where('seq', '=', seq),
)

type PositionRow = Pick<
  Selectable<RunRow>,
  | 'seq'
  | 'step'
  | 'wait'
  | 'wait_event'
  | 'wait_message'
  | 'due_at'
  | 'steps_done'
  | 'failures'
  | 'refusals'
  | 'last_message_id'
>

export async function moveRun(db: Queries, seq: number, run: Position): Promise<void> {
  await moveRow(db, {
    seq,
    step: run.step,
    wait: run.wait,
    wait_event: run.waitEvent,
    wait_message: run.waitMessage,
    due_at: run.dueAt,
    steps_done: run.stepsDone,
    failures: run.failures,
    refusals: run.refusals,
    last_message_id: run.lastMessageId,
  })
}

export interface Ending {
  readonly status: Exclude<StoredStatus, 'active'>
  readonly exitReason: string
  readonly error?: string
}

export async function endRuns(
  db: Queries,
  seqs: readonly number[],
  { status, exitReason, error }: Ending,
  at: number,
): Promise<number> {
  let ended = 0
  for (const list of inLists(seqs)) {
    const result = await db
      .updateTable('automation_runs')
      .set({
        status,
        exit_reason: exitReason,
        error: error ?? null,
        ended_at: at,
        due_at: null,
        parked_due_at: null,
        wait: null,
        wait_event: null,
        wait_message: null,
      })
      .where('seq', 'in', list)
      .where('ended_at', 'is', null)
      .executeTakeFirst()
    ended += Number(result.numUpdatedRows)
  }
  return ended
}

function runFromRow(row: Selectable<RunRow>): Run {
  return {
    seq: row.seq,
    id: row.id,
    automation: row.automation,
    workspaceId: row.workspace_id,
    isSandbox: row.is_sandbox === 1,
    contactId: row.contact_id,
    contactEmail: row.contact_email,
    status: row.status,
    step: row.step,
    wait: row.wait,
    waitEvent: row.wait_event,
    waitMessage: row.wait_message,
    dueAt: row.due_at,
    parkedDueAt: row.parked_due_at,
    stepsDone: row.steps_done,
    failures: row.failures,
    refusals: row.refusals,
    lastMessageId: row.last_message_id,
    triggerType: row.trigger_type,
    triggerData: JSON.parse(row.trigger_data) as Run['triggerData'],
    flowVersion: row.flow_version,
    exitReason: row.exit_reason,
    error: row.error,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  }
}
