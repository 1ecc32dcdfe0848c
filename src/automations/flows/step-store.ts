/** SQL of steps. Deleted steps stay and name their successor, so that runs at them can continue. */
import type { Generated, Selectable } from 'kysely'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { inLists, inPieces } from '../../db/statement.js'
import type { Config, StoredStep, NewStep, Step, StepTypeName } from './automation.js'

interface StepRow {
  seq: Generated<number>
  id: string
  automation: number
  position: number
  step_type: StepTypeName
  config: string
  successor: number | null
  /** Set by a deletion until all runs at the step have moved on. */
  unsettled_at: number | null
  deleted_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    automation_steps: StepRow
  }
}

export async function insertSteps(db: Queries, automation: number, steps: readonly NewStep[]): Promise<void> {
  const rows = steps.map(step => ({
    id: step.id,
    automation,
    position: step.position,
    step_type: step.type,
    config: JSON.stringify(step.config),
    successor: null,
    unsettled_at: null,
    deleted_at: null,
  }))
  for (const piece of inPieces(rows)) await db.insertInto('automation_steps').values(piece).execute()
}

/** By position, without deleted ones. */
export async function findSteps(db: Queries, automation: number): Promise<Step[]> {
  const rows = await db
    .selectFrom('automation_steps')
    .selectAll()
    .where('automation', '=', automation)
    .where('deleted_at', 'is', null)
    .orderBy('position')
    .orderBy('seq')
    .execute()
  return rows.map(stepFromRow)
}

export async function findStoredSteps(db: Queries, automation: number): Promise<StoredStep[]> {
  const rows = await db
    .selectFrom('automation_steps')
    .selectAll()
    .where('automation', '=', automation)
    .orderBy('position')
    .orderBy('seq')
    .execute()
  return rows.map(row => ({ ...stepFromRow(row), deletedAt: row.deleted_at, successor: row.successor }))
}

export async function findStepIds(
  db: Queries,
  seqs: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const ids = new Map<number, string>()
  for (const list of inLists(seqs)) {
    const rows = await db
      .selectFrom('automation_steps')
      .select(['seq', 'id'])
      .where('seq', 'in', list)
      .execute()
    for (const { seq, id } of rows) ids.set(seq, id)
  }
  return ids
}

export async function updateStep(db: Queries, seq: number, change: Partial<NewStep>): Promise<void> {
  const { position, type, config } = change
  await db
    .updateTable('automation_steps')
    .set({
      ...given({ position, step_type: type }),
      ...(config === undefined ? {} : { config: JSON.stringify(config satisfies Config) }),
    })
    .where('seq', '=', seq)
    .execute()
}

/** @param successor `seq` of the step that runs continue with; null if there is none */
export async function markStepDeleted(
  db: Queries,
  seq: number,
  successor: number | null,
  at: number,
): Promise<void> {
  await db
    .updateTable('automation_steps')
    .set({ successor, deleted_at: at, unsettled_at: at })
    .where('seq', '=', seq)
    .execute()
}

/** Deleted steps that runs may still be at. */
export async function findDeletedSteps(
  db: Queries,
  limit: number,
): Promise<{ readonly seq: number; readonly successor: number | null }[]> {
  return db
    .selectFrom('automation_steps')
    .select(['seq', 'successor'])
    .where('unsettled_at', 'is not', null)
    .orderBy('unsettled_at')
    .limit(limit)
    .execute()
}

export async function markDeletionApplied(db: Queries, seq: number): Promise<void> {
  await db.updateTable('automation_steps').set({ unsettled_at: null }).where('seq', '=', seq).execute()
}

function stepFromRow(row: Selectable<StepRow>): Step {
  return {
    seq: row.seq,
    id: row.id,
    position: row.position,
    type: row.step_type,
    config: JSON.parse(row.config) as Config,
  }
}
