/** SQL of step counts: how many runs left each step on each path, and how many are at it now. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'
import type { PathName } from '../flows/path-name.js'

/** `skipped` and `failed` are counted instead of the path. */
export type CountedPath = PathName | 'skipped' | 'failed'

declare module '../../db/tables.js' {
  interface Tables {
    automation_step_counts: { step: number; path: CountedPath; runs: number }
  }
}

const addOne = statement((db, { step, path }: { readonly step: number; readonly path: CountedPath }) =>
  db
    .insertInto('automation_step_counts')
    .values({ step, path, runs: 1 })
    .onConflict(conflict =>
      conflict
        .columns(['step', 'path'])
        .doUpdateSet({ runs: sql<number>`automation_step_counts.runs + excluded.runs` }),
    ),
)

/** @param step its number */
export async function countPath(db: Queries, step: number, path: CountedPath): Promise<void> {
  await addOne(db, { step, path })
}

export type PathCounts = Readonly<Partial<Record<CountedPath, number>>>

/** By step number. */
export async function findPathCounts(
  db: Queries,
  steps: readonly number[],
): Promise<ReadonlyMap<number, PathCounts>> {
  const found = new Map<number, Partial<Record<CountedPath, number>>>()
  for (const list of inLists(steps)) {
    const rows = await db.selectFrom('automation_step_counts').selectAll().where('step', 'in', list).execute()
    for (const { step, path, runs } of rows) found.set(step, { ...found.get(step), [path]: runs })
  }
  return found
}

/** Unfinished runs at each step, by its number. */
export async function countRunsAt(
  db: Queries,
  steps: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>()
  for (const list of inLists(steps)) {
    const rows = await db
      .selectFrom('automation_runs')
      .select(['step', db.fn.countAll<number>().as('runs')])
      .where('step', 'in', list)
      .where('ended_at', 'is', null)
      .groupBy('step')
      .execute()
    for (const { step, runs } of rows) if (step !== null) found.set(step, runs)
  }
  return found
}
