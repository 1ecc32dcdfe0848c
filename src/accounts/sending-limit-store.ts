/**
 * The workspace's hourly and daily limits: recipients accepted in the current clock hour (UTC), and on the current day of its time zone.
 *
 * Counted in the transaction that accepts the mail, so a rejected request counts nothing and concurrent requests cannot share the last
 * slot. Each window has its own row, so setting the clock back does not reset a window that was used up, and a clock that was wrong
 * for a while does not affect the correct windows. Rows are named by the moment at which their window began. After the time zone changed,
 * those of the last day that began at other moments are merged into the current one: changing the zone makes no room.
 */
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import type { Queries } from '../db/database.js'
import { statement } from '../db/statement.js'
import { DAY_MS, dayAt, startOfDay } from '../world/time/zone-days.js'
import { findTimezone } from './timezone-store.js'
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
const HOUR_MS = 3_600_000

/** Moments, ms since epoch UTC. */
interface Window {
  readonly kind: WindowKind
  readonly start: number
  /** Exclusive. */
  readonly end: number
  /** Rows that began later, though not at `start`, are of the same window in another time zone. */
  readonly previous: number
}

type Windows = Readonly<Record<WindowKind, Window>>

function windowsAt(moment: number, timezone: string): Windows {
  const hour = Math.floor(moment / HOUR_MS) * HOUR_MS
  return {
    hour: { kind: 'hour', start: hour, end: hour + HOUR_MS, previous: hour - HOUR_MS },
    day: dayWindowAt(moment, timezone),
  }
}

/** When the window that holds the moment ends, ms since epoch UTC. */
export function windowEnd(kind: WindowKind, moment: number, timezone: string): number {
  return windowsAt(moment, timezone)[kind].end
}

const MAX_KNOWN_ZONES = 100
/** The last day of each zone, since every send asks for it: computing one takes a dozen calls of `Intl`. */
const knownDays = new Map<string, Window>()

function dayWindowAt(moment: number, timezone: string): Window {
  const known = knownDays.get(timezone)
  if (known && moment >= known.start && moment < known.end) return known
  const day = dayAt(moment, timezone)
  const start = startOfDay(day, timezone)
  const window: Window = {
    kind: 'day',
    start,
    end: startOfDay(day + DAY_MS, timezone),
    // A zone that moves across the date line skips a day, which begins and ends at one moment.
    previous: Math.min(startOfDay(day - DAY_MS, timezone), start - 1),
  }
  if (knownDays.size >= MAX_KNOWN_ZONES) knownDays.clear()
  knownDays.set(timezone, window)
  return window
}

/** Windows kept per kind. Limited by number, not age: a clock that jumps ahead must not expire the windows before it. */
const WINDOWS_KEPT = 64

/** `dayAfter` is exclusive. */
type UsageQuery = Readonly<Record<'hour' | 'dayAfter' | 'now', number>> & { readonly workspaceId: string }

