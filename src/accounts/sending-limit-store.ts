/**
 * The workspace's hourly and daily limits: how many recipients were accepted in this clock hour and this UTC day.
 *
 * Counted in the transaction that accepts the mail, so that a refused request counts nothing and two at once cannot
 * both take the last place. Windows are those of the calendar and each has a row of its own: one that was used up stays so
 * when the clock is set back to it, and a clock that was wrong for a while takes nothing from the windows that are right.
 */
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
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

const WINDOWS: readonly WindowKind[] = ['hour', 'day']
const WINDOW_MS: Record<WindowKind, number> = { hour: 3_600_000, day: 86_400_000 }

function windowStart(kind: WindowKind, moment: number): number {
  return Math.floor(moment / WINDOW_MS[kind]) * WINDOW_MS[kind]
}

/**
 * Windows of a kind that are remembered. By number and not by age: a clock that jumps ahead must not make the windows before
 * it look old.
 */
const WINDOWS_KEPT = 64

type Starts = Readonly<Record<WindowKind, number>>

/** One window each, not a list of them: for a list SQLite builds a table first, which takes longer than to look for two rows. */
const selectUsage = statement((db, { workspaceId, ...starts }: Starts & { workspaceId: string }) => {
  const one = (kind: WindowKind) =>
    db
      .selectFrom('sending_usage')
      .select(['window_kind', 'accepted'])
      .where('workspace_id', '=', workspaceId)
      .where('window_kind', '=', kind)
      .where('window_start', '=', starts[kind])
  return one('hour').unionAll(one('day'))
})

const writeUsage = statement((db, { rows }: { rows: readonly SendingUsageRow[] }) =>
  db
    .insertInto('sending_usage')
    .values(rows)
    .onConflict(conflict =>
      conflict.columns(['workspace_id', 'window_kind', 'window_start']).doUpdateSet(row => ({
        accepted: row.ref('excluded.accepted'),
      })),
    ),
)

/**
 * In a transaction that comes to nothing where this throws.
 *
 * @throws AppError limit_reached: the request is refused whole, and told when it may come again
 */
export async function countAgainstLimits(
  db: Queries,
  workspace: LimitedWorkspace,
  recipients: number,
  now: number,
): Promise<void> {
  if (recipients === 0) return
  const usage = await openUsage(db, workspace, now)
  usage.add(recipients)
  await usage.write()
}

/** How many mails there is room for now, and when there will be more. */
export interface Room {
  readonly mails: number
  /** Ms since epoch UTC; of the window that is the fullest. */
  readonly moreAt: number
}

/** For who has more to send than fits, and waits. */
export async function roomWithinLimits(db: Queries, workspace: LimitedWorkspace, now: number): Promise<Room> {
  const used = await acceptedInWindows(db, workspace.id, now)
  let room: Room = { mails: Infinity, moreAt: now }
  for (const kind of WINDOWS) {
    const [limit, start] = [limitOf(workspace, kind), windowStart(kind, now)]
    const mails = limit === 0 ? Infinity : Math.max(0, limit - (used.get(kind) ?? 0))
    if (mails <= room.mails) room = { mails, moreAt: start + WINDOW_MS[kind] }
  }
  return room
}

/**
 * Takes back what was counted and will never be sent, in the windows in which it was counted; one that is over stays as it is.
 *
 * @param countedAt when it was accepted, ms since epoch UTC
 */
export async function giveBackToLimits(
  db: Queries,
  workspaceId: string,
  recipients: number,
  countedAt: number,
): Promise<void> {
  for (const kind of WINDOWS)
    await db
      .updateTable('sending_usage')
      .set(row => ({
        accepted: row
          .case()
          .when('accepted', '>', recipients)
          .then(row('accepted', '-', recipients))
          .else(0)
          .end(),
      }))
      .where('workspace_id', '=', workspaceId)
      .where('window_kind', '=', kind)
      .where('window_start', '=', windowStart(kind, countedAt))
      .execute()
}

