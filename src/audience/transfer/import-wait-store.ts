/** Why an import waits: read from the imports before it. */
import { sql } from 'kysely'
import { storageWait, type Waiting } from '../../core/waiting.js'
import type { Queries, StorageFault } from '../../db/database.js'
import type { Import } from './import.js'
import { MAX_CONCURRENT } from './importer.js'

/** @param fault of the database, in which nothing can be stored */
export async function findImportWait(
  db: Queries,
  { seq, status, workspaceId }: Pick<Import, 'seq' | 'status' | 'workspaceId'>,
  fault: StorageFault | undefined,
): Promise<Waiting | undefined> {
  if (status !== 'queued' && status !== 'processing') return undefined
  if (fault) return storageWait(fault)
  if (status === 'processing') return undefined
  const { rows } = await sql<{ own: number; workspaces: number }>`
    select count(case when workspace_id = ${workspaceId} then 1 end) as own, count(distinct workspace_id) as workspaces
    from contact_imports where finished_at is null and status <> 'receiving' and seq < ${seq}`.execute(db)
  const { own, workspaces } = rows[0] ?? { own: 0, workspaces: 0 }
  if (own > 0)
    return {
      reason: 'earlier_import',
      detail: 'An earlier import of this workspace runs first; cancel it if it is not wanted.',
    }
  if (workspaces >= MAX_CONCURRENT)
    return { reason: 'earlier_import', detail: 'Imports of other workspaces run first.' }
  return undefined
}
