/** SQL for restoring lists, segments and forms that were deleted. */
import { sql } from 'kysely'
import type { Queries } from '../db/database.js'
import { RESTORABLE_MS } from './audience-parts.js'
import { notDeleted } from './checks.js'

const NOUNS = { lists: 'list', segments: 'segment', forms: 'form' } as const

/** @throws AppError not_found unless it was deleted in the last 30 days */
export async function restoreDeleted(
  db: Queries,
  table: keyof typeof NOUNS,
  workspaceId: string,
  id: string,
  now: number,
): Promise<void> {
  const { numAffectedRows = 0n } = await sql`
    update ${sql.table(table)} set deleted_at = null
    where id = ${id.toLowerCase()} and workspace_id = ${workspaceId} and deleted_at > ${now - RESTORABLE_MS}
  `.execute(db)
  if (numAffectedRows === 0n) throw notDeleted(NOUNS[table])
}
