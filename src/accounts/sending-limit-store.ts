/**
 * The workspace's hourly and daily limits: how many recipients were accepted in this clock hour and this UTC day.
 *
 * Counted in the transaction that accepts the mail, so that a refused request counts nothing and two at once cannot
 * both take the last place.
 */
import { AppError } from '../core/errors.js'
import type { Queries } from '../db/database.js'
import { statement } from '../db/statement.js'
import type { Workspace } from './workspace-store.js'

type WindowKind = 'hour' | 'day'

interface SendingUsageRow {
  workspace_id: string
  window_kind: WindowKind
  window_start: number
  accepted: number
}

declare module '../db/tables.js' {
  interface Tables {
    sending_usage: SendingUsageRow
  }
}

const WINDOW_MS: Record<WindowKind, number> = { hour: 3_600_000, day: 86_400_000 }

const selectUsage = statement((db, { workspaceId }: { workspaceId: string }) =>
  db.selectFrom('sending_usage').selectAll().where('workspace_id', '=', workspaceId),
)

const writeUsage = statement((db, { rows }: { rows: readonly SendingUsageRow[] }) =>
  db
    .insertInto('sending_usage')
    .values(rows)
    .onConflict(conflict =>
      conflict.columns(['workspace_id', 'window_kind']).doUpdateSet(row => ({
        window_start: row.ref('excluded.window_start'),
        accepted: row.ref('excluded.accepted'),
      })),
    ),
)

/** @throws AppError limit_reached: the request is refused whole */
export async function countAgainstLimits(
  db: Queries,
  workspace: Pick<Workspace, 'id' | 'hourlyLimit' | 'dailyLimit'>,
  recipients: number,
  now: number,
): Promise<void> {
  const { rows } = await selectUsage(db, { workspaceId: workspace.id })
  const counted = (['hour', 'day'] as const).map(kind => {
    const start = Math.floor(now / WINDOW_MS[kind]) * WINDOW_MS[kind]
    const before = rows.find(row => row.window_kind === kind && row.window_start === start)?.accepted ?? 0
    const limit = kind === 'hour' ? workspace.hourlyLimit : workspace.dailyLimit
    if (limit > 0 && before + recipients > limit)
      throw new AppError(
        'limit_reached',
        `the workspace may send ${limit} mails per ${kind}; ${Math.max(0, limit - before)} are left in this one`,
      )
    return {
      workspace_id: workspace.id,
      window_kind: kind,
      window_start: start,
      accepted: before + recipients,
    }
  })
  await writeUsage(db, { rows: counted })
}
