/** SQL of the step logs of runs. */
import type { Generated } from 'kysely'
import type { Queries } from '../../db/database.js'
import { statement } from '../../db/statement.js'
import type { StepRecord, StepResult } from './run.js'

interface StepRecordRow {
  seq: Generated<number>
  run: number
  at: number
  step_id: string
  step_type: string
  outcome: StepResult
  detail: string | null
}

declare module '../../db/tables.js' {
  interface Tables {
    automation_run_steps: StepRecordRow
  }
}

const insertRow = statement((db, row: Omit<StepRecordRow, 'seq'> & Record<string, unknown>) =>
  db.insertInto('automation_run_steps').values({
    run: row.run,
    at: row.at,
    step_id: row.step_id,
    step_type: row.step_type,
    outcome: row.outcome,
    detail: row.detail,
  }),
)

/** Appends to the run's step log. @param run its number */
export async function recordStep(db: Queries, run: number, record: StepRecord): Promise<void> {
  const { stepId, stepType, outcome, detail, at } = record
  await insertRow(db, {
    run,
    at,
    step_id: stepId,
    step_type: stepType,
    outcome,
    detail: detail && JSON.stringify(detail),
  })
}

const selectLastWait = statement((db, { run }: { readonly run: number }) =>
  db
    .selectFrom('automation_run_steps')
    .select(['step_id', 'step_type'])
    .where('run', '=', run)
    .where('outcome', '=', 'waiting')
    .orderBy('seq', 'desc')
    .limit(1),
)

/** The step whose wait began last, as it then was. @param run its number */
export async function findLastWait(
  db: Queries,
  run: number,
): Promise<Pick<StepRecord, 'stepId' | 'stepType'> | undefined> {
  const [row] = (await selectLastWait(db, { run })).rows
  return row && { stepId: row.step_id, stepType: row.step_type }
}

/** Oldest first. */
export async function listStepRecords(db: Queries, run: number, limit: number): Promise<StepRecord[]> {
  const rows = await db
    .selectFrom('automation_run_steps')
    .selectAll()
    .where('run', '=', run)
    .orderBy('seq')
    .limit(limit)
    .execute()
  return rows.map(row => ({
    stepId: row.step_id,
    stepType: row.step_type,
    outcome: row.outcome,
    detail: row.detail === null ? null : (JSON.parse(row.detail) as StepRecord['detail']),
    at: row.at,
  }))
}