export type LimitedWorkspace = Pick<Workspace, 'id' | 'hourlyLimit' | 'dailyLimit'>

/** What a workspace has used of its windows; for several requests that are counted in one transaction. */
export interface Usage {
  /** @throws AppError limit_reached, and then nothing was added */
  add(recipients: number): void
  /** Takes back what was added for a request that was refused for another reason. */
  takeBack(recipients: number): void
  write(): Promise<void>
}

interface FullWindow {
  readonly kind: WindowKind
  readonly limit: number
  readonly left: number
  /** Of the request that does not fit. */
  readonly recipients: number
}

/** Says when there is room again; for a request that is more than a whole window, that there never is. */
function limitReached({ kind, limit, left, recipients }: FullWindow, now: number): AppError {
  const allowed = `the workspace may send ${limit} mails per ${kind}`
  if (recipients > limit)
    return new AppError('limit_reached', `${allowed}, and this request has ${recipients}: send fewer at once`)
  const resetAt = (Math.floor(now / WINDOW_MS[kind]) + 1) * WINDOW_MS[kind]
  return new AppError(
    'limit_reached',
    `${allowed}; ${left} are left in this one, and the next begins at ${isoTime(resetAt)}`,
    { retryAfterMs: resetAt - now },
  )
}

/** @throws AppError limit_reached @param accepted in the window so far */
function refuseOverLimit(
  workspace: LimitedWorkspace,
  kind: WindowKind,
  accepted: number,
  recipients: number,
  now: number,
): void {
  const limit = limitOf(workspace, kind)
  if (limit > 0 && accepted + recipients > limit)
    throw limitReached({ kind, limit, left: Math.max(0, limit - accepted), recipients }, now)
}

function limitOf({ hourlyLimit, dailyLimit }: LimitedWorkspace, kind: WindowKind): number {
  return kind === 'hour' ? hourlyLimit : dailyLimit
}

/** Of the windows that something was accepted in. */
async function acceptedInWindows(
  db: Queries,
  workspaceId: string,
  now: number,
): Promise<ReadonlyMap<WindowKind, number>> {
  const { rows } = await selectUsage(db, {
    workspaceId,
    hour: windowStart('hour', now),
    day: windowStart('day', now),
  })
  return new Map(rows.map(row => [row.window_kind, row.accepted]))
}

export async function openUsage(db: Queries, workspace: LimitedWorkspace, now: number): Promise<Usage> {
  const before = await acceptedInWindows(db, workspace.id, now)
  const counted = WINDOWS.map((kind): SendingUsageRow => ({
    workspace_id: workspace.id,
    window_kind: kind,
    window_start: windowStart(kind, now),
    accepted: before.get(kind) ?? 0,
  }))
  return {
    add(recipients) {
      for (const { window_kind: kind, accepted } of counted)
        refuseOverLimit(workspace, kind, accepted, recipients, now)
      for (const window of counted) window.accepted += recipients
    },
    takeBack(recipients) {
      for (const window of counted) window.accepted -= recipients
    },
    async write() {
      await writeUsage(db, { rows: counted })
      for (const kind of WINDOWS) if (!before.has(kind)) await forgetOldest(db, workspace.id, kind)
    },
  }
}

/** All but the windows that begin last. */
async function forgetOldest(db: Queries, workspaceId: string, kind: WindowKind): Promise<void> {
  await db
    .deleteFrom('sending_usage')
    .where('workspace_id', '=', workspaceId)
    .where('window_kind', '=', kind)
    .where('window_start', '<=', query =>
      query
        .selectFrom('sending_usage')
        .select('window_start')
        .where('workspace_id', '=', workspaceId)
        .where('window_kind', '=', kind)
        .orderBy('window_start', 'desc')
        .limit(1)
        .offset(WINDOWS_KEPT),
    )
    .execute()
}
