/** SQL of a workspace's time zone, for callers that need nothing else of it. */
import type { Queries } from '../db/database.js'
import { statement } from '../db/statement.js'

const selectTimezone = statement((db, { id }: { id: string }) =>
  db
    .selectFrom('workspaces')
    .select('timezone')
    .where('id', '=', query =>
      query.fn.coalesce(
        query.selectFrom('sandboxes').select('workspace_id').where('sandboxes.id', '=', id),
        query.val(id),
      ),
    ),
)

/** @param id of a workspace, removed or not, or of a sandbox @returns IANA name; UTC if the workspace is unknown */
export async function findTimezone(db: Queries, id: string): Promise<string> {
  const [row] = (await selectTimezone(db, { id })).rows
  return row?.timezone ?? 'UTC'
}