/** One window at a time: for a list SQLite builds a temporary table, which costs more than looking up two rows. */
const selectUsage = statement((db, { workspaceId, hour, dayAfter, now }: UsageQuery) => {
  const of = (kind: WindowKind) =>
    db
      .selectFrom('sending_usage')
      .select(['window_kind', 'window_start', 'accepted'])
      .where('workspace_id', '=', workspaceId)
      .where('window_kind', '=', kind)
  return of('hour')
    .where('window_start', '=', hour)
    .unionAll(of('day').where('window_start', '>', dayAfter).where('window_start', '<=', now))
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
  const used = await acceptedInWindows(db, workspace, now)
  let room: Allowance = { mails: Infinity, moreAt: now, fullest: undefined }
  const windows = windowsAt(now, workspace.timezone)
  for (const kind of WINDOWS) {
    const limit = limitOf(workspace, kind)
    const mails = leftOf(limit, sumOf(used[kind]))
    if (limit > 0 && mails <= room.mails)
      room = { mails, moreAt: windows[kind].end, fullest: { kind, limit } }
  }
  return room
}

/** Mails left in the windows that hold the moment; Infinity: unlimited. */
export async function leftInWindows(
  db: Queries,
  workspace: LimitedWorkspace,
  moment: number,
): Promise<Readonly<Record<WindowKind, number>>> {
  const used = await acceptedInWindows(db, workspace, moment)
  const left = (kind: WindowKind) => leftOf(limitOf(workspace, kind), sumOf(used[kind]))
  return { hour: left('hour'), day: left('day') }
}

function leftOf(limit: number, used: number): number {
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
  const windows = windowsAt(countedAt, await findTimezone(db, workspaceId))
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
      .where('window_start', '=', windows[kind].start)
      .execute()
}

export type LimitedWorkspace = Pick<Workspace, 'id' | 'hourlyLimit' | 'dailyLimit' | 'timezone'>

/** A workspace's usage, for counting several requests in one transaction. */
export interface Usage {
  /** @throws AppError limit_reached; nothing is added then */
  add(recipients: number): void
  /** Undoes `add` for a request rejected for another reason. */
  takeBack(recipients: number): void
  write(): Promise<void>
}

interface OverLimit {
  readonly window: Window
  readonly limit: number
  readonly left: number
  readonly recipients: number
}

/** Gives the time of the next window, unless the request exceeds a whole window. */
function limitReached({ window, limit, left, recipients }: OverLimit, now: number): AppError {
  const { kind, end } = window
  const allowed = `the workspace may send ${limit} mails per ${kind}`
  if (recipients > limit)
    return new AppError('limit_reached', `${allowed}, and this request has ${recipients}: send fewer at once`)
  return new AppError(
    'limit_reached',
    `${allowed}; ${left} are left in this one, and the next begins at ${isoTime(end)}`,
    { retryAfterMs: end - now },
  )
}

/** @throws AppError limit_reached @param accepted in the window so far */
function refuseOverLimit(
  workspace: LimitedWorkspace,
  window: Window,
  accepted: number,
  recipients: number,
  now: number,
): void {
  const limit = limitOf(workspace, window.kind)
  if (limit > 0 && accepted + recipients > limit)
    throw limitReached({ window, limit, left: Math.max(0, limit - accepted), recipients }, now)
}

function limitOf({ hourlyLimit, dailyLimit }: LimitedWorkspace, kind: WindowKind): number {
  return kind === 'hour' ? hourlyLimit : dailyLimit
}

type UsageRows = Readonly<Record<WindowKind, readonly Pick<SendingUsageRow, 'window_start' | 'accepted'>[]>>

/** Rows of each current window. */
async function acceptedInWindows(
  db: Queries,
  { id, timezone }: LimitedWorkspace,
  now: number,
): Promise<UsageRows> {
  const { hour, day } = windowsAt(now, timezone)
  const query = { workspaceId: id, hour: hour.start, dayAfter: day.previous, now }
  const { rows } = await selectUsage(db, query)
  const of = (kind: WindowKind) => rows.filter(row => row.window_kind === kind)
  return { hour: of('hour'), day: of('day') }
}

function sumOf(rows: readonly { readonly accepted: number }[]): number {
  return rows.reduce((sum, { accepted }) => sum + accepted, 0)
}

export async function openUsage(db: Queries, workspace: LimitedWorkspace, now: number): Promise<Usage> {
  const before = await acceptedInWindows(db, workspace, now)
  const windows = windowsAt(now, workspace.timezone)
  const counted = WINDOWS.map(kind => ({ window: windows[kind], accepted: sumOf(before[kind]) }))
  const rows = () =>
    counted.map(({ window: { kind, start }, accepted }): SendingUsageRow => ({
      workspace_id: workspace.id,
      window_kind: kind,
      window_start: start,
      accepted,
    }))
  return {
    add(recipients) {
      for (const { window, accepted } of counted)
        refuseOverLimit(workspace, window, accepted, recipients, now)
      for (const one of counted) one.accepted += recipients
    },
    takeBack(recipients) {
      for (const one of counted) one.accepted -= recipients
    },
    async write() {
      await writeUsage(db, { rows: rows() })
      for (const { kind, start } of [windows.hour, windows.day]) {
        const merged = before[kind].map(row => row.window_start).filter(one => one !== start)
        if (merged.length > 0) await deleteRows(db, workspace.id, kind, merged)
        if (before[kind].length === merged.length) await forgetOldest(db, workspace.id, kind)
      }
    },
  }
}

async function deleteRows(
  db: Queries,
  workspaceId: string,
  kind: WindowKind,
  starts: readonly number[],
): Promise<void> {
  await db
    .deleteFrom('sending_usage')
    .where('workspace_id', '=', workspaceId)
    .where('window_kind', '=', kind)
    .where('window_start', 'in', starts)
    .execute()
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
