/**
 * The workspace's hourly and daily limits: recipients accepted in the current clock hour and UTC day.
 *
 * Counted in the transaction that accepts the mail, so a rejected request counts nothing and concurrent requests cannot share the last
 * slot. Each window has its own row, so setting the clock back does not reset a window that was used up, and a clock that was wrong
 * for a while does not affect the correct windows.
 */
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import type { Queries } from '../db/database.js'
import { statement } from '../db/statement.js'
import type { Workspace } from './workspace-store.js'

export type WindowKind = 'hour' | 'day'

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

/** When the window that holds the moment ends, ms since epoch UTC. */
export function windowEnd(kind: WindowKind, moment: number): number {
  return windowStart(kind, moment) + WINDOW_MS[kind]
}

/** Windows kept per kind. Limited by number, not age: a clock that jumps ahead must not expire the windows before it. */
const WINDOWS_KEPT = 64

type Starts = Readonly<Record<WindowKind, number>>

/** One window at a time: for a list SQLite builds a temporary table, which costs more than looking up two rows. */
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
 * Call it in a transaction that is rolled back if this throws.
 *
 * @throws AppError limit_reached with the time to retry; the request is rejected as a whole
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

/** How many mails fit now, and when more will. */
export interface Allowance {
  readonly mails: number
  /** When the fullest window ends, ms since epoch UTC. */
  readonly moreAt: number
  /** The limit of the fullest window; undefined if there is none. */
  readonly fullest: FullWindow | undefined
}

export interface FullWindow {
  readonly kind: WindowKind
  readonly limit: number
}

/** For senders that can wait for the next window. */
export async function allowanceWithinLimits(
  db: Queries,
  workspace: LimitedWorkspace,
  now: number,
): Promise<Allowance> {
  const used = await acceptedInWindows(db, workspace.id, now)
  let room: Allowance = { mails: Infinity, moreAt: now, fullest: undefined }
  for (const kind of WINDOWS) {
    const limit = limitOf(workspace, kind)
    const mails = leftOf(limit, used.get(kind))
    if (limit > 0 && mails <= room.mails)
      room = { mails, moreAt: windowEnd(kind, now), fullest: { kind, limit } }
  }
  return room
}

/** Mails left in the windows that hold the moment; Infinity: unlimited. */
export async function leftInWindows(
  db: Queries,
  workspace: LimitedWorkspace,
  moment: number,
): Promise<Readonly<Record<WindowKind, number>>> {
  const used = await acceptedInWindows(db, workspace.id, moment)
  const left = (kind: WindowKind) => leftOf(limitOf(workspace, kind), used.get(kind))
  return { hour: left('hour'), day: left('day') }
}

function leftOf(limit: number, used = 0): number {
  return limit === 0 ? Infinity : Math.max(0, limit - used)
}

/**
 * Counts a mail in the first windows that have room for it: those of `now`, or later ones. For mail that may wait but not fail.
 *
 * @param until latest moment the mail may wait for, ms since epoch UTC
 * @returns when the mail is due; undefined if all windows until then are used up, and nothing was counted
 */
export async function countWithinLimits(
  db: Queries,
  workspace: LimitedWorkspace,
  now: number,
  until: number,
): Promise<number | undefined> {
  for (let moment = now; moment <= until;) {
    const { mails, moreAt } = await allowanceWithinLimits(db, workspace, moment)
    if (mails >= 1) {
      await countAgainstLimits(db, workspace, 1, moment)
      return moment
    }
    moment = moreAt
  }
  return undefined
}

/**
 * Returns mails that will never be sent to the windows they were counted in. Windows that have ended are left alone.
 *
 * @param countedAt when the mails were accepted, ms since epoch UTC
 */
export async function returnToLimits(
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

/** A workspace's usage, for counting several requests in one transaction. */
export interface Usage {
  /** @throws AppError limit_reached; nothing is added then */
  add(recipients: number): void
  /** Undoes `add` for a request rejected for another reason. */
  takeBack(recipients: number): void
  write(): Promise<void>
}

interface OverLimit extends FullWindow {
  readonly left: number
  readonly recipients: number
}

/** Gives the time of the next window, unless the request exceeds a whole window. */
function limitReached({ kind, limit, left, recipients }: OverLimit, now: number): AppError {
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

/** Recipients accepted in each current window; windows without any are omitted. */
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
